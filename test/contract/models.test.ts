// Models that plugins offer: one that throws, lies or hangs costs its own answer and nothing else, what was used is booked
// whatever came of it, and a server hears only what answers its question.

import pino from 'pino';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createBudget } from '../../src/asks/models/budget.ts';
import { createModels, type Models } from '../../src/asks/models/models.ts';
import type { ModelProvider, ModelRequest } from '../../src/plugin/models.ts';
import { openStore, type Store } from '../../src/store/store.ts';
import { text, UNBOUNDED, user } from '../support/model-stage.ts';
import { type Scratch, scratch } from '../support/scratch.ts';

let dir: Scratch;
let store: Store;
let models: Models;
const lines: string[] = [];
const MODEL = { name: 'm', cost: 0.5, speed: 0.5, intelligence: 0.5 };
const never = new AbortController().signal;
const said = (words: string) => ({ content: [text(words)] as never, model: 'm-2', stopReason: 'endTurn' });

beforeEach(async () => {
  dir = await scratch();
  store = await openStore(dir.path);
  lines.length = 0;
  const logger = pino({ level: 'trace' }, { write: (line: string) => void lines.push(line) });
  models = createModels({ budget: createBudget(store), logger, limitMs: 800 });
});
afterEach(async () => {
  await store.close();
  await dir[Symbol.asyncDispose]();
});

const offer = (generate: ModelProvider['generate'], model: object = MODEL) =>
  models.offer('some-plugin', { models: [model as never], generate });
const ask = async (params: object = {}, signal = never, budget = UNBOUNDED) => {
  const body = { messages: [user(text('Who are you?'))], maxTokens: 100, ...params };
  return JSON.parse(
    (await models.generate({ server: 'x', budget, params: Buffer.from(JSON.stringify(body)), signal })).toString(),
  );
};
const usage = async () => {
  await store.flush();
  return store.get('usage', ['x', 0, '[]']);
};

it('gives a plugin lists and takes one block for what it is, as servers of any age understand it', async () => {
  const requests: ModelRequest[] = [];
  offer(async (request) => {
    requests.push(request);
    return { result: said('I am a model.'), tokens: 42 };
  });
  expect(models.hasModel()).toBe(true);
  const answer = { role: 'assistant', content: text('I am a model.'), model: 'm-2', stopReason: 'endTurn' };
  expect(await ask({ systemPrompt: 'Be brief.', maxTokens: 10.7 })).toEqual(answer);
  expect(requests).toMatchObject([
    {
      model: 'm',
      params: {
        messages: [{ role: 'user', content: [text('Who are you?')] }],
        maxTokens: 10,
        systemPrompt: 'Be brief.',
      },
    },
  ]);
  expect(await usage()).toEqual({ requests: 1, tokens: 42 });
});

it('writes down who answered and what it cost, and nothing that was said', async () => {
  offer(async () => ({ result: said('A secret answer.'), tokens: 42 }));
  await ask({ messages: [user(text('A secret question.'))] });
  expect(JSON.parse(lines.join(''))).toMatchObject({ server: 'x', plugin: 'some-plugin', model: 'm', tokens: 42 });
  expect(lines.join('')).not.toContain('secret');
});

it.each<[string, ModelProvider['generate'], RegExp]>([
  [
    'throws',
    () => {
      throw new Error('no coffee');
    },
    /^model m of plugin some-plugin: no coffee$/,
  ],
  ['throws later', () => Promise.reject(new Error('no coffee')), /: no coffee$/],
  ['throws what is no error', () => Promise.reject('no coffee'), /: no coffee$/],
  ['returns nothing', async () => undefined as never, /returned no content/],
  ['returns no content', async () => ({ result: {} as never, tokens: 0 }), /returned no content/],
  [
    'returns what is no message',
    async () => ({ result: { ...said(''), content: [7] as never }, tokens: 0 }),
    /content: /,
  ],
  [
    'uses a tool that nobody offered',
    async () => ({
      result: { ...said(''), content: [{ type: 'tool_use', id: 'a', name: 'rm', input: {} }] },
      tokens: 0,
    }),
    /no tool "rm"/,
  ],
  ['hangs', () => new Promise(() => {}), /it gave no answer in 0.8 s/],
])('is not harmed by a plugin that %s', async (_, generate, sentence) => {
  offer(generate);
  await expect(ask()).rejects.toThrow(sentence);
  await expect(ask()).rejects.toMatchObject({ name: 'TroupeError' });
  expect(await usage()).toMatchObject({ requests: 2 });
});

it('tells a plugin that its time is over, and that nobody waits any more', async () => {
  const stopped: string[] = [];
  let begun = () => {};
  offer(
    (_, signal) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(new Error(String(stopped.push('stopped')))));
        begun();
      }),
  );
  await expect(ask()).rejects.toMatchObject({ code: 'timeout' });
  const caller = new AbortController();
  begun = () => caller.abort();
  await expect(ask({}, caller.signal)).rejects.toMatchObject({ code: 'cancelled' });
  expect(stopped).toHaveLength(2);
  await expect(ask({}, AbortSignal.abort())).rejects.toMatchObject({ code: 'cancelled' });
});

it('books what was used when the answer is of no use', async () => {
  offer(() => Promise.reject(Object.assign(new Error('bad JSON'), { tokens: 33 })));
  await expect(ask()).rejects.toThrow(/bad JSON/);
  expect(await usage()).toEqual({ requests: 1, tokens: 33 });
});

it('estimates where nobody counts', async () => {
  offer(async () => ({ result: said('x'.repeat(4_000)), tokens: 0 }));
  await ask({ messages: [user(text('y'.repeat(4_000)))] });
  expect(await usage()).toMatchObject({ requests: 1, tokens: expect.closeTo(2_050, -2) });
  const picture = { type: 'image', data: 'A'.repeat(400_000), mimeType: 'image/png' };
  offer(async () => ({ result: said('nice'), tokens: 0 }), { ...MODEL, name: 'sees', takes: ['image'] });
  await ask({ messages: [user(picture)] });
  expect(await usage()).toMatchObject({ requests: 2, tokens: expect.closeTo(3_600, -3) });
});

it('asks nobody when the budget is spent, and lets an answer be no longer than what is left', async () => {
  const requests: ModelRequest[] = [];
  offer(async (request) => {
    requests.push(request);
    return { result: said('yes'), tokens: 700 };
  });
  const limits = { ...UNBOUNDED, tokensPerHour: 1_000 };
  await ask({ maxTokens: 50_000 }, never, limits);
  await ask({ maxTokens: 50_000 }, never, limits);
  expect(requests.map(({ params }) => params.maxTokens)).toEqual([expect.closeTo(975, -2), expect.closeTo(275, -2)]);
  await expect(ask({}, never, limits)).rejects.toMatchObject({
    code: 'busy',
    message: expect.stringMatching(/^server x has used its 1000 tokens/),
  });
  expect(requests).toHaveLength(2);
});

it('lets a hundred requests at once have no more than the budget', async () => {
  let made = 0;
  offer(async () => {
    made += 1;
    return { result: said('yes'), tokens: 1 };
  });
  const all = await Promise.allSettled(
    Array.from({ length: 100 }, () => ask({}, never, { ...UNBOUNDED, requestsPerHour: 7 })),
  );
  expect(all.filter(({ status }) => status === 'fulfilled')).toHaveLength(7);
  expect(made).toBe(7);
});

it('asks the plugin whose model fits, and no longer one that has taken its offer back', async () => {
  const takeBack = offer(async () => ({ result: said('I am deaf.'), tokens: 1 }));
  offer(async () => ({ result: said('I heard it.'), tokens: 1 }), { ...MODEL, name: 'hears', takes: ['audio'] });
  const sound = { messages: [user({ type: 'audio', data: 'AA==', mimeType: 'audio/wav' })] };
  expect((await ask()).content.text).toBe('I am deaf.');
  expect((await ask(sound)).content.text).toBe('I heard it.');
  takeBack();
  expect((await ask()).content.text).toBe('I heard it.');
});

it('says that there is no model, or none that can see', async () => {
  expect(models.hasModel()).toBe(false);
  await expect(ask()).rejects.toThrow(/no plugin offers a model/);
  offer(async () => ({ result: said('yes'), tokens: 1 }));
  const picture = { messages: [user({ type: 'image', data: 'AA==', mimeType: 'image/png' })] };
  await expect(ask(picture)).rejects.toThrow(/no configured model takes image/);
  expect(await usage()).toMatchObject({ requests: 0 });
});

it.each([
  [undefined, /some-plugin: models is missing/],
  [[], /models must have one model at least/],
  [[{ name: '' }], /models\[0\].name must not be empty/],
  [[{ ...MODEL, cost: 2 }], /models\[0\].cost must be between 0 and 1/],
  [[{ ...MODEL, takes: ['smell'] }], /models\[0\].takes\[0\] must be one of "image", "audio"/],
  [[MODEL, MODEL], /models must name each model once/],
])('refuses a table that makes no sense: %j', (table, sentence) => {
  const provider = { models: table, generate: async () => ({ result: said(''), tokens: 0 }) };
  expect(() => models.offer('some-plugin', provider as never)).toThrow(sentence);
  expect(models.hasModel()).toBe(false);
});
