// How questions end that nobody answers, or that should not have been asked: in time, honestly, and without harm to others.

import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { createLimits } from '../../src/asks/intake.ts';
import type { Member } from '../../src/servers/member.ts';
import { askStage, FORM, SAMPLING, URL } from '../support/asks.ts';
import { eventually } from '../support/eventually.ts';

describe('a server that asks too much', () => {
  it('is refused beyond so many at once, so many bytes and so many a second, and may ask again when some have ended', async () => {
    await using s = await askStage({ canAnswer: false, asks: { maxOpen: 2 } });
    const request = s.call();
    for (const id of ['q1', 'q2', 'q3']) s.ask(id);
    expect(s.replies).toMatchObject([{ id: 'q3', error: { code: -32603 } }]);
    s.lane.answer(request.id, 'result', Buffer.from('{}'));
    s.call('r2');
    s.ask('q4');
    await s.theAsk();
  });

  it('of bytes: a second large one waits for nobody', async () => {
    await using s = await askStage({ canAnswer: false });
    s.call();
    const large = { ...SAMPLING, messages: [{ role: 'user', content: { type: 'text', text: 'x'.repeat(9_000_000) } }] };
    s.ask('q1', large, 'sampling/createMessage');
    s.ask('q2', large, 'sampling/createMessage');
    expect(s.replies).toMatchObject([{ id: 'q2', error: { code: -32603 } }]);
  });

  it('of questions a second: it may ask again a little later', async () => {
    const limits = createLimits(() => 1_000);
    const [server, neighbour] = [{} as Member, {} as Member];
    const asked = Array.from({ length: 3_000 }, () => limits.isTooFast(server));
    expect(asked.slice(0, 1_000)).toEqual(Array.from({ length: 1_000 }, () => false));
    expect(asked.filter(Boolean).length).toBeGreaterThan(1_000);
    expect(limits.isTooFast(neighbour)).toBe(false);
    await eventually(() => !limits.isTooFast(server));
  });
});

describe('a caller that has left for good', () => {
  const gone = (s: Awaited<ReturnType<typeof askStage>>) => s.requests.callerIs('gone', '_', 'r');

  it('takes along the call that waits for an answer, and the question: nobody would hear what comes of it', async () => {
    await using s = await askStage({ canAnswer: false });
    s.call('r', { isCancellable: true });
    s.ask('q1');
    const { id } = await s.theAsk();
    gone(s);
    expect(s.outcomes).toMatchObject([{ failure: { code: 'cancelled', delivery: 'outcome unknown' } }]);
    await eventually(() => s.asks.inbox.list().length === 0);
    const late = s.asks.inbox.answer(id, { action: 'decline' }, { by: 'somebody' });
    await expect(late).rejects.toThrow('is over: its call has ended');
  });

  it('is asked nothing: a call that then wants an answer is given up, and its server told so', async () => {
    await using s = await askStage({ canAnswer: false });
    s.call('r', { isCancellable: true });
    gone(s);
    expect(s.outcomes).toEqual([]);
    s.ask('q1');
    expect(s.replies.at(-1)).toMatchObject({ id: 'q1', result: { action: 'cancel' } });
    expect(s.outcomes).toMatchObject([{ failure: { code: 'cancelled' } }]);
    expect(s.asks.inbox.list()).toEqual([]);
  });

  it('or has said how long it waits hears when that is over what nobody answered', async () => {
    await using s = await askStage({ canAnswer: false, asks: { timeoutMs: 60_000 } });
    s.call('r', { timeoutMs: 400 });
    s.ask('q1');
    const { id } = await s.theAsk();
    await eventually(() => s.outcomes.length === 1);
    expect(s.replies).toMatchObject([{ id: 'q1', result: { action: 'cancel' } }]); // the server hears of it before
    const [outcome] = s.outcomes;
    expect(outcome?.ok === false && outcome.failure.message).toMatch(
      `did not answer file within 400 ms, and nobody answered what it asked (\`troupe answer ${id.slice(0, 8)}\` would`,
    );
  });
});

describe('a fault of ours', () => {
  it('ends the question it happened in: the server is answered, nothing stays open', async () => {
    await using s = await askStage();
    const onAsk = () => {
      throw new Error('a bug');
    };
    s.call('r', { onAsk });
    s.ask('q1');
    expect(await eventually(() => s.replies[0] ?? false)).toMatchObject({ id: 'q1', result: { action: 'cancel' } });
    expect([s.asks.inbox.list(), s.asks.count(), s.trouble.join()]).toEqual([[], 0, expect.stringContaining('a bug')]);
  });
});

describe('what nobody answers', () => {
  it('expires: a form is cancelled, sampling is rejected', async () => {
    await using s = await askStage({ canAnswer: false, asks: { timeoutMs: 50 } });
    s.call();
    s.ask('q1');
    s.ask('q2', SAMPLING, 'sampling/createMessage');
    await eventually(() => s.replies.length === 2);
    expect(s.replies).toMatchObject([{ result: { action: 'cancel' } }, { error: { code: -1 } }]);
    expect(s.closed.map(({ ending }) => ending.outcome)).toEqual(['expired', 'expired']);
  });

  it('is answered by the first rule that fits', async () => {
    const rules = [
      { server: 'beta', answer: 'cancel' },
      { tool: 'fi*', kind: 'elicitation', answer: 'defaults' },
    ];
    await using s = await askStage({ canAnswer: false, asks: { rules } });
    s.call();
    const properties = { name: { type: 'string', default: 'Ada' }, size: { type: 'integer', default: 3 } };
    s.ask('q1', { message: 'Who?', requestedSchema: { type: 'object', properties, required: ['name'] } });
    expect(await eventually(() => s.replies[0] ?? false)).toMatchObject({
      result: { action: 'accept', content: { name: 'Ada', size: 3 } },
    });
    s.ask('q2'); // has no default, so the rule has no answer
    expect((await s.theAsk()).message).toBe(FORM.message);
  });

  it('is refused with the code of the specification when it is no question', async () => {
    await using s = await askStage();
    s.call();
    s.ask('q1', { mode: 'voice', message: 'Say it' });
    s.ask('q2', { message: 'x', requestedSchema: { type: 'object', properties: { a: { type: 'object' } } } });
    s.ask('q3', { ...URL, url: 'javascript:alert(1)' });
    s.ask('q4', {}, 'roots/move');
    const twice = '"message":"x","mode":"form","mode":"url","url":"javascript:alert(1)","elicitationId":"e"';
    s.session.receive(Buffer.from(`{"jsonrpc":"2.0","id":"q5","method":"elicitation/create","params":{${twice}}}`));
    expect(s.replies.map(({ error }) => error.code)).toEqual([-32602, -32602, -32602, -32601, -32602]);
    expect(s.asked).toEqual([]);
  });

  it('expires in time also while the database is locked, and is asked all the same', async () => {
    await using s = await askStage({ asks: { timeoutMs: 2_500 } });
    const lock = new Database(s.file);
    lock.exec('BEGIN IMMEDIATE');
    try {
      s.call();
      s.ask('q1');
      await eventually(() => s.asked.length === 1);
      expect(await eventually(() => s.replies[0] ?? false)).toMatchObject({ result: { action: 'cancel' } });
    } finally {
      lock.exec('ROLLBACK');
      lock.close();
    }
  });
});
