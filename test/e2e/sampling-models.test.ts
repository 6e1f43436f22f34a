// A server wants a model to speak and nobody else answers: models of two plugins do, after a person has looked, or at once for
// a server that is trusted; and what they may cost is counted across a restart.

import { afterAll, beforeAll, expect, it } from 'vitest';
import type { AskView } from '../../src/asks/ask.ts';
import { type Daemon, daemon, fixture } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { completion, failing, KEY, type ModelApi, modelApi, reply } from '../support/model-api.ts';

let d: Daemon;
let openai: ModelApi;
let anthropic: ModelApi;
const QUESTION = 'What is the airspeed of a swallow?';
const ANSWER = 'African or European?';
const text = (words: string) => ({ type: 'text', text: words });

beforeAll(async () => {
  [openai, anthropic] = [await modelApi('openai'), await modelApi('anthropic')];
  const key = { apiKey: `\${MODEL_KEY}` };
  d = await daemon({
    env: { MODEL_KEY: KEY },
    servers: {
      trusted: fixture('inquires', { trust: true }),
      stranger: fixture('inquires'),
      thrifty: fixture('inquires', { trust: true, sampling: { requestsPerHour: 2 } }),
    },
    troupe: {
      plugins: {
        'sampling-openai': { ...key, baseUrl: openai.baseUrl, models: [{ name: 'gpt-x', cost: 0.1 }] },
        'sampling-anthropic': { ...key, baseUrl: anthropic.baseUrl, models: [{ name: 'claude-x', takes: ['image'] }] },
      },
    },
  });
});
afterAll(async () => {
  await d[Symbol.asyncDispose]();
  await Promise.all([openai[Symbol.asyncDispose](), anthropic[Symbol.asyncDispose]()]);
});

/** What the server was told: the JSON-RPC reply to its request. */
async function sample(server: string, params: object = {}) {
  const body = { messages: [{ role: 'user', content: text(QUESTION) }], maxTokens: 50, ...params };
  const asked = { method: 'sampling/createMessage', params: body };
  const { data } = await d.request(`troupe.call.${server}.inquire`, asked, { timeout: 50_000 });
  return JSON.parse(data.content[0].text);
}
const theAsk = (stage: string) =>
  eventually(async () => {
    const views: AskView[] = (await d.request('troupe.inbox')).data;
    const found = views.find((view) => view.stage === stage && view.waitsOn === 'inbox');
    if (!found) throw new Error(`nothing waits at the stage ${stage}: ${JSON.stringify(views)}`);
    return found;
  }, 20_000);
const answer = async (id: string, given: object) => (await d.request(`troupe.answer.${id}`, given)).data;

it('answers a trusted server at once, with the model that it prefers and that can see', async () => {
  openai.reply(completion({ content: ANSWER }));
  expect((await sample('trusted')).result).toEqual({
    ...{ role: 'assistant', content: text(ANSWER), model: 'm-1-2026', stopReason: 'endTurn' },
  });
  expect(openai.last()).toMatchObject({ model: 'gpt-x', max_tokens: 50, messages: [{ content: QUESTION }] });

  await sample('trusted', { modelPreferences: { hints: [{ name: 'CLAUDE' }] } });
  expect(anthropic.last()).toMatchObject({ model: 'claude-x', max_tokens: 50 });
  const image = { type: 'image', data: 'iVBORw==', mimeType: 'image/png' };
  const seen = anthropic.asked.length;
  await sample('trusted', { messages: [{ role: 'user', content: [image] }] });
  expect(anthropic.asked).toHaveLength(seen + 1);
});

it('lets a model use the tools of a server side by side', async () => {
  const uses = ['a', 'b'].map((id) => ({ type: 'tool_use', id, name: 'look', input: { at: id } }));
  const tools = [{ name: 'look', inputSchema: { type: 'object' } }];
  anthropic.reply(reply(uses, { stop_reason: 'tool_use' }));
  const preferences = { modelPreferences: { hints: [{ name: 'claude' }] } };
  const { result } = await sample('trusted', { tools, ...preferences });
  expect(result).toMatchObject({ content: uses, stopReason: 'toolUse' });
  const results = ['a', 'b'].map((toolUseId) => ({ type: 'tool_result', toolUseId, content: [text('seen')] }));
  const first = { role: 'user', content: text(QUESTION) };
  const messages = [first, { role: result.role, content: result.content }, { role: 'user', content: results }];
  expect((await sample('trusted', { messages, tools, ...preferences })).result.stopReason).toBe('endTurn');
});

it('lets a person see and change what a stranger asks and what it hears', async () => {
  openai.reply(completion({ content: ANSWER }));
  const before = openai.asked.length;
  const told = sample('stranger');
  const { id, request } = await theAsk('request');
  expect(request).toMatchObject({ messages: [{ content: text(QUESTION) }] });
  expect(openai.asked).toHaveLength(before);
  const edited = { messages: [{ role: 'user', content: text('Say something.') }], maxTokens: 20 };
  expect(await answer(id, { action: 'accept', content: edited, stage: 'request' })).toEqual({ id, outcome: 'open' });
  const checked = await theAsk('result');
  expect(checked.result).toMatchObject({ content: text(ANSWER) });
  expect(openai.last()).toMatchObject({ max_tokens: 20, messages: [{ content: 'Say something.' }] });
  const result = { role: 'assistant', content: text('I do not know.'), model: 'me', stopReason: 'endTurn' };
  expect(await answer(id, { action: 'accept', content: result, stage: 'result' })).toEqual({ id, outcome: 'answered' });
  expect((await told).result).toEqual(result);
});

it('sends nothing that a person declines', async () => {
  const before = openai.asked.length;
  const told = sample('stranger');
  const { id } = await theAsk('request');
  await answer(id, { action: 'decline' });
  expect((await told).error).toMatchObject({ code: -1 });
  expect(openai.asked).toHaveLength(before);
});

it('asks a person when the model fails, and the log says why', async () => {
  openai.reply(failing('openai', 500, 'the model is asleep'));
  const told = sample('trusted');
  const { id } = await theAsk('answer');
  await answer(id, { action: 'decline' });
  expect((await told).error.code).toBe(-1);
  await eventually(async () => expect(await d.log()).toContain(`${openai.host} failed (500`));
  expect(await d.log()).not.toContain('asleep'); // the words of others may be those of the prompt
});

it('lets a server have no more than its budget, also after a restart, and keeps no secret of anybody', async () => {
  await sample('thrifty');
  await sample('thrifty');
  const refused = async () => {
    const told = sample('thrifty');
    const { id } = await theAsk('answer');
    await answer(id, { action: 'decline' });
    expect((await told).error.code).toBe(-1);
  };
  const before = openai.asked.length;
  await refused();
  await eventually(async () => expect(await d.log()).toContain('server thrifty has used its 2 requests to models'));
  await d.kill();
  await d.start();
  await refused();
  expect(openai.asked).toHaveLength(before);

  expect(await d.filesWith(KEY)).toEqual([]);
  for (const words of [QUESTION, ANSWER]) expect(await d.log()).not.toContain(words);
});
