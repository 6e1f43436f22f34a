// Follows one task of a server until it is known what became of the call: asks how it is at the pace the server wants, and
// has one request for its result open, over which the server may ask. Whatever the server says, the call ends once.

import { FORGOTTEN, type Outcome } from '../../calls/call.ts';
import { now } from '../../calls/deadlines.ts';
import type { Lane } from '../../calls/lane.ts';
import type { InFlight } from '../../calls/request.ts';
import { type Failure, rpcCodeOf } from '../../protocol/failures.ts';
import { isEnded, type TaskStatus } from '../../protocol/tasks.ts';
import { readTask, type TaskReport, withoutRelated } from './task-report.ts';

export type FollowWorld = {
  readonly lane: Lane;
  readonly server: string;
  /** Asks the server about the task, and takes that long at most. Returns how to give it up. */
  readonly inquire: (method: string, settle: (outcome: Outcome) => void, mostMs?: number) => () => void;
};
export type Following = ReturnType<typeof follow>;

const POLL_MS = 1_000;
const POLL_MOST_MS = 10_000;
/** Who follows it hears of so many changes of a status that flickers. */
const SHOW_MS = 100;
/** So often the result of a task that has ended is asked for in vain. */
const MAX_FETCHES = 10;
/** The call's own deadline comes first. */
const LATER_MS = 1_000;
const UNKNOWN_TASK = -32602;
const NO_METHOD = -32601;

/** Without a status it is one of an earlier life, of which only the id is known. */
export function follow(world: FollowWorld, request: InFlight, known: Pick<TaskReport, 'taskId'> & Partial<TaskReport>) {
  const { lane, server, inquire } = world;
  const { id, call } = request;
  const { taskId } = known;
  let status: TaskStatus | undefined;
  let statusMessage: string | undefined;
  let pollMs = known.pollMs ?? POLL_MS;
  let [isOver, isPolling, isFetching] = [false, false, false];
  let [missing, failures, fetchedAt, shownAt] = [0, 0, Number.NEGATIVE_INFINITY, Number.NEGATIVE_INFINITY];
  let refusal: Buffer | undefined;
  let giveUp = (): void => {};
  let timer: NodeJS.Timeout | undefined;
  let shower: NodeJS.Timeout | undefined;

  const hasEnded = (): boolean => status !== undefined && isEnded(status);

  function hear(told: Partial<TaskReport>): void {
    if (isOver || hasEnded() || !told.status) return;
    pollMs = told.pollMs ?? pollMs;
    const isNews = told.status !== status || told.statusMessage !== statusMessage;
    ({ status, statusMessage } = told);
    if (isNews) show();
    fetchIfDue();
  }

  function show(): void {
    if (shower) return;
    const waitMs = shownAt + SHOW_MS - now();
    if (waitMs > 0) shower = setTimeout(tell, waitMs).unref();
    else tell();
  }

  function tell(): void {
    shower = undefined;
    shownAt = now();
    if (status) call.onUpstream?.({ taskId, status, ...(statusMessage !== undefined && { statusMessage }) });
  }

  function tick(): void {
    timer = setTimeout(tick, pollMs).unref();
    poll();
    fetchIfDue();
  }

  function poll(): void {
    if (isPolling || hasEnded()) return;
    isPolling = true;
    inquire('tasks/get', polled, POLL_MOST_MS);
  }

  function polled(outcome: Outcome): void {
    isPolling = false;
    if (isOver) return;
    if (!outcome.ok) return unanswered(outcome.failure);
    const told = readTask(outcome.result);
    if (told?.taskId !== taskId) return;
    missing = 0;
    hear(told);
  }

  /** Not while its result may be on the way: a server may forget a task as soon as it has given its result. */
  function unanswered(failure: Failure): void {
    const code = failure.error ? rpcCodeOf(failure) : 0;
    if (code !== UNKNOWN_TASK && (code !== NO_METHOD || isFetching)) return;
    if (isFetching && ++missing < 2) return;
    if (refusal) lane.answer(id, 'error', refusal);
    else lane.fail(id, forgotten());
  }

  /** Whoever waits for input asks for it there. */
  function fetchIfDue(): void {
    const isWanted = hasEnded() || status === 'input_required';
    if (isWanted && !isOver && !isFetching && now() >= fetchedAt + pollMs) fetch();
  }

  function fetch(): void {
    const isLast = hasEnded();
    isFetching = true;
    fetchedAt = now();
    const mostMs = Math.max(Math.ceil(request.latestDeadline - fetchedAt), 0) + LATER_MS;
    const settle = (outcome: Outcome): void => {
      isFetching = false;
      if (!isOver) fetched(outcome, isLast);
    };
    giveUp = inquire('tasks/result', settle, mostMs);
  }

  /** An error is the outcome of the call only if the task had ended; before, it says that there is no outcome yet. */
  function fetched(outcome: Outcome, isLast: boolean): void {
    if (outcome.ok) return void lane.answer(id, 'result', withoutRelated(outcome.result));
    const { failure } = outcome;
    const isUnknown = [UNKNOWN_TASK, NO_METHOD].includes(rpcCodeOf(failure));
    if (failure.code === 'tooLarge') lane.fail(id, failure);
    else if (failure.error && isLast) lane.answer(id, 'error', (isUnknown && refusal) || failure.error);
    else if (failure.error) {
      if (!isUnknown) refusal = failure.error;
      poll();
    } else if (isLast && ++failures >= MAX_FETCHES) lane.fail(id, { ...failure, delivery: 'outcome unknown' });
  }

  function forgotten(): Failure {
    const message = `server ${server} no longer knows the task that it made of ${call.name}; the outcome is unknown`;
    return { code: 'lost', delivery: 'outcome unknown', message, server, state: FORGOTTEN };
  }

  hear(known);
  if (!isFetching) fetch();
  if (!status) poll();
  timer = setTimeout(tick, pollMs).unref();

  return {
    taskId,
    /** What the server says of it, asked or not. */
    hear,
    stop(): void {
      isOver = true;
      clearTimeout(timer);
      clearTimeout(shower);
      giveUp();
    },
  };
}
