// What a server does with its tasks: looks at one, waits for what it comes to, lists them, cancels one. An id that is another
// process's is answered exactly as one that there is not.

import type { Answer } from '../../calls/call.ts';
import { withMeta } from '../../protocol/edit.ts';
import { spansOf, textAt } from '../../protocol/json.ts';
import { RELATED_TASK } from '../../protocol/tasks.ts';
import type { Member } from '../../servers/member.ts';
import type { Asked } from '../../servers/session.ts';
import { type Allowance, allowance } from '../../telemetry/allowance.ts';
import { refused } from '../replies.ts';
import type { Kept, KeptTask } from './kept.ts';

/** A thousand tasks, each looked at more often than its server was told to. */
const PER_SECOND = 5_000;
const INVALID = -32602;
const UNKNOWN = refused(INVALID, 'there is no such task; perhaps its ttl is over');
const NO_CURSOR = refused(INVALID, 'this is no cursor of a list of tasks; begin without one');
const TOO_FAST = refused(-32603, 'these are too many requests about tasks a second');

export function createOperations(kept: Kept) {
  const paces = new WeakMap<Member, Allowance>();
  const operations: Record<string, (asked: Asked, found: KeptTask) => void> = {
    'tasks/get': ({ answer }, { task }) => answer(result(task.view())),

    'tasks/result': ({ signal, answer }, { task }) => {
      const leave = task.whenEnded((outcome) => answer(related(outcome, task.id)));
      signal.addEventListener('abort', leave, { once: true });
    },

    'tasks/cancel': ({ answer }, { task, cancel }) => {
      const { status } = task.view();
      if (task.isEnded) return answer(refused(INVALID, `the task has ended as ${status}, and cannot be cancelled`));
      cancel('its server has cancelled it');
      answer(result(task.view()));
    },
  };

  function isTooFast(member: Member): boolean {
    const pace = paces.get(member) ?? allowance(PER_SECOND);
    paces.set(member, pace);
    return !pace.take();
  }

  function list(member: Member, { params, answer }: Asked): void {
    const cursor = textAt(params, ['cursor']);
    const isText = cursor !== undefined || spansOf(params, 'cursor').length === 0;
    const page = isText ? kept.page(member, cursor) : undefined;
    if (!page) return answer(NO_CURSOR);
    const { tasks, next } = page;
    answer(result({ tasks: tasks.map((task) => task.view()), ...(next !== undefined && { nextCursor: next }) }));
  }

  function one(member: Member, asked: Asked, operate: (asked: Asked, found: KeptTask) => void): void {
    const found = kept.find(member, textAt(asked.params, ['taskId']) ?? '');
    if (found) operate(asked, found);
    else asked.answer(UNKNOWN);
  }

  /** False when it is none of these. */
  return (member: Member, asked: Asked): boolean => {
    const operation = Object.hasOwn(operations, asked.method) ? operations[asked.method] : undefined;
    if (!operation && asked.method !== 'tasks/list') return false;
    if (isTooFast(member)) asked.answer(TOO_FAST);
    else if (operation) one(member, asked, operation);
    else list(member, asked);
    return true;
  };
}

const result = (value: object): Answer => ({ ok: true, result: Buffer.from(JSON.stringify(value)) });

/** The bytes as they came, and whose they are; an error has no place for that. */
const related = (outcome: Answer, taskId: string): Answer =>
  outcome.ok ? { ok: true, result: withMeta(outcome.result, RELATED_TASK, JSON.stringify({ taskId })) } : outcome;
