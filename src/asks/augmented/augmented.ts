// Questions that a server of 2025-11-25 asks as tasks: it hears at once that its question is taken, and comes for the answer.
// The question is an ask like any other. Its task lives as long as the server wishes, at most (and if it does not say) as long
// as a question may take and five minutes more to fetch the answer; it is in memory, like the connection it belongs to.

import type { AskSettings } from '../../config/schema.ts';
import { ERA_FACTS } from '../../protocol/eras.ts';
import type { Member } from '../../servers/member.ts';
import type { Asked } from '../../servers/session.ts';
import type { Question } from '../ask.ts';
import type { Refusal } from '../reading.ts';
import { createKept } from './kept.ts';
import { createOperations } from './operations.ts';
import { createAskedTask } from './task.ts';
import { taskWay, type WayBack } from './way.ts';
import { readWish, type Wish } from './wish.ts';

export type Augmented = ReturnType<typeof createAugmented>;

const FETCH_MS = 300_000;
/** Node fires a longer timer at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export function createAugmented(settings: () => Pick<AskSettings, 'timeoutMs' | 'maxOpen'>) {
  const kept = createKept(() => settings().maxOpen);
  const serve = createOperations(kept);
  const watched = new WeakSet<AbortSignal>();

  /** Once for each connection. */
  function watch(member: Member, closed: AbortSignal): void {
    if (watched.has(closed)) return;
    watched.add(closed);
    closed.addEventListener('abort', () => lost(member), { once: true });
  }

  /** Nobody waits there for what is still open. What has ended can be fetched over a new connection, but not by a new process. */
  function lost(member: Member): void {
    for (const { task, cancel } of kept.of(member)) {
      cancel('the connection to its server was lost');
      if (member.config.transport === 'stdio') kept.drop(member, task.id);
    }
  }

  return {
    /** Answers a server's `tasks/…`; false when this is none of them, or comes from a version that has no tasks. */
    serve: (member: Member, asked: Asked): boolean => hasTasks(member) && serve(member, asked),

    /** Whether a question is to be a task; in versions that have none it never is. */
    wishOf(member: Member, params: Buffer): Wish | Refusal | undefined {
      const mostMs = Math.min(settings().timeoutMs + FETCH_MS, LONGEST_TIMER_MS);
      return hasTasks(member) ? readWish(params, mostMs) : undefined;
    },

    /** Nothing when so many are kept that there is no room for it. */
    begin(member: Member, asked: Asked, question: Question, { ttlMs }: Wish): WayBack | undefined {
      const task = createAskedTask(ttlMs);
      const { cancel, ...way } = taskWay({ asked, question, task, drop: () => kept.drop(member, task.id) });
      if (!kept.add(member, { task, cancel }, ttlMs)) return undefined;
      watch(member, asked.closed);
      return way;
    },
  };
}

const hasTasks = ({ facts }: Member): boolean => facts !== undefined && ERA_FACTS[facts.era].tasks;
