// The messages of a client that are not confirmed, and its requests that are not answered. After a daemon was lost it decides
// which messages are sent again (those that certainly never arrived) and which requests have an unknown outcome.

import type { Fields, Message } from './message.ts';

/** One message on its way up. Numbers rise, and messages arrive in their order: one that arrived confirms all before it. */
export type Said = {
  readonly number: number;
  readonly body: Buffer;
  /** The raw JSON of the id, if it is a request. */
  readonly id: string | undefined;
  /** The broker has the whole message. */
  isOut: boolean;
  /** The broker returned the message because it had no subscriber. */
  isReturned: boolean;
};

export type Ledger = ReturnType<typeof ledger>;

export function ledger() {
  let last = 0;
  const unconfirmed = new Map<number, Said>();
  const unanswered = new Map<string, number>();

  const enter = (body: Buffer, id: string | undefined): Said => {
    last += 1;
    const said: Said = { number: last, body, id, isOut: false, isReturned: false };
    unconfirmed.set(said.number, said);
    return said;
  };

  function confirm(number: number): void {
    for (const each of unconfirmed.keys()) {
      if (each > number) return;
      unconfirmed.delete(each);
    }
  }

  const mustGoAgain = ({ isOut, isReturned }: Said): boolean => !isOut || isReturned;

  return {
    /** The number of a message that needs no confirmation, such as a heartbeat. */
    next: (): number => ++last,

    note(message: Message, body: Buffer): Said {
      const { id, method, params } = message as Message & Fields;
      const isRequest = typeof method === 'string' && id !== undefined;
      const said = enter(body, isRequest ? JSON.stringify(id) : undefined);
      if (said.id !== undefined) unanswered.set(said.id, said.number);
      // The answer to a cancelled request, if one still comes, is dropped.
      if (method === 'notifications/cancelled') unanswered.delete(JSON.stringify(params?.requestId));
      return said;
    },

    /** False for an answer to no request of ours. Every other message passes. */
    accept(message: Message): boolean {
      const { id, method } = message as Message & Fields;
      if (method !== undefined || id === undefined || id === null) return true;
      const number = unanswered.get(JSON.stringify(id));
      if (number === undefined) return false;
      unanswered.delete(JSON.stringify(id));
      confirm(number);
      return true;
    },

    returned(number: number): void {
      const said = unconfirmed.get(number);
      if (said) said.isReturned = true;
    },

    /** The daemon has seen all up to that number and works on those in flight. Returns the ids whose outcome is unknown. */
    reconcile(seen: number, inFlight: ReadonlySet<string>): string[] {
      const lost = [...unanswered].filter(([id, number]) => {
        const said = unconfirmed.get(number);
        return number <= seen && !inFlight.has(id) && !(said && mustGoAgain(said));
      });
      for (const [id] of lost) unanswered.delete(id);
      return lost.map(([id]) => id);
    },

    /** Of all messages up to that number, those that certainly did not arrive, in order and under new numbers. */
    again(seen: number): Said[] {
      const again = [...unconfirmed.values()].filter((said) => said.number <= seen && mustGoAgain(said));
      confirm(seen);
      return again.map(({ body, id }) => {
        const said = enter(body, id);
        if (id !== undefined && unanswered.has(id)) unanswered.set(id, said.number);
        return said;
      });
    },
  };
}
