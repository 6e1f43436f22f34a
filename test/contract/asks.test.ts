// A server's questions and the call that they are asked for: the right one is asked, the first good answer stands, and the
// server gets exactly one, whoever ends first.

import { describe, expect, it } from 'vitest';
import type { InFlight } from '../../src/calls/request.ts';
import type { AskRow } from '../../src/store/rows.ts';
import { askStage, FORM, SAMPLING } from '../support/asks.ts';
import { eventually } from '../support/eventually.ts';

const accept = (content: object) => ({
  ok: true as const,
  result: Buffer.from(JSON.stringify({ action: 'accept', content })),
});
const bytes = (_: string, value: any) => (value?.type === 'Buffer' ? String(Buffer.from(value.data)) : value);
const person = { by: 'troupe answer' };
const saying = (action: 'accept' | 'decline' | 'cancel', content?: object) => ({
  action: action as 'accept',
  ...(content && { content: Buffer.from(JSON.stringify(content)) }),
});
const isPatient = ({ deadline, latestDeadline }: InFlight) => deadline === latestDeadline;

describe('the host of the call', () => {
  it('is asked in the bytes of the server, and its answer reaches the server in its own', async () => {
    await using s = await askStage();
    s.call();
    s.ask('q1');
    await eventually(() => s.asked.length === 1);
    expect(JSON.parse(String(s.asked[0]?.params))).toEqual(FORM);
    s.asked[0]?.answer({ ok: true, result: Buffer.from('{"action":"accept", "content":{"age":90071992547409931}}') });
    const { result } = await eventually(() => s.replies[0] ?? false);
    expect(result.action).toBe('accept');
    expect(s.closed[0]?.ending).toMatchObject({ outcome: 'accepted', by: 'the host' });
    expect(JSON.stringify(s.closed[0]?.ending.said, bytes)).toContain('90071992547409931');
  });

  it('gets its form back once when the answer does not fit, with what is wrong, and may mend it', async () => {
    await using s = await askStage();
    s.call();
    s.ask('q1');
    await eventually(() => s.asked.length === 1);
    s.asked[0]?.answer(accept({ age: 3 }));
    await eventually(() => s.asked.length === 2);
    expect(JSON.parse(String(s.asked[1]?.params))).toEqual({
      ...FORM,
      message: expect.stringMatching(/^\(age: .*18.*\) How old are you\?$/),
    });
    expect(s.replies).toEqual([]);
    s.asked[1]?.answer(accept({ age: 30 }));
    expect(await eventually(() => s.replies[0] ?? false)).toMatchObject({ result: { content: { age: 30 } } });
  });

  it('that does not mend it has left it alone: the server never sees what does not fit, and waits no longer', async () => {
    await using s = await askStage();
    s.call();
    s.ask('q1');
    await eventually(() => s.asked.length === 1);
    s.asked[0]?.answer(accept({ age: 3 }));
    await eventually(() => s.asked.length === 2);
    s.asked[1]?.answer(accept({ name: 'x' }));
    await eventually(() => s.replies.length === 1);
    expect(s.replies).toEqual([{ jsonrpc: '2.0', id: 'q1', result: { action: 'cancel' } }]);
    expect(s.asked).toHaveLength(2);
  });

  it('is told to forget the question when somebody else has answered it, and its own answer counts no more', async () => {
    await using s = await askStage();
    s.call();
    s.ask('q1');
    const { id } = await s.theAsk();
    await eventually(() => s.asked.length === 1);
    expect(await s.asks.inbox.answer(id, saying('decline'), person)).toBe('declined');
    s.asked[0]?.answer(accept({ age: 30 }));
    expect([s.withdrawn, s.replies]).toMatchObject([['elicitation/create'], [{ result: { action: 'decline' } }]]);
  });

  it('may refuse with an error of its own, which the server hears as it is', async () => {
    await using s = await askStage();
    s.call();
    s.ask('q1', SAMPLING, 'sampling/createMessage');
    await eventually(() => s.asked.length === 1);
    s.asked[0]?.answer({ ok: false, error: Buffer.from('{"code":-1,"message":"User rejected sampling request"}') });
    expect(await eventually(() => s.replies[0] ?? false)).toMatchObject({ error: { code: -1 } });
  });
});

describe('the call', () => {
  it('waits as long as it may at all until the last of its questions is answered', async () => {
    await using s = await askStage();
    const request = s.call();
    s.ask('q1');
    s.ask('q2');
    await eventually(() => s.asked.length === 2);
    expect(isPatient(request)).toBe(true);
    s.asked[0]?.answer(accept({ age: 30 }));
    await eventually(() => s.replies.length === 1);
    expect(isPatient(request)).toBe(true);
    s.asked[1]?.answer(accept({ age: 31 }));
    await eventually(() => s.replies.length === 2);
    expect(isPatient(request)).toBe(false);
  });

  it('takes its question along when it ends: the server gets a word, the host is told', async () => {
    await using s = await askStage();
    const request = s.call();
    s.ask('q1');
    await eventually(() => s.asked.length === 1);
    s.lane.answer(request.id, 'result', Buffer.from('{}'));
    expect([s.replies, s.withdrawn]).toMatchObject([
      [{ id: 'q1', result: { action: 'cancel' } }],
      ['elicitation/create'],
    ]);
    expect(s.asks.inbox.list()).toEqual([]);
  });

  it('is as patient as before when the server withdraws its question', async () => {
    await using s = await askStage();
    const request = s.call();
    s.ask('q1');
    await eventually(() => s.asked.length === 1);
    s.say({ method: 'notifications/cancelled', params: { requestId: 'q1' } });
    expect([isPatient(request), s.withdrawn, s.replies]).toEqual([false, ['elicitation/create'], []]);
  });
});

describe('the inbox', () => {
  it('has the question from the beginning, and says who is being asked', async () => {
    await using s = await askStage();
    s.call();
    s.ask('q1');
    const view = await s.theAsk();
    expect(view).toMatchObject({
      kind: 'elicitation',
      mode: 'form',
      stage: 'answer',
      server: 'alpha',
      tool: 'file',
      principal: '_',
      message: FORM.message,
      schema: FORM.requestedSchema,
      waitsOn: 'host',
    });
    expect(view.expiresAt - view.openedAt).toBeLessThan(60_000); // before its call must end
  });

  it('names the field of an answer that does not fit, and lets it be given again', async () => {
    await using s = await askStage({ canAnswer: false });
    s.call();
    s.ask('q1');
    const { id } = await s.theAsk();
    await expect(s.asks.inbox.answer(id, saying('accept', { age: 3 }), person)).rejects.toThrow(/^age: /);
    expect(await s.asks.inbox.answer(id, saying('accept', { age: 33 }), person)).toBe('accepted');
    expect(s.replies).toMatchObject([{ result: { action: 'accept', content: { age: 33 } } }]);
  });

  it('lets one of a hundred answers stand, and tells the others whose', async () => {
    await using s = await askStage({ canAnswer: false });
    s.call();
    s.ask('q1');
    const { id } = await s.theAsk();
    const tries = Array.from({ length: 100 }, (_, n) =>
      s.asks.inbox.answer(id, saying('accept', { age: 20 + n }), { by: `person ${n}` }),
    );
    const settled = await Promise.allSettled(tries);
    expect(settled.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    const winner = settled.findIndex(({ status }) => status === 'fulfilled');
    for (const [n, each] of settled.entries())
      if (n !== winner)
        expect(String((each as PromiseRejectedResult).reason)).toMatch(`already answered by person ${winner}`);
    expect(s.replies).toMatchObject([{ result: { content: { age: 20 + winner } } }]);
  });

  it("knows nothing of another principal's questions", async () => {
    await using s = await askStage({ canAnswer: false });
    s.call('r', { principal: 'alice' });
    s.ask('q1');
    const { id } = await s.theAsk();
    expect(s.asks.inbox.list('bob')).toEqual([]);
    const asBob = s.asks.inbox.answer(id, saying('decline'), { by: 'bob', principal: 'bob' });
    const unknown = s.asks.inbox.answer('0'.repeat(32), saying('decline'), { by: 'bob', principal: 'bob' });
    const [one, other] = (await Promise.allSettled([asBob, unknown])) as PromiseRejectedResult[];
    expect(String(one?.reason).replace(id, 'ID')).toBe(String(other?.reason).replace('0'.repeat(32), 'ID'));
    expect(s.asks.inbox.list('alice')).toHaveLength(1);
  });

  it('keeps nothing of what was asked and answered when it is over', async () => {
    await using s = await askStage({ canAnswer: false });
    s.call();
    s.ask('q1');
    const { id } = await s.theAsk();
    const open = s.store.get<AskRow>('ask', [id]);
    expect(open?.body?.includes('How old')).toBe(false);
    await s.asks.inbox.answer(id, saying('accept', { age: 33 }), person);
    await s.store.flush();
    expect(s.store.get<AskRow>('ask', [id])).toMatchObject({
      status: 'ended',
      outcome: 'accepted',
      answered_by: 'troupe answer',
      body: null,
      answer: null,
    });
  });
});
