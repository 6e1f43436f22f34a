// The inbox: every question that is open on this state directory, whichever daemon asks it, and the way to answer one.

import { setTimeout as wait } from 'node:timers/promises';
import { TroupeError } from '../protocol/failures.ts';
import type { AskRow } from '../store/rows.ts';
import { type Acceptance, movedOn } from './acceptance.ts';
import type { Answerer, AskOutcome, Inbox, Reply } from './ask.ts';
import type { Live } from './live.ts';
import type { Rows } from './rows.ts';
import { questionOf } from './views.ts';

export type InboxOptions = {
  readonly lives: ReadonlyMap<string, Live>;
  readonly rows: Rows;
  readonly acceptance: Acceptance;
  /** Tells the other daemons that there is something to read in the rows. */
  readonly nudge: () => void;
};

const PATIENCE_MS = 10_000;
const LOOK_MS = 1_000;
const POLL_MS = 25;

export function createInbox({ lives, rows, acceptance, nudge }: InboxOptions) {
  const waiting = new Set<() => void>();
  let version = 1;
  // Where the bus does not tell, the rows do.
  const looking = setInterval(() => lives.size > 0 && acceptance.collect(lives), LOOK_MS);
  looking.unref();

  function touch(): void {
    version++;
    for (const wake of waiting) wake();
    waiting.clear();
  }

  async function answer(id: string, reply: Reply, { by, principal, stage }: Answerer): Promise<AskOutcome | 'open'> {
    const live = lives.get(id);
    const row = live ? undefined : rows.find(id);
    const whose = live?.principal ?? row?.principal;
    if (whose === undefined || (principal !== undefined && principal !== whose)) throw unknown(id);
    const asked = live ? live.stage : row?.status === 'open' ? row.stage : undefined;
    // Whoever says no says it to all that is still to come; a yes is one to what was seen.
    const seen = stage ?? (reply.action === 'accept' ? 'answer' : asked);
    if (asked !== undefined && asked !== seen) throw movedOn(id);
    if (live) return acceptance.accept(live, { reply, by, isWhole: false }, live.stage);
    return answerThere(row as AskRow, reply, by);
  }

  /** Another daemon asks it: the row carries the answer there. */
  async function answerThere(row: AskRow, reply: Reply, by: string): Promise<AskOutcome | 'open'> {
    const view = row.status === 'open' ? rows.viewOf(row) : undefined;
    if (!view || !rows.isServed(row)) throw acceptance.tooLate(row.id, row);
    await acceptance.mustFit(questionOf(view), view.stage, reply, row.server);
    const loser = await rows.claim(row.id, view.stage, reply, by);
    if (loser) throw loser.status === 'open' ? movedOn(row.id) : acceptance.tooLate(row.id, loser);
    nudge();
    const deadline = performance.now() + PATIENCE_MS;
    while (performance.now() < deadline) {
      const now = rows.find(row.id);
      if (now?.status === 'ended') return now.outcome as AskOutcome;
      if (now?.status === 'open') return 'open';
      await wait(POLL_MS);
    }
    throw new TroupeError('unavailable', `the daemon that asked ${row.id.slice(0, 8)} does not take the answer`);
  }

  return {
    list: (principal?: string) =>
      [...[...lives.values()].filter(({ stage }) => stage !== undefined).map((live) => live.view()), ...rows.ofOthers()]
        .filter((view) => principal === undefined || view.principal === principal)
        .sort((a, b) => a.openedAt - b.openedAt),
    answer,
    asked(id: string) {
      const live = lives.get(id);
      const row = live ? undefined : rows.find(id);
      return live ? live.asked() : row?.status === 'open' ? rows.askedOf(row) : undefined;
    },
    get version() {
      return version;
    },
    async changed(since: number): Promise<void> {
      if (since !== version) return;
      await new Promise<void>((resolve) => {
        const timer = setTimeout(wake, PATIENCE_MS);
        timer.unref();
        waiting.add(wake);
        function wake(): void {
          clearTimeout(timer);
          waiting.delete(wake);
          resolve();
        }
      });
    },
    touch,
    /** Another daemon has opened, answered or closed something. */
    look(): void {
      acceptance.collect(lives);
      touch();
    },
    close(): void {
      clearInterval(looking);
      touch();
    },
  } satisfies Inbox & Record<string, unknown>;
}

const unknown = (id: string): TroupeError =>
  new TroupeError('unknownName', `there is no question ${id.slice(0, 64)}; troupe inbox lists those that are open`);
