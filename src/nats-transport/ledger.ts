// What a client has said and nobody has confirmed, and which of its requests still wait for an answer. It decides what is
// sent again after a daemon was lost (only what certainly never arrived) and whose outcome nobody knows.

import type { Fields, Message } from './message.ts';

/** One message on its way up. Numbers rise, and messages arrive in their order: one that arrived confirms all before it. */
export type Said = {
  readonly number: number;
  readonly body: Buffer;
  /** The raw JSON of the id, if it is a request. */
  readonly id: string | undefined;
  /** The broker has it, whole. */
  isOut: boolean;
  /** The broker had nobody to give it to. */
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
    /** The number of a message that nobody waits for, such as a heartbeat. */
    next: (): number => ++last,

    note(message: Message, body: Buffer): Said {
      const { id, method, params } = message as Message & Fields;
      const isRequest = typeof method === 'string' && id !== undefined;
      const said = enter(body, isRequest ? JSON.stringify(id) : undefined);
      if (said.id !== undefined) unanswered.set(said.id, said.number);
      // Whoever cancels does not wait any more; an answer that comes all the same is nobody's.
      if (method === 'notifications/cancelled') unanswered.delete(JSON.stringify(params?.requestId));
      return said;
    },

    /** False for an answer that nobody waits for. Every other message passes. */
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

    /** The daemon has seen all up to that number and works on those. The ids of which neither it nor we know the end. */
    reconcile(seen: number, inFlight: ReadonlySet<string>): string[] {
      const lost = [...unanswered].filter(([id, number]) => {
        const said = unconfirmed.get(number);
        return number <= seen && !inFlight.has(id) && !(said && mustGoAgain(said));
      });
      for (const [id] of lost) unanswered.delete(id);
      return lost.map(([id]) => id);
    },

    /** Of all up to that number: what certainly did not arrive, in its order and under new numbers. The rest is done. */
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
