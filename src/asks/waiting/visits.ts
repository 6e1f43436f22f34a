// Addresses that a server wants visited before a call can be made (-32042), where the host knows itself what to do: it is told
// when what happens there is done, long after its call was refused.

import type { Call, Outcome } from '../../calls/call.ts';
import { elements, member } from '../../protocol/json.ts';
import { textAt } from '../../protocol/rewrite.ts';

export type Visits = ReturnType<typeof createVisits>;

const REQUIRED = '-32042';
const MAX_VISITS = 1_000;
const MAX_ADDRESSES = 10;

export function createVisits() {
  const tells = new Map<string, (params: Buffer) => void>();
  const keyOf = (instance: string, id: string) => `${instance} ${id}`;

  return {
    /** A call was refused; if for that reason, its host will be told. */
    note(instance: string, { onElicited }: Call, outcome: Outcome): void {
      const error = outcome.ok ? undefined : outcome.failure.error;
      if (!onElicited || !error || member(error, 'code')?.toString() !== REQUIRED) return;
      for (const id of idsOf(error)) {
        tells.set(keyOf(instance, id), onElicited);
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

function idsOf(error: Buffer): string[] {
  const data = member(error, 'data');
  const list = data && member(data, 'elicitations');
  const found = list ? [...elements(list)].slice(0, MAX_ADDRESSES) : [];
  return found.flatMap((each) => textAt(each, ['elicitationId']) ?? []);
}
