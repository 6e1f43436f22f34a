// What the end of a call means to its task, and what is kept of it.

import { describe, expect, it } from 'vitest';
import { FORGOTTEN, type Outcome } from '../../src/calls/call.ts';
import type { Failure } from '../../src/protocol/failures.ts';
import type { TaskRow } from '../../src/store/rows.ts';
import { endingOf, endOfCall, outcomeToKeep } from '../../src/tasks/endings.ts';
import { viewOf } from '../../src/tasks/task.ts';

const row = (given: Partial<TaskRow>): TaskRow =>
  ({ server: 's', phase: 'dispatching', attempt: 1, upstream: null, ...given }) as TaskRow;
const failed = (failure: Partial<Failure>): Outcome => ({
  ok: false,
  failure: { code: 'lost', delivery: 'outcome unknown', message: 'it is gone', ...failure },
});
const result = (text: string, isError = false): Outcome => ({ ok: true, result: Buffer.from(text), isError });

const ALL = { mayRerun: () => true, isRemote: () => true };
const NONE = { mayRerun: () => false, isRemote: () => false };
const UNSENT = { code: 'unavailable', delivery: 'not sent', state: 'waiting' } as const;

describe('the end of its call is to a task', () => {
  it.each([
    ['its end, when there is a result', result('{}'), {}, ALL, 'answered'],
    [
      'its end, when its server reported an error',
      failed({ code: 'rejected', delivery: 'failed' }),
      {},
      ALL,
      'answered',
    ],
    ['its end, when it is lost for good', failed({}), {}, NONE, 'answered'],
    [
      'its end, when its server will not come back by itself',
      failed({ ...UNSENT, state: 'failed' }),
      {},
      ALL,
      'answered',
    ],
    ['a pause, when its server is not there yet', failed(UNSENT), {}, NONE, 'unsent'],
    ['a pause, when its server is busy', failed({ code: 'busy', delivery: 'not sent' }), {}, NONE, 'unsent'],
    ['a pause, when what its server runs cannot be reached', failed(UNSENT), { upstream: 'u' }, ALL, 'lost.followed'],
    ['a pause, when a remote server works on', failed({}), { upstream: 'u' }, ALL, 'lost.followed'],
    ['another attempt, when that is allowed', failed({}), {}, ALL, 'lost.rerun'],
    ['another attempt, when its server forgot it', failed({ state: FORGOTTEN }), { upstream: 'u' }, ALL, 'lost.rerun'],
    ['its end, at the third attempt', failed({}), { attempt: 3 }, ALL, 'answered'],
    ['its end, when nothing had been sent that could be lost', failed({}), { phase: 'queued' }, ALL, 'answered'],
  ] as const)('%s', (_, outcome, given, rules, expected) => {
    expect(endOfCall(outcome, row(given), rules)).toBe(expected);
  });
});

describe('what is kept', () => {
  it('is a result within its bound, and otherwise that there was one', () => {
    expect(outcomeToKeep(result('12345'), row({}), 5)).toEqual(result('12345'));
    expect(outcomeToKeep(result('123456'), row({}), 5)).toMatchObject({ failure: { code: 'tooLarge' } });
  });

  it('says that nothing was sent only if no attempt was', () => {
    const unsent = failed({ code: 'timeout', delivery: 'not sent' });
    expect(outcomeToKeep(unsent, row({ phase: 'queued', attempt: 0 }), 1)).toEqual(unsent);
    expect(outcomeToKeep(unsent, row({ attempt: 1 }), 1)).toEqual(unsent);
    for (const earlier of [row({ phase: 'queued', attempt: 1 }), row({ attempt: 2 })])
      expect(outcomeToKeep(unsent, earlier, 1)).toMatchObject({ failure: { delivery: 'outcome unknown' } });
  });

  it.each([
    [result('{"content":[]}'), { status: 'completed', message: null }],
    [result('{"content":[{"type":"text","text":"no\\u0007pe"}]}', true), { status: 'failed', message: 'no\ufffdpe' }],
    [result('{"content":[]}', true), { status: 'failed', message: 'the tool reported an error' }],
    [failed({ code: 'cancelled' }), { status: 'cancelled', message: 'it is gone' }],
    [failed({ error: Buffer.from('{"code":1,"message":"why"}') }), { status: 'failed', message: 'it is gone: why' }],
  ])('has the status of MCP, and words for people', (outcome, expected) => {
    expect(endingOf(outcome, 7)).toEqual({ ...expected, updated_at: 7 });
  });
});

it('shows a task whose row was damaged, without what cannot be read', () => {
  const at = { created_at: -(2 ** 53), updated_at: 2 ** 53 };
  for (const progress of ['{"a":', '7', 'null', '{"progress":"half"}'])
    expect(viewOf(row({ ...at, message: null, progress }), 1_000)).not.toHaveProperty('progress');
  const kept = { progress: 1, total: 2 };
  expect(viewOf(row({ ...at, message: null, progress: JSON.stringify(kept) }), 1_000)).toHaveProperty('progress', kept);
});
