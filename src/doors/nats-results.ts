// Whoever waits on NATS for the result of a task. Nobody there says that they have left, so a plain request is kept for a
// bounded time and a stream for as long as somebody reads it; neither is left hanging when the daemon stops.

import { setTimeout as wait } from 'node:timers/promises';
import type { Msg, NatsConnection, Subscription } from 'nats';
import type { Replies, ReplyStream } from '../bus/replies.ts';
import type { Subjects, TaskRequest } from '../bus/subjects.ts';
import type { Outcome, TaskView } from '../calls/call.ts';
import { failureOf, TroupeError } from '../protocol/failures.ts';
import type { Tasks } from '../tasks/task.ts';
import { createQuota } from './quota.ts';
import { wishesOf } from './requests.ts';

/** A question that somebody is waiting to have answered, and the task that waits for it. */
export type OpenAsk = {
  readonly id: string;
  readonly kind: string;
  readonly expiresAt: number;
  readonly task?: string;
};
export type TaskResultsOptions = {
  readonly nc: NatsConnection;
  readonly subjects: Subjects;
  readonly tasks: Pick<Tasks, 'get' | 'outcome'>;
  readonly inbox: { list(principal: string): readonly OpenAsk[] };
  readonly reply: Replies;
  readonly onTrouble: (error: unknown) => void;
};
type Progress = NonNullable<TaskView['progress']>;

const PLAIN_MS = 3_600_000;
const LONGEST_MS = 24 * PLAIN_MS;
/** Who may wait at once, of each caller. */
const MAX_WAITING = 10_000;
const FLUSH_MS = 500;
const MAX_PROGRESS_BYTES = 65_536;

export function taskResults({ nc, subjects, tasks, inbox, reply, onTrouble }: TaskResultsOptions) {
  const quota = createQuota(MAX_WAITING);
  const waiting = new Set<() => void>();
  let isClosed = false;

  /** Rejects where there is nothing to wait for; from then on whatever goes wrong is an answer. */
  async function answer(request: TaskRequest, msg: Msg): Promise<void> {
    const { id, caller } = request;
    const { isStream, timeoutMs } = wishesOf(msg);
    const view = isStream ? tasks.get(id, caller) : undefined;
    const giveBack = quota.take(caller);
    if (!giveBack)
      throw new TroupeError('busy', `${MAX_WAITING} results are waited for already; ask for fewer at once`);
    const leaving = new AbortController();
    const stop = (): void => leaving.abort(stopping(id));
    waiting.add(stop);
    if (isClosed) stop();
    const patienceMs = Math.min(timeoutMs ?? (isStream ? LONGEST_MS : PLAIN_MS), LONGEST_MS);
    const timer = setTimeout(() => leaving.abort(tooSlow(request, patienceMs)), patienceMs);
    try {
      const stream = isStream ? reply.stream(msg, () => leaving.abort(GONE)) : undefined;
      const told = stream && view && tell(view, stream);
      const outcome = await tasks.outcome(id, caller, leaving.signal).catch((error: unknown) => {
        if (!isStream && isNotHere(error)) throw error;
        return asOutcome(error);
      });
      await told?.end();
      await (stream ? stream.end(outcome) : reply.answer(msg, outcome));
    } finally {
      clearTimeout(timer);
      waiting.delete(stop);
      giveBack();
    }
  }

  /** It is the waiting that has failed, not the task, and the state says so: a task may come to the same error. */
  const asOutcome = (error: unknown): Outcome => {
    const failure = failureOf(error, onTrouble);
    return { ok: false, failure: failure.code === 'unknownName' ? failure : { ...failure, state: 'working' } };
  };

  const tooSlow = ({ id, caller, node }: TaskRequest, ms: number): TroupeError => {
    const subject = subjects.task('get', id, node === undefined ? { caller } : { node });
    return new TroupeError('timeout', `task ${id} goes on after ${ms} ms; ask again, or see how it is with ${subject}`);
  };

  /** What is told beside the result must not cost anybody the result. */
  const attempt = (work: () => void): void => {
    try {
      work();
    } catch (error) {
      if (!(error instanceof TroupeError)) onTrouble(error);
    }
  };

  /** Its daemon may be another one: what happens meanwhile is heard on the bus. */
  function tell({ taskId: id, principal, server, progress }: TaskView, stream: ReplyStream) {
    let newest: Progress | undefined;
    const asked = new Set<string>();
    const tellProgress = (next: Progress | undefined): void => {
      if (!next || (newest && next.progress <= newest.progress)) return;
      newest = next;
      stream.signal({ type: 'progress', ...next });
    };
    const tellAsks = (): void => {
      for (const { id: ask, kind, expiresAt } of inbox.list(principal).filter(({ task }) => task === id)) {
        if (!asked.has(ask)) stream.signal({ type: 'ask', id: ask, kind, expiresAt });
        asked.add(ask);
      }
    };
    const subscriptions: Subscription[] = [];
    const hear = (subject: string, take: (msg: Msg) => void): void => {
      const callback = (error: Error | null, msg: Msg) => (error ? onTrouble(error) : attempt(() => take(msg)));
      subscriptions.push(nc.subscribe(subject, { callback }));
    };
    stream.ack(id);
    attempt(() => {
      hear(subjects.progress(id, principal), (msg) => tellProgress(progressIn(msg.data)));
      hear(subjects.askOpened(server, principal), tellAsks);
      tellProgress(progress);
      tellAsks();
    });
    return {
      /** The last word on its progress may be slower on the bus than the result on the disk; it is there after a flush. */
      async end(): Promise<void> {
        await Promise.race([nc.flush(), wait(FLUSH_MS, undefined, { ref: false })]).catch(onTrouble);
        for (const subscription of subscriptions) subscription.unsubscribe();
      },
    };
  }

  return {
    answer,
    /** Whoever waits is told at once, and so is whoever still comes. */
    close(): void {
      isClosed = true;
      for (const stop of waiting) stop();
    },
  };
}

/** Nothing has been told to a plain request, so others may still know the task. */
const isNotHere = (error: unknown): boolean =>
  error instanceof TroupeError && (error.code === 'unknownName' || error.code === 'busy');

const GONE = new TroupeError('cancelled', 'nobody reads the stream any more');

const stopping = (id: string): TroupeError =>
  new TroupeError(
    'unavailable',
    `the daemon that was asked for the result of task ${id} stops; the task is kept, ask again`,
  );

/** On the bare tree anybody may publish: what is no progress is nothing. */
function progressIn(data: Uint8Array): Progress | undefined {
  if (data.length > MAX_PROGRESS_BYTES) return undefined;
  try {
    const { progress, total, message } = JSON.parse(Buffer.from(data).toString());
    if (typeof progress !== 'number') return undefined;
    return {
      progress,
      ...(typeof total === 'number' && { total }),
      ...(typeof message === 'string' && { message }),
    };
  } catch {
    return undefined; // no JSON, so no progress
  }
}
