// The way back to a session whose daemon is gone: asks until somebody takes it over, nobody can, or patience is at its end.

import { setTimeout as wait } from 'node:timers/promises';

export type Reply = 'here' | 'nobody' | 'gone';

export type WayBackOptions = {
  readonly ask: () => void;
  /** Pending while there is no connection; that time is not counted. */
  readonly down: () => Promise<void> | undefined;
  readonly patienceMs: number;
};

const ANSWER_MS = 5_000;
const PAUSES_MS = [50, 100, 250, 500, 1_000];

export function wayBack({ ask, down, patienceMs }: WayBackOptions) {
  let settle: ((reply: Reply) => void) | undefined;
  let isOver = false;

  function attempt(): Promise<Reply> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => settle?.('nobody'), ANSWER_MS);
      timer.unref();
      settle = (reply) => {
        clearTimeout(timer);
        settle = undefined;
        resolve(reply);
      };
      ask();
    });
  }

  return {
    get isAsking(): boolean {
      return settle !== undefined;
    },
    tell: (reply: Reply): void => settle?.(reply),
    /** Throws the sentence that says why there is no way back. */
    async go(): Promise<void> {
      let giveUpAt = performance.now() + patienceMs;
      for (let count = 0; !isOver; count++) {
        if (down() !== undefined) {
          await down();
          giveUpAt = performance.now() + patienceMs;
        }
        const reply = isOver ? 'here' : await attempt();
        if (reply === 'here') return;
        if (reply === 'gone') throw new Error('the session is over; connect again');
        if (performance.now() > giveUpAt) throw new Error(`nobody took the session over within ${patienceMs} ms`);
        await wait(PAUSES_MS[Math.min(count, PAUSES_MS.length - 1)], undefined, { ref: false });
      }
    },
    stop(): void {
      isOver = true;
      settle?.('here');
    },
  };
}
