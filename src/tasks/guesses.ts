// Who asks for tasks that there are not may be guessing: that is kept, and soon refused. A host that lost count of its tasks
// is no guesser, so a few are free.

import { TroupeError } from '../protocol/failures.ts';
import { type Allowance, allowance } from '../telemetry/allowance.ts';

export type Guesses = ReturnType<typeof createGuesses>;

const A_SECOND = 10;
const MAX_PRINCIPALS = 1_000;

/** `onGuess` is told of each, with a principal that may be an attacker. */
export function createGuesses(onGuess: (principal: string, isRefused: boolean) => void) {
  const known = new Map<string, Allowance>();

  function of(principal: string): Allowance {
    const found = known.get(principal) ?? allowance(A_SECOND);
    known.delete(principal);
    known.set(principal, found);
    const [oldest] = known.keys();
    if (known.size > MAX_PRINCIPALS && oldest !== undefined) known.delete(oldest);
    return found;
  }

  return {
    /** Throws what the guesser is told: always the same of an id, whoever's it is. */
    refuse(principal: string | undefined, id: string): never {
      const isRefused = principal !== undefined && !of(principal).take();
      if (principal !== undefined) onGuess(principal, isRefused);
      if (isRefused) throw new TroupeError('busy', 'too many of these tasks are not there; wait a second');
      throw new TroupeError('unknownName', `there is no task ${id.slice(0, 64)}; it may have expired`);
    },
  };
}
