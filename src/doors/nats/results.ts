// Results of tasks that callers on NATS wait for. No caller there says that it has left, so a plain request is kept for a
// bounded time and a stream for as long as somebody reads it; both are answered when the daemon stops.

import { setTimeout as wait } from 'node:timers/promises';
import type { Msg, Subscription } from 'nats';
import type { AskView } from '../../asks/ask.ts';
import { noticeOf } from '../../asks/notice.ts';
import type { ReplyStream } from '../../bus/replies.ts';
import type { Subjects, TaskRequest } from '../../bus/subjects.ts';
import type { Outcome, TaskView } from '../../calls/call.ts';
import { failureOf, TroupeError } from '../../protocol/failures.ts';
import type { Tasks } from '../../tasks/task.ts';
import { createQuota } from '../quota.ts';
import { extrasOf, treeOf } from './requests.ts';
import type { Responder } from './responder.ts';

/** A question that somebody is waiting to have answered, and the task that waits for it. */
export type OpenAsk = Pick<AskView, 'id' | 'kind' | 'server' | 'tool' | 'expiresAt' | 'task'>;
export type TaskResultsOptions = {
  readonly subjects: Subjects;
  readonly ports: {
    readonly tasks: Pick<Tasks, 'get' | 'outcome'>;
    readonly inbox: { list(principal: string): readonly OpenAsk[] };
  };
};
type Progress = NonNullable<TaskView['progress']>;

const PLAIN_MS = 3_600_000;
const LONGEST_MS = 24 * PLAIN_MS;
/** How many may wait at once, of each caller. */
const MAX_WAITING = 10_000;
const FLUSH_MS = 500;
const MAX_PROGRESS_BYTES = 65_536;

export function taskResults(responder: Responder, options: TaskResultsOptions) {
  const { reply, onTrouble } = responder;
  const { tasks } = options.ports;
  const quota = createQuota(MAX_WAITING);

  /** Throws while another daemon may still know the task; from then on whatever goes wrong is an answer. */
  async function answer(request: TaskRequest, msg: Msg): Promise<undefined> {
    const { id, caller } = request;
    const { isStream, timeoutMs } = extrasOf(msg);
    const view = isStream ? tasks.get(id, caller) : undefined;
    const giveBack = quota.take(caller);
    if (!giveBack)
      throw new TroupeError('busy', `${MAX_WAITING} results are waited for already; ask for fewer at once`);
    const leaving = new AbortController();
    const forget = responder.onClose(() => leaving.abort(stopping(id)));
    const patienceMs = Math.min(timeoutMs ?? (isStream ? LONGEST_MS : PLAIN_MS), LONGEST_MS);
    const timer = setTimeout(() => leaving.abort(tooSlow(options.subjects, request, patienceMs)), patienceMs);
    try {
      const stream = isStream ? reply.stream(msg, () => leaving.abort(GONE)) : undefined;
      const told = stream && view && tellMeanwhile(responder, options, view, stream);
      const outcome = await tasks.outcome(id, caller, leaving.signal).catch((error: unknown) => {
        if (!isStream && isNotHere(error)) throw error;
        return failedWaiting(error, onTrouble);
      });
      await told?.end();
      await (stream ? stream.end(outcome) : reply.answer(msg, outcome));
    } finally {
      clearTimeout(timer);
      forget();
      giveBack();
    }
    return undefined;
  }

  return { answer };
}

/**
 * Tells a stream of the progress and the questions of its task until the result is there. The task may run in another daemon:
 * both are heard on the bus.
 */
function tellMeanwhile(
  { nc, onTrouble }: Responder,
  { subjects, ports }: TaskResultsOptions,
  { taskId, principal, server, progress }: TaskView,
  stream: ReplyStream,
) {
  let newest: Progress | undefined;
  const asked = new Set<string>();
  const subscriptions: Subscription[] = [];

  const tellProgress = (next: Progress | undefined): void => {
    if (!next || (newest && next.progress <= newest.progress)) return;
    newest = next;
    stream.signal({ type: 'progress', ...next });
  };
  const tellAsks = (): void => {
    for (const view of ports.inbox.list(principal).filter(({ task }) => task === taskId)) {
      if (!asked.has(view.id)) stream.signal(noticeOf(view));
      asked.add(view.id);
    }
  };
  /** Trouble with news must not cost the caller the result. */
  const attempt = (work: () => void): void => {
    try {
      work();
    } catch (error) {
      if (!(error instanceof TroupeError)) onTrouble(error);
    }
  };
  const hear = (subject: string, take: (msg: Msg) => void): void => {
    const callback = (error: Error | null, msg: Msg) => (error ? onTrouble(error) : attempt(() => take(msg)));
    subscriptions.push(nc.subscribe(subject, { callback }));
  };

  stream.ack(taskId);
  attempt(() => {
    hear(subjects.progress(taskId, principal), (msg) => tellProgress(progressIn(msg.data)));
    hear(subjects.askOpened(server, principal), tellAsks);
    tellProgress(progress);
    tellAsks();
  });
  return {
    /** The last progress may be slower on the bus than the result on the disk; after a flush it has arrived. */
    async end(): Promise<void> {
      await Promise.race([nc.flush(), wait(FLUSH_MS, undefined, { ref: false })]).catch(onTrouble);
      for (const subscription of subscriptions) subscription.unsubscribe();
    },
  };
}

/** Nothing has been told to a plain request, so another daemon may still answer it. */
const isNotHere = (error: unknown): boolean =>
  error instanceof TroupeError && (error.code === 'unknownName' || error.code === 'busy');

/** It is the waiting that has failed, not the task, and the state says so: a task may come to the same error. */
function failedWaiting(error: unknown, onTrouble: (error: unknown) => void): Outcome {
  const failure = failureOf(error, onTrouble);
  return { ok: false, failure: failure.code === 'unknownName' ? failure : { ...failure, state: 'working' } };
}

const GONE = new TroupeError('cancelled', 'nobody reads the stream any more');

const stopping = (id: string): TroupeError =>
  new TroupeError(
    'unavailable',
    `the daemon that was asked for the result of task ${id} stops; the task is kept, ask again`,
  );

function tooSlow(subjects: Subjects, request: TaskRequest, ms: number): TroupeError {
  const { id } = request;
  const subject = subjects.task('get', id, treeOf(request));
  return new TroupeError('timeout', `task ${id} goes on after ${ms} ms; ask again, or see how it is with ${subject}`);
}

/** On the bare tree anybody may publish: what is not the JSON of a progress is ignored. */
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
    return undefined;
  }
}
