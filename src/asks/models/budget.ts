// What a server may use of our models within an hour, in requests and in tokens. Used requests and tokens are in the database, so
// that they outlast a restart and count for all daemons of this state directory; requests under way are counted here.

import type { SamplingBudget } from '../../config/schema.ts';
import { TroupeError } from '../../protocol/failures.ts';
import type { Store } from '../../store/store.ts';
import { realWorld, type World } from '../../world/world.ts';

/** In tokens, as estimated before the model is asked. */
export type Wanted = { readonly prompt: number; readonly maxTokens: number };

export type Reservation = {
  /** How many tokens the answer may have: what was wanted, or what is left. */
  readonly maxTokens: number;
  /** To be called once, also for a request that failed. */
  book(tokens: number): void;
};

export type Budget = {
  /** A sentence when nothing is left. */
  check(server: string, budget: SamplingBudget): string | undefined;
  /** Throws that sentence. Reserved tokens are gone for other requests until this one is booked. */
  reserve(server: string, budget: SamplingBudget, wanted: Wanted): Reservation;
};

const HOUR_MS = 3_600_000;
/** An answer that would have to be shorter than this is of no use to anybody. */
const LEAST_TOKENS = 100;

export function createBudget(
  store: Pick<Store, 'get' | 'commit'>,
  world: Pick<World, 'date' | 'after'> = realWorld,
): Budget {
  type Entry = { tokens: number; at: number };
  const pending = new Map<string, Set<Entry>>();
  let last = 0;

  /** Each entry has a time of its own: a row with that time is the entry that is still counted here. */
  function nextTime(): number {
    last = Math.max(world.date(), last + 1);
    return last;
  }

  function used(server: string): { requests: number; tokens: number } {
    const since = world.date() - HOUR_MS;
    const entries = [...(pending.get(server) ?? [])].filter(({ at }) => at > since);
    const here = JSON.stringify(entries.map(({ at }) => at));
    const row = store.get<{ requests: number; tokens: number }>('usage', [server, since, here]);
    const reserved = entries.reduce((sum, { tokens }) => sum + tokens, 0);
    return { requests: (row?.requests ?? 0) + entries.length, tokens: (row?.tokens ?? 0) + reserved };
  }

  function check(server: string, { requestsPerHour, tokensPerHour }: SamplingBudget, needed = 1): string | undefined {
    const { requests, tokens } = used(server);
    if (requestsPerHour > 0 && requests >= requestsPerHour)
      return `server ${server} has used its ${requestsPerHour} requests to models of this hour; ${raise('requestsPerHour')}`;
    if (tokensPerHour === 0 || tokens + needed <= tokensPerHour) return undefined;
    const left = Math.max(0, tokensPerHour - tokens);
    return left === 0
      ? `server ${server} has used its ${tokensPerHour} tokens of models of this hour; ${raise('tokensPerHour')}`
      : `server ${server} has ${left} of its ${tokensPerHour} tokens of this hour left, and about ${needed} are needed; ${raise('tokensPerHour')}`;
  }

  return {
    check: (server, budget) => check(server, budget),
    reserve(server, budget, { prompt, maxTokens }) {
      const problem = check(server, budget, prompt + Math.min(maxTokens, LEAST_TOKENS));
      if (problem) throw new TroupeError('busy', problem);
      const left = budget.tokensPerHour === 0 ? Number.POSITIVE_INFINITY : budget.tokensPerHour - used(server).tokens;
      const allowed = Math.floor(Math.min(maxTokens, left - prompt));
      const entry: Entry = { tokens: prompt + allowed, at: nextTime() };
      const entries = pending.get(server) ?? new Set();
      pending.set(server, entries.add(entry));
      const forget = () => void (entries.delete(entry) && entries.size === 0 && pending.delete(server));
      return {
        maxTokens: allowed,
        book(tokens) {
          entry.tokens = Math.ceil(tokens);
          entry.at = nextTime();
          // Counted here until the row can be read; if the disk refuses the row, for the hour.
          const later = () => void world.after(HOUR_MS, forget);
          store.commit('addUsage', [server, entry.tokens, entry.at]).then(forget, later);
        },
      };
    },
  };
}

const raise = (setting: string): string => `raise x-troupe.sampling.${setting}, or wait`;
