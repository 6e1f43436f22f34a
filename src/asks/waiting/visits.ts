// Addresses that a server wants visited before a call can be made (-32042), where the host knows itself what to do: it is told
// when what happens there is done, long after its call was refused.

import type { Call, Outcome } from '../../calls/call.ts';
import { textAt } from '../../protocol/json.ts';
import { elicitationsOf, MAX_ELICITATIONS } from './required.ts';

const MAX_VISITS = 1_000;

export function createVisits() {
  const tells = new Map<string, (params: Buffer) => void>();
  const keyOf = (instance: string, id: string) => `${instance} ${id}`;

  return {
    /** A call was refused; if for that reason, its host will be told. */
    note(instance: string, { onElicited }: Call, outcome: Outcome): void {
      if (!onElicited) return;
      for (const each of elicitationsOf(outcome)?.slice(0, MAX_ELICITATIONS) ?? []) {
        const id = textAt(each, ['elicitationId']);
        if (id) tells.set(keyOf(instance, id), onElicited);
        const [oldest] = tells.keys();
        if (tells.size > MAX_VISITS && oldest !== undefined) tells.delete(oldest);
      }
    },
    done(instance: string, id: string, params: Buffer): void {
      const key = keyOf(instance, id);
      tells.get(key)?.(params);
      tells.delete(key);
    },
  };
}
