// Addresses and models: what is agreed to is done in its own time, and what a model says is seen by a person on both sides,
// unless the server is trusted.

import { describe, expect, it } from 'vitest';
import type { Models } from '../../src/asks/models/models.ts';
import { askStage, SAMPLING, URL } from '../support/asks.ts';
import { eventually } from '../support/eventually.ts';

const person = { by: 'troupe answer' };
const seeing = (stage: 'request' | 'result' | 'done') => ({ ...person, stage });
const json = (value: object) => Buffer.from(JSON.stringify(value));
const yes = (content?: object) => ({ action: 'accept' as const, ...(content && { content: json(content) }) });
const message = (text: string) => ({ role: 'assistant', model: 'm1', content: { type: 'text', text } });

/** A model that says back what it heard last. */
function echoing() {
  const heard: any[] = [];
  const models: Models = {
    offer: () => () => {},
    hasModel: () => true,
    generate({ params }) {
      heard.push(JSON.parse(String(params)));
      return Promise.resolve(json(message(`you said ${heard.at(-1).messages.at(-1).content.text}`)));
    },
  };
  return { heard, models };
}

describe('an address to visit', () => {
  it('is agreed to by a host, which hears when what happens there is done, also after the call', async () => {
    await using s = await askStage();
    const request = s.call();
    s.ask('q1', URL);
    await eventually(() => s.asked.length === 1);
    s.asked[0]?.answer({ ok: true, result: json({ action: 'accept' }) });
    await eventually(() => s.replies.length === 1);
    expect([s.replies[0].result, s.asks.inbox.list()]).toEqual([{ action: 'accept' }, []]);
    s.lane.answer(request.id, 'result', Buffer.from('{}'));
    s.say({ method: 'notifications/elicitation/complete', params: { elicitationId: 'other' } });
    expect(s.completed).toEqual([]);
    s.say({ method: 'notifications/elicitation/complete', params: { elicitationId: 'e1' } });
    s.say({ method: 'notifications/elicitation/complete', params: { elicitationId: 'e1' } });
    expect(s.completed).toEqual(['{"elicitationId":"e1"}']);
    expect([s.replies.length, s.withdrawn]).toEqual([1, []]);
  });

  it('is agreed to in the inbox, without any content', async () => {
    await using s = await askStage({ canAnswer: false });
    s.call();
    s.ask('q1', URL);
    const { id, url, mode } = await s.theAsk();
    expect([mode, url]).toEqual(['url', URL.url]);
    expect(await s.asks.inbox.answer(id, yes(), person)).toBe('accepted');
    expect(s.replies).toMatchObject([{ result: { action: 'accept' } }]);
    expect(s.closed).toMatchObject([{ ending: { outcome: 'accepted', by: 'troupe answer' } }]);
  });

  it('that a call waits for is done when the person says so', async () => {
    await using s = await askStage();
    const endings: string[] = [];
    const request = s.call();
    const subject = { call: request.call, latestDeadline: request.latestDeadline };
    const question = { ...URL, kind: 'elicitation', mode: 'url', isRequired: true } as const;
    s.asks.wait(question, subject, s.member, (outcome) => endings.push(outcome));
    const { id } = await s.theAsk();
    expect(await s.asks.inbox.answer(id, yes(), person)).toBe('open');
    expect([(await s.theAsk()).stage, endings]).toEqual(['done', []]);
    s.asked[0]?.answer({ ok: true, result: json({ action: 'accept' }) }); // which says nothing of having been there
    await s.store.flush();
    expect([(await s.theAsk()).stage, endings]).toEqual(['done', []]);
    await expect(s.asks.inbox.answer(id, yes(), person)).rejects.toThrow(/has moved on/);
    expect(await s.asks.inbox.answer(id, yes(), seeing('done'))).toBe('completed');
    expect(endings).toEqual(['completed']);
  });
});

describe('a request to a model', () => {
  it('is seen by a person before it is sent and before its answer is delivered, and both may be edited', async () => {
    const { heard, models } = echoing();
    await using s = await askStage({ canAnswer: false, models });
    s.call();
    s.ask('q1', SAMPLING, 'sampling/createMessage');
    await eventually(() => s.asks.inbox.list()[0]?.stage === 'request');
    const { id, request } = await s.theAsk();
    expect([request, heard]).toEqual([SAMPLING, []]);
    const edited = { ...SAMPLING, messages: [{ role: 'user', content: { type: 'text', text: 'good day' } }] };
    expect(await s.asks.inbox.answer(id, yes(edited), seeing('request'))).toBe('open');
    await eventually(() => s.asks.inbox.list()[0]?.stage === 'result');
    expect([heard, (await s.theAsk()).result]).toEqual([[edited], message('you said good day')]);
    expect(s.replies).toEqual([]);
    expect(await s.asks.inbox.answer(id, yes(message('Good day to you')), seeing('result'))).toBe('answered');
    expect(s.replies).toMatchObject([{ id: 'q1', result: message('Good day to you') }]);
  });

  it('passes unedited with a word at each stage', async () => {
    const { models } = echoing();
    await using s = await askStage({ canAnswer: false, models });
    s.call();
    s.ask('q1', SAMPLING, 'sampling/createMessage');
    const { id } = await s.theAsk();
    await eventually(() => s.asks.inbox.list()[0]?.stage === 'request');
    await s.asks.inbox.answer(id, yes(), seeing('request'));
    await eventually(() => s.asks.inbox.list()[0]?.stage === 'result');
    expect(await s.asks.inbox.answer(id, yes(), seeing('result'))).toBe('answered');
    expect(s.replies).toMatchObject([{ result: message('you said hi') }]);
  });

  it('needs one word for each stage: two at once are not a word on what nobody has seen', async () => {
    const { models } = echoing();
    await using s = await askStage({ canAnswer: false, models });
    s.call();
    s.ask('q1', SAMPLING, 'sampling/createMessage');
    const { id } = await s.theAsk();
    await eventually(() => s.asks.inbox.list()[0]?.stage === 'request');
    const both = await Promise.allSettled([
      s.asks.inbox.answer(id, yes(), seeing('request')),
      s.asks.inbox.answer(id, yes(), seeing('request')),
    ]);
    expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    await eventually(() => s.asks.inbox.list()[0]?.stage === 'result');
    expect(s.replies).toEqual([]);
  });

  it('is rejected with -1 by a person, and answered by one who knows better than the model', async () => {
    const { heard, models } = echoing();
    await using s = await askStage({ canAnswer: false, models });
    s.call();
    s.ask('q1', SAMPLING, 'sampling/createMessage');
    const first = await s.theAsk();
    await eventually(() => s.asks.inbox.list()[0]?.stage === 'request');
    expect(await s.asks.inbox.answer(first.id, { action: 'decline' }, seeing('request'))).toBe('rejected');
    expect(s.replies[0].error).toEqual({ code: -1, message: 'User rejected sampling request' });
    s.ask('q2', SAMPLING, 'sampling/createMessage');
    const second = await s.theAsk();
    await eventually(() => s.asks.inbox.list()[0]?.stage === 'request');
    expect(await s.asks.inbox.answer(second.id, yes(message('by hand')), seeing('request'))).toBe('answered');
    expect([s.replies[1].result, heard]).toEqual([message('by hand'), []]);
  });

  it('of a trusted server goes straight to the model and back', async () => {
    const { models } = echoing();
    await using s = await askStage({ canAnswer: false, models, settings: { trust: true } });
    s.call();
    s.ask('q1', SAMPLING, 'sampling/createMessage');
    expect(await eventually(() => s.replies[0] ?? false)).toMatchObject({ result: message('you said hi') });
    expect(s.closed[0]?.ending).toMatchObject({ outcome: 'answered', by: 'a model' });
  });

  it('goes to the inbox when the model fails', async () => {
    const models: Models = { ...echoing().models, generate: () => Promise.reject(new Error('rate limit')) };
    await using s = await askStage({ canAnswer: false, models, settings: { trust: true } });
    s.call();
    s.ask('q1', SAMPLING, 'sampling/createMessage');
    await eventually(() => s.asks.inbox.list()[0]?.waitsOn === 'inbox');
    expect(s.trouble.join()).toContain('rate limit');
    const { id } = await s.theAsk();
    await s.asks.inbox.answer(id, yes(message('a person')), person);
    expect(s.replies).toMatchObject([{ result: message('a person') }]);
  });

  it('is refused when its tool results do not match, or it goes on for ever', async () => {
    await using s = await askStage({ settings: { sampling: { maxIterations: 1 } } });
    s.call();
    const use = (id: string) => ({ role: 'assistant', content: { type: 'tool_use', id, name: 't', input: {} } });
    const given = (id: string) => ({ role: 'user', content: { type: 'tool_result', toolUseId: id, content: [] } });
    const tools = [{ name: 't', inputSchema: { type: 'object' } }];
    const start = SAMPLING.messages;
    s.ask('q1', { ...SAMPLING, tools, messages: [...start, use('a'), ...start] }, 'sampling/createMessage');
    const twice = [...start, use('a'), given('a'), use('b'), given('b')];
    s.ask('q2', { ...SAMPLING, tools, messages: twice }, 'sampling/createMessage');
    expect(s.replies.map(({ error }) => error.code)).toEqual([-32602, -1]);
    expect(s.asked).toEqual([]);
  });
});
