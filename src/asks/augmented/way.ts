// How a server hears of its question: once and in the answer, or of a task, which it is told of first and asks for later. A
// task is known to the server only after its question is on the disk.

import type { Answer } from '../../calls/call.ts';
import { now } from '../../calls/deadlines.ts';
import { textAt } from '../../protocol/json.ts';
import type { Asked } from '../../servers/session.ts';
import type { AskOutcome, Question } from '../ask.ts';
import { answerOf, refused } from '../replies.ts';
import type { AskedTask } from './task.ts';

export type WayBack = {
  /** An answer that comes later is of no use, by the clock of deadlines. */
  readonly latestDeadline: number;
  /** It is being asked, and can be withdrawn so. */
  opened(withdraw: () => void): void;
  /** It is on the disk, or cannot be. */
  recorded(isOnDisk: boolean): void;
  /** It is not asked at all. */
  refused(answer: Answer): void;
  answer(answer: Answer, outcome: AskOutcome): void;
};

export const plainWay = (answer: Asked['answer']): WayBack => ({
  ...{ latestDeadline: Number.POSITIVE_INFINITY, opened() {}, recorded() {}, refused: answer, answer },
});

export type TaskWayOptions = {
  readonly asked: Pick<Asked, 'answer' | 'notify' | 'signal' | 'closed'>;
  readonly question: Question;
  readonly task: AskedTask;
  /** It is not kept any longer. */
  readonly drop: () => void;
};

const MESSAGE_CHARACTERS = 500;
/** What nobody has answered ends so long before its task is gone, so that a server which looks now and then sees how. */
const FETCH_MS = 5_000;

export function taskWay({ asked, question, task, drop }: TaskWayOptions): WayBack & { cancel(why: string): void } {
  const created = task.view();
  let withdraw = (): void => {};
  let isKnown = false;

  function end(how: 'completed' | 'failed' | 'cancelled', answer: Answer, why?: string): boolean {
    const isNew = task.end(how, answer, why);
    if (isNew) tell();
    return isNew;
  }

  /** Only of a task that the server knows, and while it is there. */
  function tell(): void {
    if (isKnown && !asked.closed.aborted) asked.notify('notifications/tasks/status', json(task.view()));
  }

  /** Who has agreed to visit an address is not called back: that question has its answer. */
  function cancel(why: string): void {
    if (end('cancelled', cancelled(question, why), why)) withdraw();
    if (!isKnown) asked.answer(refused(-32603, UNRECORDED));
  }

  return {
    cancel,
    latestDeadline: now() + created.ttl - Math.min(FETCH_MS, created.ttl / 2),
    opened(how) {
      withdraw = how;
    },
    recorded(isOnDisk) {
      if (!isOnDisk || asked.signal.aborted) {
        drop();
        return cancel('it was not recorded');
      }
      // As it was made, for every task begins at work; what became of it since is told after that.
      asked.answer({ ok: true, result: json({ task: created }) });
      isKnown = true;
      if (task.isEnded) tell();
    },
    refused(answer) {
      drop();
      asked.answer(answer);
    },
    answer(answer, outcome) {
      if (outcome === 'withdrawn') end('cancelled', answer, 'the call it was asked for is over');
      else if (answer.ok) end('completed', answer);
      else end('failed', answer, textAt(answer.error, ['message'])?.slice(0, MESSAGE_CHARACTERS));
    },
  };
}

const UNRECORDED = 'troupe cannot record the question now; its owner sees why in troupe status';

/** What the plain question would have been answered with. */
const cancelled = (question: Question, why: string): Answer =>
  question.kind === 'sampling' ? refused(-1, why) : answerOf(question, 'withdrawn', undefined);

const json = (value: object): Buffer => Buffer.from(JSON.stringify(value));
