// MCP's sampling in the words of /chat/completions and back, against a server that refuses what the documentation does not
// allow.

import { afterAll, beforeAll, expect, it } from 'vitest';
import { completion, KEY } from '../support/model-api.ts';
import { assistant, MODELS, modelStage, text, user } from '../support/model-stage.ts';

type Stage = Awaited<ReturnType<typeof modelStage>>;
let stage: Stage;
const hears = { name: 'hears-1', takes: ['image', 'audio'] };
beforeAll(async () => {
  stage = await modelStage('openai', { models: [...MODELS, hears], headers: { 'x-team': 'blue' } });
});
afterAll(() => stage[Symbol.asyncDispose]());

const WEATHER = {
  name: 'get_weather',
  description: 'The weather of a city',
  inputSchema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
};
const use = (id: string, input: object) => ({ type: 'tool_use', id, name: 'get_weather', input });
const result = (toolUseId: string, over: object) => ({ type: 'tool_result', toolUseId, content: [], ...over });
const call = (id: string, written: unknown) => ({
  id,
  type: 'function',
  function: { name: 'get_weather', arguments: written },
});
const calling = (...calls: object[]) =>
  completion({ content: null, tool_calls: calls }, { finish_reason: 'tool_calls' });

it('asks with everything that was asked, and answers with everything that was answered', async () => {
  const before = await stage.usage();
  const answer = await stage.ask({
    ...{ messages: [user(text('Hi')), assistant(text('Hello')), user([text('And'), text('now?')])] },
    ...{ systemPrompt: 'Be kind.', temperature: 1.5, stopSequences: ['END', '\n\n'], maxTokens: 77 },
    ...{ includeContext: 'none', metadata: { anything: true }, modelPreferences: { hints: [{ name: 'large' }] } },
  });
  expect(answer).toEqual({ role: 'assistant', content: text('Good day.'), model: 'm-1-2026', stopReason: 'endTurn' });
  expect(stage.api.last()).toEqual({
    model: 'large-1',
    messages: [
      { role: 'system', content: 'Be kind.' },
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: 'Hello' },
      { role: 'user', content: [text('And'), text('now?')] },
    ],
    ...{ max_tokens: 77, temperature: 1.5, stop: ['END', '\n\n'] },
  });
  expect(stage.api.asked.at(-1)?.headers).toMatchObject({ authorization: `Bearer ${KEY}`, 'x-team': 'blue' });
  expect((await stage.usage())?.tokens).toBe((before?.tokens ?? 0) + 30);
});

it('shows images, and lets the model hear wav and mp3', async () => {
  const image = { type: 'image', data: 'iVBORw==', mimeType: 'image/png' };
  const sound = (mimeType: string) => ({ type: 'audio', data: 'UklGRg==', mimeType });
  await stage.ask({ messages: [user([text('What?'), image, sound('audio/wav'), sound('audio/mpeg')])] });
  expect(stage.api.last()).toMatchObject({
    model: 'hears-1',
    messages: [
      {
        content: [
          text('What?'),
          { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw==' } },
          { type: 'input_audio', input_audio: { data: 'UklGRg==', format: 'wav' } },
          { type: 'input_audio', input_audio: { data: 'UklGRg==', format: 'mp3' } },
        ],
      },
    ],
  });
  await expect(stage.ask({ messages: [user(sound('audio/ogg'))] })).rejects.toThrow(/audio\/wav or audio\/mpeg only/);
});

it('lets a model use tools side by side, and takes their results back to it', async () => {
  stage.api.reply(calling(call('call_1', '{"city":"Paris"}'), call('call_2', '{"city":"London"}')));
  const question = user(text('The weather in Paris and London?'));
  const uses = await stage.ask({ messages: [question], tools: [WEATHER] });
  expect(uses).toMatchObject({
    ...{ stopReason: 'toolUse', content: [use('call_1', { city: 'Paris' }), use('call_2', { city: 'London' })] },
  });
  const { name, description, inputSchema: parameters } = WEATHER;
  expect(stage.api.last()).toMatchObject({
    ...{ tools: [{ type: 'function', function: { name, description, parameters } }], tool_choice: 'auto' },
  });

  const messages = [
    question,
    { role: uses.role, content: uses.content },
    user([
      result('call_1', { content: [text('18°C'), text('cloudy')] }),
      result('call_2', { content: [text('no such city')], isError: true }),
    ]),
  ];
  expect(await stage.ask({ messages, tools: [WEATHER], toolChoice: { mode: 'none' } })).toMatchObject({
    ...{ content: text('Good day.'), stopReason: 'endTurn' },
  });
  expect(stage.api.last()).toMatchObject({
    tool_choice: 'none',
    messages: [
      { role: 'user' },
      {
        role: 'assistant',
        content: null,
        tool_calls: [call('call_1', '{"city":"Paris"}'), call('call_2', '{"city":"London"}')],
      },
      { role: 'tool', tool_call_id: 'call_1', content: '18°C\ncloudy' },
      { role: 'tool', tool_call_id: 'call_2', content: 'Error: no such city' },
    ],
  });
});

it('says what a tool gave that is no text', async () => {
  const given = [
    { structuredContent: { degrees: 18 } },
    { content: [{ type: 'image', data: 'AA==', mimeType: 'image/png' }] },
    {
      content: [
        { type: 'resource', resource: { uri: 'file:///a', text: 'its text' } },
        { type: 'resource_link', uri: 'file:///b', name: 'b' },
      ],
    },
  ];
  const uses = given.map((_, index) => use(`c${index}`, {}));
  const results = given.map((each, index) => result(`c${index}`, each));
  await stage.ask({
    messages: [user(text('?')), assistant([text('Let me see.'), ...uses]), user(results)],
    tools: [WEATHER],
  });
  const [, spoken, ...said] = stage.api.last().messages;
  expect(spoken.content).toBe('Let me see.');
  expect(said.map(({ content }: any) => content)).toEqual([
    '{"degrees":18}',
    '[image/png, not shown]',
    'its text\n[file:///b]',
  ]);
});

it('has a tool used where the server requires it', async () => {
  stage.api.reply(completion({ content: 'Let me see.', tool_calls: [call('call_9', '')] }, { finish_reason: 'stop' }));
  const answer = await stage.ask({ messages: [user(text('?'))], tools: [WEATHER], toolChoice: { mode: 'required' } });
  expect(stage.api.last().tool_choice).toBe('required');
  expect(answer).toMatchObject({ stopReason: 'toolUse', content: [text('Let me see.'), use('call_9', {})] });
  await expect(
    stage.ask({ messages: [user(text('?'))], tools: [WEATHER], toolChoice: { mode: 'required' } }),
  ).rejects.toThrow(/requires that a tool is used/);
});

it.each([
  ['{"city": "Par', /arguments that are no JSON object; raise maxTokens/],
  ['["Paris"]', /arguments that are no JSON object/],
  ['"Paris"', /arguments that are no JSON object/],
])('does not pass on arguments such as %s, and does not quote them', async (written, sentence) => {
  const before = await stage.usage();
  stage.api.reply(calling(call('call_1', written)));
  const asked = stage.ask({ messages: [user(text('?'))], tools: [WEATHER] });
  await expect(asked).rejects.toThrow(sentence);
  await expect(asked).rejects.not.toThrow(/Paris/);
  expect((await stage.usage())?.tokens).toBe((before?.tokens ?? 0) + 30);
});

it('gives an id to a use that has none', async () => {
  stage.api.reply(calling({ function: { name: 'get_weather', arguments: { city: 'Paris' } } }));
  const answer = await stage.ask({ messages: [user(text('?'))], tools: [WEATHER] });
  expect(answer.content).toEqual({ ...use(expect.stringMatching(/^call_\S{36}$/) as never, { city: 'Paris' }) });
});

it.each<[string, object, string]>([
  ['the end of a turn', completion({ content: 'x' }), 'endTurn'],
  ['too many tokens', completion({ content: 'x' }, { finish_reason: 'length' }), 'maxTokens'],
  ['a stop sequence, where the service says so', completion({ content: 'x' }, { stop_reason: 'END' }), 'stopSequence'],
  ['a refusal', completion({ content: null, refusal: 'x' }), 'refusal'],
  ['a filter', completion({ content: 'x' }, { finish_reason: 'content_filter' }), 'refusal'],
  ['no reason', completion({ content: [{ type: 'text', text: 'x' }] }, { finish_reason: null }), 'endTurn'],
])('tells why it stopped: %s', async (_, reply, stopReason) => {
  stage.api.reply(reply);
  const answer = await stage.ask({ messages: [user(text('?'))], stopSequences: ['END'] });
  expect(answer).toMatchObject({ content: text('x'), stopReason });
});

it.each([{}, { choices: [] }, { choices: [{}] }, { choices: 'none' }, [], 'yes', null])(
  'says that %j is no answer',
  async (body) => {
    stage.api.reply((response) => response.end(JSON.stringify(body)));
    await expect(stage.ask('Hi')).rejects.toThrow(/answered without a message; check baseUrl/);
  },
);

it('bounds what is generated, and calls it as the service does', async () => {
  await using other = await modelStage('openai', {
    ...{ maxTokens: 50, maxTokensField: 'max_completion_tokens', temperature: false },
  });
  await other.ask({ messages: [user(text('Hi'))], maxTokens: 90, temperature: 0.3 });
  expect(other.api.last()).toMatchObject({ max_completion_tokens: 50 });
  expect(Object.keys(other.api.last())).not.toContain('temperature');
});
