// Calls that were accepted and are not at their server, because they wait for somebody's word. Each leaves exactly once, with
// whoever comes first: the word, a caller who cancels, or the news that the server is gone.

import type { Call } from './call.ts';
import type { Cancellable } from './cancellable.ts';

export type Stay = {
  readonly call: Call;
  /** It has left because of that; its caller is still to be told. */
  readonly onCancel: (why: string) => void;
  readonly onGone: (why: string) => void;
};

export function createParked(cancellable: Cancellable) {
  const stays = new Map<string, Set<(why: string) => void>>();

  return {
    /** Returns how to leave: true for the one who is first. */
    park({ call, onCancel, onGone }: Stay): () => boolean {
      const neighbours = stays.get(call.server) ?? new Set();
      const leave = (): boolean => {
        if (!neighbours.delete(sendAway)) return false;
        if (neighbours.size === 0) stays.delete(call.server);
        if (call.isCancellable) cancellable.remove(call);
        return true;
      };
      const sendAway = (why: string): void => void (leave() && onGone(why));
      stays.set(call.server, neighbours.add(sendAway));
      if (call.isCancellable) cancellable.add(call, (why) => void (leave() && onCancel(why)));
      return leave;
    },
    count: (server: string): number => stays.get(server)?.size ?? 0,
    /** Nobody's word can help them any more. */
    sendAway(server: string, why: string): void {
      for (const sendAway of [...(stays.get(server) ?? [])]) sendAway(why);
    },
  };
}
