// How a server hears of its question: once and in the answer, or of a task, which it is told of first and asks for later. What
// a task comes to is exactly what the plain question would have been answered with.

import { createActor } from 'xstate';
import { questionTaskMachine, type TaskEnd } from '../../machines/question-task.ts';
import type { Answer } from '../calls/call.ts';
import { type Span, spansOf, textAt } from '../protocol/json.ts';
import type { Task } from '../protocol/tasks.ts';
import type { Asked } from '../servers/connection/session.ts';
import type { World } from '../world/world.ts';
import type { AskOutcome, Question } from './ask.ts';
import type { Refusal } from './reading.ts';
import { answerOf, refused } from './replies.ts';

/** What becomes of a server's question, for that server. */
export type ServerReply = {
  /** An answer that comes later is of no use, by the clock of deadlines. */
  readonly latestDeadline: number;
  /** The row of the question is on the disk, or cannot be. */
  recorded(isOnDisk: boolean): void;
  /** The question is not asked at all. */
  refused(answer: Answer): void;
  answer(answer: Answer, outcome: AskOutcome): void;
};

export const plainReply = (answer: Asked['answer']): ServerReply => ({
  latestDeadline: Number.POSITIVE_INFINITY,
  recorded() {},
  refused: answer,
  answer,
});

export type QuestionTask = {
  readonly id: string;
  readonly isEnded: boolean;
  readonly reply: ServerReply;
  view(): Task;
  /** Ends the task, if it has not ended, and withdraws its question. */
  cancel(why: string): void;
  /** Told once what the task came to, at once if it has ended. Returns how to wait no longer. */
  whenEnded(listener: (answer: Answer) => void): () => void;
};

export type QuestionTaskOptions = {
  readonly asked: Pick<Asked, 'answer' | 'notify' | 'signal' | 'closed'>;
  readonly question: Question;
  readonly ttlMs: number;
  readonly world: World;
  readonly withdraw: () => void;
  /** The task is not kept any longer. */
  readonly drop: () => void;
};

const MESSAGE_CHARACTERS = 500;
/** People answer, so nothing is gained by looking more often. */
const POLL_MS = 1_000;
/** A question that nobody answers ends so long before its task is gone, so that a server which polls sees how it ended. */
const FETCH_MS = 5_000;
const UNRECORDED = 'troupe cannot record the question now; its owner sees why in troupe status';

export function createQuestionTask(options: QuestionTaskOptions): QuestionTask {
  const { asked, question, ttlMs, world, drop } = options;
  const id = world.random(16).toString('hex');
  const createdAt = world.date();
  const waiting = new Set<(answer: Answer) => void>();
  const viewOf = (end: TaskEnd | undefined): Task => ({
    taskId: id,
    status: end?.how ?? 'working',
    ...(end?.message !== undefined && { statusMessage: end.message }),
    createdAt: new Date(createdAt).toISOString(),
    lastUpdatedAt: new Date(end?.at ?? createdAt).toISOString(),
    ttl: ttlMs,
    pollInterval: POLL_MS,
  });
  const machine = questionTaskMachine.provide({
    actions: {
      // As it was made, for every task begins at work; what became of it since is told after that.
      tellCreated: () => asked.answer({ ok: true, result: json({ task: viewOf(undefined) }) }),
      tellStatus({ context }) {
        if (!asked.closed.aborted) asked.notify('notifications/tasks/status', json(viewOf(context.end)));
      },
      refuse: () => asked.answer(refused(-32603, UNRECORDED)),
      settle({ context }) {
        for (const listener of waiting) listener(context.end?.answer as Answer);
        waiting.clear();
      },
      withdrawQuestion: options.withdraw,
      drop,
    },
  });
  const actor = createActor(machine).start();
  const end = (): TaskEnd | undefined => actor.getSnapshot().context.end;
  const send = (event: Parameters<typeof actor.send>[0]): void =>
    void (actor.getSnapshot().status === 'active' && actor.send(event));
  const ending = (how: TaskEnd['how'], answer: Answer, message?: string): TaskEnd => ({
    how,
    answer,
    message,
    at: world.date(),
  });
  const cancelled = (why: string): TaskEnd => ending('cancelled', cancelledAnswer(question, why), why);

  return {
    id,
    get isEnded() {
      return end() !== undefined;
    },
    view: () => viewOf(end()),
    cancel: (why) => send({ type: 'cancelled', end: cancelled(why) }),
    whenEnded(listener) {
      const ended = end();
      if (ended) listener(ended.answer as Answer);
      else waiting.add(listener);
      return () => waiting.delete(listener);
    },
    reply: {
      latestDeadline: world.now() + ttlMs - Math.min(FETCH_MS, ttlMs / 2),
      recorded(isOnDisk) {
        const isKnown = isOnDisk && !asked.signal.aborted;
        send(isKnown ? { type: 'recorded' } : { type: 'unrecorded', end: cancelled('it was not recorded') });
      },
      refused(answer) {
        drop();
        asked.answer(answer);
      },
      answer: (answer, outcome) => send({ type: 'ended', end: ending(...endOf(answer, outcome)) }),
    },
  };
}

function endOf(answer: Answer, outcome: AskOutcome): [how: TaskEnd['how'], answer: Answer, message?: string] {
  if (outcome === 'withdrawn') return ['cancelled', answer, 'the call it was asked for is over'];
  if (answer.ok) return ['completed', answer];
  const message = textAt(answer.error, ['message'])?.slice(0, MESSAGE_CHARACTERS);
  return message === undefined ? ['failed', answer] : ['failed', answer, message];
}

/** What the plain question would have been answered with. */
const cancelledAnswer = (question: Question, why: string): Answer =>
  question.kind === 'sampling' ? refused(-1, why) : answerOf(question, 'withdrawn', undefined);

const json = (value: object): Buffer => Buffer.from(JSON.stringify(value));

// ── What a server says of the task that it wants ─────────────────────────────

export type TaskWanted = { readonly ttlMs: number };

/** Shorter, and it might be gone before the server has heard of it. */
const LEAST_MS = 1_000;

/**
 * Without a `task` it is a plain question. A task lives as long as the server says, and without a word of that, or if it shall
 * live for ever, as long as tasks may. Nothing else is read.
 */
export function readTaskWanted(params: Buffer, mostMs: number): TaskWanted | Refusal | undefined {
  const task = only(params, spansOf(params, 'task'));
  if (task === undefined) return undefined;
  if (typeof task === 'string' || task[0] !== OPEN_BRACE)
    return invalid('task must be an object such as {"ttl":60000}');
  const ttl = only(task, spansOf(task, 'ttl'));
  if (ttl === undefined || ttl.toString('latin1', 0, 5) === 'null') return { ttlMs: mostMs };
  const ttlMs = typeof ttl === 'string' || !isNumber(ttl) ? Number.NaN : Number(ttl.toString('latin1'));
  if (!(ttlMs > 0)) return invalid('the ttl of a task is a number of milliseconds above 0');
  return { ttlMs: Math.max(LEAST_MS, Math.min(Math.round(ttlMs), mostMs)) };
}

const OPEN_BRACE = 0x7b;
const MAX_DIGITS = 400;

/** A member that is given twice is refused: readers of JSON disagree on which one counts. */
const only = (object: Buffer, [span, another]: Span[]): Buffer | 'twice' | undefined =>
  another ? 'twice' : span && object.subarray(span.from, span.to);

/** JSON has no other values that begin so. */
const isNumber = (value: Buffer): boolean => value.length <= MAX_DIGITS && /^-?\d/.test(value.toString('latin1', 0, 2));

const invalid = (message: string): Refusal => ({ code: -32602, message });
