// What the plugins with models can be told: everything that is wrong is said in one sentence, and a key is never part of it.
// The example in each README is one that works.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { plugin as anthropic } from '../../plugins/sampling-anthropic/index.ts';
import { plugin as openai } from '../../plugins/sampling-openai/index.ts';
import { expand } from '../../src/config/definition.ts';
import { ROOT } from '../support/daemon.ts';
import { KEY, modelApi } from '../support/model-api.ts';
import { modelStage } from '../support/model-stage.ts';

const models = [{ name: 'm' }];

describe.each([openai, anthropic])('$name', (plugin) => {
  it('fills in what is not said', () => {
    expect(plugin.parse({ models, apiKey: KEY })).toMatchObject({
      ...{ models: [{ name: 'm', cost: 0.5, speed: 0.5, intelligence: 0.5, takes: [] }], timeoutMs: 120_000 },
      ...{ headers: {}, temperature: true, baseUrl: expect.stringMatching(/^https:/) },
    });
  });

  it.each([
    [undefined, /models is missing/],
    [{ models: [] }, /models must have one model at least/],
    [{ models: [{ cost: 1 }] }, /models\[0\].name is missing/],
    [{ models: [{ name: 'm', speed: -1 }] }, /models\[0\].speed must be between 0 and 1/],
    [{ models: [...models, ...models] }, /models must name each model once/],
    [{ models, apikey: KEY }, /apikey is not a setting; did you mean "apiKey"\?/],
    [{ models, apiKey: 7 }, /apiKey must be a text, not a number/],
    [{ models, apiKey: `${KEY}\n` }, /apiKey must be printable ASCII characters on one line/],
    [{ models, apiKey: '' }, /apiKey is missing/],
    [{ models, apiKey: KEY, baseUrl: `ftp://${KEY}` }, /baseUrl must be an address such as https:/],
    [{ models, apiKey: KEY, baseUrl: `https://me:${KEY}@host` }, /baseUrl must be .* without a user name/],
    [{ models, apiKey: KEY, timeoutMs: '6m' }, /timeoutMs must be 5 minutes at most/],
    [{ models, apiKey: KEY, maxTokens: 0 }, /maxTokens must be a whole number of at least 1/],
    [{ models, apiKey: KEY, headers: { a: `${KEY}\r\nb: c` } }, /headers.a must be printable/],
  ])('complains of %j', (options, sentence) => {
    const parse = () => plugin.parse(options);
    expect(parse).toThrow(sentence);
    expect(parse).toThrow(new RegExp(`^${plugin.name}: `));
    expect(parse).not.toThrow(/secret/);
  });

  it('takes the example of its README', () => {
    const readme = readFileSync(join(ROOT, 'plugins', plugin.name, 'README.md'), 'utf8');
    const examples = [...readme.matchAll(/```json\n([\s\S]*?)```/g)].map(([, text = '']) => text);
    expect(examples.length).toBeGreaterThan(0);
    for (const example of examples) {
      const { text, problems } = expand(example, { OPENAI_API_KEY: KEY, ANTHROPIC_API_KEY: KEY });
      expect(problems).toEqual([]);
      expect(plugin.parse(JSON.parse(text)['x-troupe'].plugins[plugin.name])).toBeDefined();
    }
    for (const option of Object.keys(plugin.parse({ models, apiKey: KEY }) as object))
      expect(readme).toContain(`\`${option}\``);
  });
});

it('sampling-anthropic offers no model that hears', () => {
  const hears = [{ name: 'm', takes: ['audio'] }];
  expect(() => anthropic.parse({ models: hears, apiKey: KEY })).toThrow(/models must not take audio/);
  expect(openai.parse({ models: hears, apiKey: KEY })).toBeDefined();
});

it('sampling-openai needs no key for a service of one’s own, keeps a query, and knows the vendor’s word for a limit', async () => {
  await using api = await modelApi('openai');
  await using stage = await modelStage('openai', { baseUrl: `${api.baseUrl}/?api-version=3`, apiKey: '' });
  await expect(stage.ask('Hi')).rejects.toThrow(/\(401\)/);
  expect(api.asked[0]).toMatchObject({ path: '/v1/chat/completions?api-version=3', body: { max_tokens: 100 } });
  expect(api.asked[0]?.headers.authorization).toBeUndefined();

  let asked: any;
  const troupe = { post: async (request: object) => (asked = request), models: (given: any) => (asked = given) };
  await openai.start(troupe as never, openai.parse({ models, apiKey: KEY }) as never);
  const params = { messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }], maxTokens: 5 };
  await asked.generate({ model: 'm', params }, new AbortController().signal).catch(() => {});
  expect(asked).toMatchObject({
    url: 'https://api.openai.com/v1/chat/completions',
    body: { max_completion_tokens: 5 },
  });
});
