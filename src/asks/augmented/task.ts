// One question that its server asked as a task: how it is, and what it came to. It ends once, and whoever waits for its end
// then has exactly what the plain question would have been answered with.

import { randomBytes } from 'node:crypto';
import type { TaskEnding } from '../../../machines/task.ts';
import type { Answer } from '../../calls/call.ts';
import { isEnded, type Task, type TaskStatus } from '../../protocol/tasks.ts';

export type AskedTask = ReturnType<typeof createAskedTask>;
export type Listener = (answer: Answer) => void;

/** People answer, so nothing is gained by looking more often. */
const POLL_MS = 1_000;

export function createAskedTask(ttlMs: number) {
  const id = randomBytes(16).toString('hex');
  const createdAt = new Date().toISOString();
  const waiting = new Set<Listener>();
  let status: TaskStatus = 'working';
  let lastUpdatedAt = createdAt;
  let statusMessage: string | undefined;
  let answer: Answer | undefined;

  return {
    id,
    get isEnded(): boolean {
      return isEnded(status);
    },
    view: (): Task => ({
      ...{ taskId: id, status, ...(statusMessage !== undefined && { statusMessage }) },
      ...{ createdAt, lastUpdatedAt, ttl: ttlMs, pollInterval: POLL_MS },
    }),
    /** False when it has ended before: then nothing changes any more. */
    end(how: TaskEnding, given: Answer, message?: string): boolean {
      if (isEnded(status)) return false;
      answer = given;
      lastUpdatedAt = new Date().toISOString();
      statusMessage = message;
      status = how;
      for (const listener of waiting) listener(given);
      waiting.clear();
      return true;
    },
    /** Told once what it came to, at once if it has ended. Returns how to wait no longer. */
    whenEnded(listener: Listener): () => void {
      if (answer) listener(answer);
      else waiting.add(listener);
      return () => waiting.delete(listener);
    },
  };
}
