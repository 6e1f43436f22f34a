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

const POLL_MS = 1_000;
const POLL_MOST_MS = 10_000;
/** A status that flickers is shown at most once in that time. */
const SHOW_MS = 100;
/** How often the result of a task that has ended is asked for in vain. */
const MAX_FETCHES = 10;
/** A fetch may take that much longer than the call, so that the call's own deadline comes first. */
const LATER_MS = 1_000;
const UNKNOWN_TASK = -32602;
const NO_METHOD = -32601;

export class Following {
  readonly taskId: string;
  readonly #world: FollowWorld;
  readonly #request: InFlight;
  readonly #shown = paced(SHOW_MS, () => this.#show());
  #status: TaskStatus | undefined;
  #statusMessage: string | undefined;
  #pollMs = POLL_MS;
  #timer: NodeJS.Timeout | undefined;
  #isOver = false;
  #isPolling = false;
  #isFetching = false;
  #fetchedAt = Number.NEGATIVE_INFINITY;
  #giveUpFetch = (): void => {};
  /** How often the server did not know the task while its result may have been on the way. */
  #misses = 0;
  /** How often the result could not be fetched though the task had ended. */
  #failedFetches = 0;
  /** The error that the server gave instead of a result before the task had ended. */
  #refusal: Buffer | undefined;

  constructor(world: FollowWorld, request: InFlight, taskId: string) {
    this.#world = world;
    this.#request = request;
    this.taskId = taskId;
  }

  /** A task that an earlier daemon followed is known by its id alone, without a status. */
  start(known: Partial<TaskReport>): void {
    this.#pollMs = known.pollMs ?? POLL_MS;
    this.hear(known);
    if (!this.#isFetching) this.#fetch();
    if (!this.#status) this.#poll();
    this.#timer = setTimeout(() => this.#tick(), this.#pollMs).unref();
  }

  stop(): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
    this.#shown.stop();
    this.#giveUpFetch();
  }

  /** What the server reports of the task, asked or not. */
  hear({ status, statusMessage, pollMs }: Partial<TaskReport>): void {
    if (this.#isOver || this.#hasEnded() || !status) return;
    this.#pollMs = pollMs ?? this.#pollMs;
    const isNews = status !== this.#status || statusMessage !== this.#statusMessage;
    this.#status = status;
    this.#statusMessage = statusMessage;
    if (isNews) this.#shown.tell();
    this.#fetchIfDue();
  }

  #hasEnded(): boolean {
    return this.#status !== undefined && isEnded(this.#status);
  }

  #show(): void {
    const [taskId, status, statusMessage] = [this.taskId, this.#status, this.#statusMessage];
    if (status)
      this.#request.call.onUpstream?.({ taskId, status, ...(statusMessage !== undefined && { statusMessage }) });
  }

  #tick(): void {
    this.#timer = setTimeout(() => this.#tick(), this.#pollMs).unref();
    this.#poll();
    this.#fetchIfDue();
  }

  #poll(): void {
    if (this.#isPolling || this.#hasEnded()) return;
    this.#isPolling = true;
    this.#world.inquire('tasks/get', (outcome) => this.#polled(outcome), POLL_MOST_MS);
  }

  #polled(outcome: Outcome): void {
    this.#isPolling = false;
    if (this.#isOver) return;
    if (!outcome.ok) return this.#unanswered(outcome.failure);
    const report = readTask(outcome.result);
    if (report?.taskId !== this.taskId) return;
    this.#misses = 0;
    this.hear(report);
  }

  /** A server may forget a task as soon as it has given its result: while that may be on the way, one miss does not count. */
  #unanswered(failure: Failure): void {
    const { lane } = this.#world;
    const code = failure.error ? rpcCodeOf(failure) : 0;
    if (code !== UNKNOWN_TASK && (code !== NO_METHOD || this.#isFetching)) return;
    if (this.#isFetching && ++this.#misses < 2) return;
    if (this.#refusal) lane.answer(this.#request.id, 'error', this.#refusal);
    else lane.fail(this.#request.id, this.#forgotten());
  }

  /** A server that waits for input asks for it over the open request for the result. */
  #fetchIfDue(): void {
    const isWanted = this.#hasEnded() || this.#status === 'input_required';
    if (isWanted && !this.#isOver && !this.#isFetching && now() >= this.#fetchedAt + this.#pollMs) this.#fetch();
  }

  #fetch(): void {
    const isLast = this.#hasEnded();
    this.#isFetching = true;
    this.#fetchedAt = now();
    const mostMs = Math.max(Math.ceil(this.#request.latestDeadline - this.#fetchedAt), 0) + LATER_MS;
    const settle = (outcome: Outcome): void => {
      this.#isFetching = false;
      if (!this.#isOver) this.#fetched(outcome, isLast);
    };
    this.#giveUpFetch = this.#world.inquire('tasks/result', settle, mostMs);
  }

  /** An error is the outcome of the call only if the task had ended; before, it says that there is no outcome yet. */
  #fetched(outcome: Outcome, isLast: boolean): void {
    const { lane } = this.#world;
    const { id } = this.#request;
    if (outcome.ok) return void lane.answer(id, 'result', withoutRelated(outcome.result));
    const { failure } = outcome;
    const isUnknown = [UNKNOWN_TASK, NO_METHOD].includes(rpcCodeOf(failure));
    if (failure.code === 'tooLarge') lane.fail(id, failure);
    else if (failure.error && isLast) lane.answer(id, 'error', (isUnknown && this.#refusal) || failure.error);
    else if (failure.error) {
      if (!isUnknown) this.#refusal = failure.error;
      this.#poll();
    } else if (isLast && ++this.#failedFetches >= MAX_FETCHES)
      lane.fail(id, { ...failure, delivery: 'outcome unknown' });
  }

  #forgotten(): Failure {
    const { server } = this.#world;
    const { name } = this.#request.call;
    const message = `server ${server} no longer knows the task that it made of ${name}; the outcome is unknown`;
    return { code: 'lost', delivery: 'outcome unknown', message, server, state: FORGOTTEN };
  }
}

/** Tells at once when the last time is long enough ago, else at the end of the interval. */
function paced(intervalMs: number, tell: () => void) {
  let toldAt = Number.NEGATIVE_INFINITY;
  let timer: NodeJS.Timeout | undefined;
  const tellNow = (): void => {
    timer = undefined;
    toldAt = now();
    tell();
  };
  return {
    tell(): void {
      if (timer) return;
      const waitMs = toldAt + intervalMs - now();
      if (waitMs > 0) timer = setTimeout(tellNow, waitMs).unref();
      else tellNow();
    },
    stop: (): void => clearTimeout(timer),
  };
}
