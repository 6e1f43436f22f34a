// MCP's sampling in the words of /v1/messages and back, against a server that refuses what the documentation does not allow.

import { afterAll, beforeAll, expect, it } from 'vitest';
import { KEY, reply } from '../support/model-api.ts';
import { assistant, modelStage, text, user } from '../support/model-stage.ts';

let stage: Awaited<ReturnType<typeof modelStage>>;
beforeAll(async () => {
  stage = await modelStage('anthropic');
});
afterAll(() => stage[Symbol.asyncDispose]());

const WEATHER = {
  name: 'get_weather',
  description: 'The weather of a city',
  inputSchema: { type: 'object', properties: { city: { type: 'string' } } },
};
const use = (id: string, input: object) => ({ type: 'tool_use', id, name: 'get_weather', input });
const result = (toolUseId: string, over: object) => ({ type: 'tool_result', toolUseId, content: [], ...over });
const image = { type: 'image', data: 'iVBORw==', mimeType: 'image/PNG' };
const shown = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBORw==' } };

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
    system: 'Be kind.',
    messages: [
      { role: 'user', content: [text('Hi')] },
      { role: 'assistant', content: [text('Hello')] },
      { role: 'user', content: [text('And'), text('now?')] },
    ],
    ...{ max_tokens: 77, temperature: 1, stop_sequences: ['END'] },
  });
  expect(stage.api.asked.at(-1)?.headers).toMatchObject({ 'x-api-key': KEY, 'anthropic-version': '2023-06-01' });
  expect((await stage.usage())?.tokens).toBe((before?.tokens ?? 0) + 30);
});

it('makes one turn of what one side said in several messages, and leaves out what says nothing', async () => {
  const messages = [
    user(text('One')),
    user(text('Two')),
    assistant(text(' ')),
    user(text('Three')),
    assistant(text('A')),
  ];
  await stage.ask({ messages: [...messages, assistant(text('B')), user([text(''), text('Four')])] });
  expect(stage.api.last().messages).toEqual([
    { role: 'user', content: [text('One'), text('Two'), text('Three')] },
    { role: 'assistant', content: [text('A'), text('B')] },
    { role: 'user', content: [text('Four')] },
  ]);
});

it('shows images to the model that sees', async () => {
  await stage.ask({ messages: [user([image, text('What?')])], modelPreferences: { hints: [{ name: 'small' }] } });
  expect(stage.api.last()).toMatchObject({ model: 'large-1', messages: [{ content: [shown, text('What?')] }] });
  const sound = { type: 'audio', data: 'AA==', mimeType: 'audio/wav' };
  await expect(stage.ask({ messages: [user(sound)] })).rejects.toThrow(/no configured model takes audio/);
});

it('lets a model use tools side by side, and takes their results back to it', async () => {
  const wanted = [use('toolu_1', { city: 'Paris' }), use('toolu_2', { city: 'London' })];
  stage.api.reply(reply([text('Let me see.'), ...wanted], { stop_reason: 'tool_use' }));
  const question = user(text('The weather in Paris and London?'));
  const uses = await stage.ask({ messages: [question], tools: [WEATHER], toolChoice: { mode: 'required' } });
  expect(uses).toMatchObject({ stopReason: 'toolUse', content: [text('Let me see.'), ...wanted] });
  const { name, description, inputSchema: input_schema } = WEATHER;
  expect(stage.api.last()).toMatchObject({
    tools: [{ name, description, input_schema }],
    tool_choice: { type: 'any' },
  });

  const messages = [
    question,
    { role: uses.role, content: uses.content },
    user([
      result('toolu_1', { content: [text('18°C'), image] }),
      result('toolu_2', { content: [text('no such city')], isError: true }),
    ]),
    user(text('In short, please.')),
  ];
  const preferences = { modelPreferences: { hints: [{ name: 'large' }] } };
  await stage.ask({ messages, tools: [WEATHER], toolChoice: { mode: 'none' }, ...preferences });
  expect(stage.api.last()).toMatchObject({ tool_choice: { type: 'none' } });
  expect(stage.api.last().messages.slice(1)).toEqual([
    { role: 'assistant', content: [text('Let me see.'), ...wanted] },
    {
      role: 'user',
      content: [
        { type: 'tool_result', tool_use_id: 'toolu_1', content: [text('18°C'), shown] },
        { type: 'tool_result', tool_use_id: 'toolu_2', content: [text('no such city')], is_error: true },
        text('In short, please.'),
      ],
    },
  ]);

  await stage.ask({ messages, modelPreferences: { hints: [{ name: 'small' }] } });
  expect(stage.api.last()).toMatchObject({ tools: [{ name: 'get_weather' }], tool_choice: { type: 'none' } });
  expect(stage.api.last().messages[2].content[0].content).toEqual([text('18°C\n[image/PNG, not shown]')]);
});

it('says what a tool gave that is no text', async () => {
  const messages = [
    user(text('?')),
    assistant([use('a', {}), use('b', {})]),
    user([result('a', { structuredContent: { degrees: 18 } }), result('b', {})]),
  ];
  await stage.ask({ messages, tools: [WEATHER] });
  expect(stage.api.last().messages[2].content).toEqual([
    { type: 'tool_result', tool_use_id: 'a', content: [text('{"degrees":18}')] },
    { type: 'tool_result', tool_use_id: 'b', content: [] },
  ]);
});

it.each([
  ['end_turn', 'endTurn'],
  ['stop_sequence', 'stopSequence'],
  ['max_tokens', 'maxTokens'],
  ['model_context_window_exceeded', 'maxTokens'],
  ['pause_turn', 'endTurn'],
  ['refusal', 'refusal'],
  [null, 'endTurn'],
])('tells why it stopped: %s is %s', async (stop_reason, stopReason) => {
  stage.api.reply(reply([text('x')], { stop_reason }));
  expect(await stage.ask('?')).toMatchObject({ content: text('x'), stopReason });
});

it('leaves out what MCP has no word for, and takes silence for an empty text', async () => {
  stage.api.reply(reply([{ type: 'thinking', thinking: 'Hm.', signature: 's' }, text('Yes.')]), reply([]));
  expect((await stage.ask('?')).content).toEqual(text('Yes.'));
  expect((await stage.ask('?')).content).toEqual(text(''));
});

it('counts what came from a cache, too', async () => {
  const before = await stage.usage();
  const usage = {
    input_tokens: 1,
    cache_creation_input_tokens: 20,
    cache_read_input_tokens: 300,
    output_tokens: 4_000,
  };
  stage.api.reply(reply([text('x')], { usage }));
  await stage.ask('?');
  expect((await stage.usage())?.tokens).toBe((before?.tokens ?? 0) + 4_321);
});

it.each([{}, { content: 'yes' }, [], null])('says that %j is no answer', async (body) => {
  stage.api.reply((response) => response.end(JSON.stringify(body)));
  await expect(stage.ask('Hi')).rejects.toThrow(/answered without a message; check baseUrl/);
});

it('bounds what is generated, and leaves the temperature out for models that have none', async () => {
  await using other = await modelStage('anthropic', { maxTokens: 50, temperature: false });
  await other.ask({ messages: [user(text('Hi'))], maxTokens: 90, temperature: 0.3 });
  expect(other.api.last().max_tokens).toBe(50);
  expect(Object.keys(other.api.last())).not.toContain('temperature');
});
