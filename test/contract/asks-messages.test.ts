// The rules of sampling: what a server may send to a model, and what may come back.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { checkResult, readSampling } from '../../src/asks/models/messages.ts';

const bytes = (value: unknown) => Buffer.from(JSON.stringify(value));
const text = (words: string) => ({ type: 'text', text: words });
const use = (id: string, name = 'weather') => ({ type: 'tool_use', id, name, input: {} });
const result = (toolUseId: string) => ({ type: 'tool_result', toolUseId, content: [text('18 °C')] });
const user = (...content: object[]) => ({ role: 'user', content });
const assistant = (...content: object[]) => ({ role: 'assistant', content });
const tool = (name: string) => ({ name, inputSchema: { type: 'object' } });

const MISSING = 'Tool result missing in request';
const MIXED = 'Tool results mixed with other content';
const ask = (messages: unknown, rest: object = {}) => readSampling(bytes({ messages, maxTokens: 100, ...rest }));
const hi = [{ role: 'user', content: text('Hi') }];

describe('readSampling', () => {
  it('reads the examples of the specification', () => {
    const first = { ...hi[0], content: text("What's the weather like in Paris and London?") };
    const tools = [{ ...tool('get_weather'), description: 'Get current weather for a city' }];
    expect(ask([first], { tools, toolChoice: { mode: 'auto' } })).toEqual({
      message: "What's the weather like in Paris and London?",
      iterations: 0,
      hasTools: true,
      toolChoice: 'auto',
      toolNames: new Set(['get_weather']),
    });
    const loop = [
      first,
      assistant(use('call_abc123'), use('call_def456')),
      user(result('call_def456'), result('call_abc123')),
    ];
    expect(ask(loop, { tools })).toMatchObject({ iterations: 1, message: '[tool result] [tool result]' });
    expect(ask([...loop, assistant(text('Mild.')), user(text('And Rome?'))])).toMatchObject({
      iterations: 1,
      message: 'And Rome?',
    });
    const all = {
      modelPreferences: { hints: [{ name: 'claude' }] },
      systemPrompt: 'Be kind.',
      temperature: 0.7,
      includeContext: 'thisServer',
    };
    expect(ask(hi, { ...all, stopSequences: ['\n'], metadata: {} })).toMatchObject({ message: 'Hi', hasTools: false });
  });

  it('takes text, images and sound, alone or together', () => {
    const image = { type: 'image', data: 'AAAA', mimeType: 'image/png' };
    const audio = { type: 'audio', data: 'AAAA', mimeType: 'audio/wav' };
    expect(ask([{ role: 'user', content: image }, user(text('Both?'), image, audio)])).toMatchObject({
      message: 'Both? [image] [audio]',
    });
  });

  it.each([
    ['a use without a result', [assistant(use('a'))], MISSING],
    ['a use at the very end', [...hi, assistant(text('Let me see.'), use('a'))], MISSING],
    ['one result of two', [assistant(use('a'), use('b')), user(result('a')), assistant(text('x'))], MISSING],
    ['another message in between', [assistant(use('a')), user(text('x')), user(result('a'))], MISSING],
    ['an assistant in between', [assistant(use('a')), assistant(text('x')), user(result('a'))], MISSING],
    ['a result and a text', [assistant(use('a')), user(text('Here:'), result('a'))], MIXED],
    [
      'a result and an image',
      [assistant(use('a')), user(result('a'), { type: 'image', data: '', mimeType: '' })],
      MIXED,
    ],
    ['a result of nothing', [user(result('a'))], 'Tool result "a" has no tool use in the message before it'],
    ['a result too many', [assistant(use('a')), user(result('a'), result('b'))], 'Tool result "b" has no tool use'],
    [
      'a result twice over',
      [assistant(use('a')), user(result('a')), user(result('a'))],
      'Tool result "a" has no tool use',
    ],
    ['a result twice in one', [assistant(use('a')), user(result('a'), result('a'))], 'id "a" given twice'],
    ['an id twice', [assistant(use('a'), use('a')), user(result('a'))], 'id "a" given twice'],
    ['a use by the user', [user(use('a'))], 'Tool use in a message of the user'],
    ['a result by the assistant', [assistant(result('a'))], 'Tool result in a message of the assistant'],
    ['no messages', [], 'messages must not be empty'],
    ['messages that are none', 'Hi', 'messages must be a list'],
    ['a message that is none', ['Hi'], 'message 1 must be an object'],
    ['another role', [{ role: 'system', content: text('x') }], 'the role of message 1 must be user or assistant'],
    ['no content', [...hi, { role: 'user' }], 'message 2: the content must be an object'],
    ['an unknown type', [user({ type: 'video' })], 'message 1: the type of a content must be'],
    ['a text without text', [user({ type: 'text' })], 'message 1: a text must have its text'],
    ['an image without a type', [user({ type: 'image', data: '' })], 'message 1: an image must have data and mimeType'],
    ['a use without input', [assistant({ type: 'tool_use', id: 'a', name: 'b' })], 'an object as its input'],
    ['a use without a name', [assistant({ type: 'tool_use', id: 'a', input: {} })], 'must have an id and a name'],
    ['a result of no id', [user({ type: 'tool_result', content: [] })], 'must have a toolUseId'],
    ['a result that is a text', [user({ type: 'tool_result', toolUseId: 'a', content: 'x' })], 'must be a list'],
    ['a flood of blocks', [user(...Array.from({ length: 1001 }, () => text('')))], 'more than 1000 blocks'],
    ['a flood of messages', Array.from({ length: 2001 }, () => hi[0]), 'must not be more than 2000'],
  ])('refuses %s', (_, messages, sentence) => {
    expect(ask(messages)).toContain(sentence);
  });

  it.each([
    [{ maxTokens: 0 }, 'maxTokens must be a number above 0'],
    [{ maxTokens: '100' }, 'maxTokens must be'],
    [{ maxTokens: undefined }, 'maxTokens must be'],
    [{ systemPrompt: 5 }, 'systemPrompt must be a text'],
    [{ temperature: '1' }, 'temperature must be a number'],
    [{ stopSequences: 'x' }, 'stopSequences must be a list'],
    [{ stopSequences: [1] }, 'stopSequences must be texts'],
    [{ modelPreferences: [] }, 'modelPreferences must be an object'],
    [{ tools: {} }, 'tools must be a list'],
    [{ tools: [{ name: 'a' }] }, 'must have a name and an inputSchema'],
    [{ tools: [tool('a'), tool('a')] }, 'two of the name "a"'],
    [{ toolChoice: { mode: 'any' } }, 'the mode of toolChoice must be'],
    [{ toolChoice: { mode: 'required' }, tools: [] }, 'toolChoice requires a tool'],
  ])('refuses params with %j', (rest, sentence) => {
    expect(ask(hi, rest)).toContain(sentence);
  });

  it('refuses what two readers would read in two ways', () => {
    const twice = Buffer.from('{"maxTokens":1,"messages":[],"mess\\u0061ges":[]}');
    expect(readSampling(twice)).toBe('the params must not have "messages" twice');
    expect(readSampling(Buffer.from('{"maxTokens":1,"messages":[{'))).toBe('the params must be an object');
  });

  it('shows the last words in short and harmlessly', () => {
    const { message } = ask([user(text(`\u001b[2J one\n\n\ttwo ${'🎭'.repeat(300)}`)), assistant(text('no'))]) as {
      message: string;
    };
    expect(message).toMatch(/^\ufffd\[2J one two 🎭+…$/u);
    expect([...message]).toHaveLength(200);
  });

  it('says of all JSON whether it is a request, and never throws', () => {
    const likeBlock = fc.constantFrom(use('a'), use('b'), result('a'), result('b'), text('x'));
    const likeMessage = fc.record({
      role: fc.constantFrom('user', 'assistant'),
      content: fc.oneof(likeBlock, fc.array(likeBlock, { maxLength: 3 }), fc.jsonValue({ maxDepth: 2 })),
    });
    const turn = fc.oneof(
      fc.constantFrom(
        [assistant(use('a')), user(result('a'))],
        [assistant(use('a'), use('b')), user(result('b'), result('a'))],
      ),
      fc.array(likeMessage, { maxLength: 1 }),
    );
    const messages = fc.oneof(
      fc.array(turn, { maxLength: 4 }).map((turns) => turns.flat()),
      fc.jsonValue(),
    );
    const likeParams = fc.record({ messages, maxTokens: fc.nat(2) });
    let balanced = 0;
    fc.assert(
      fc.property(fc.oneof(likeParams, fc.jsonValue()), (params) => {
        const given = bytes(params);
        const before = Buffer.from(given);
        const read = readSampling(given);
        expect(given.equals(before)).toBe(true);
        expect(read).not.toBe('');
        if (typeof read === 'string') return;
        balanced += read.iterations;
        // What was let through is balanced by a plainer rule: each use is answered by the very next message.
        const blocks = (params as any).messages.map(({ content }: any) => [content].flat());
        for (const [index, each] of blocks.entries()) {
          const uses = each.filter(({ type }: any) => type === 'tool_use').map(({ id }: any) => id);
          const next = (blocks[index + 1] ?? []).map(({ toolUseId }: any) => toolUseId);
          if (uses.length > 0) expect(next.toSorted()).toEqual(uses.toSorted());
        }
      }),
      { numRuns: 2000 },
    );
    expect(balanced).toBeGreaterThan(100);
  });
});

describe('checkResult', () => {
  const request = (rest: object) => bytes({ messages: hi, maxTokens: 100, ...rest });
  const check = (answer: object, rest: object = { tools: [tool('weather')] }) =>
    checkResult(request(rest), bytes({ role: 'assistant', model: 'm', ...answer }));
  const tools = [tool('weather')];

  it.each([
    [{ content: text('Hi'), stopReason: 'endTurn' }, {}],
    [{ content: [text('Let me see.'), use('a'), use('b')], stopReason: 'toolUse' }, { tools }],
    [
      { content: use('a'), stopReason: 'tool_calls' },
      { tools, toolChoice: { mode: 'required' } },
    ],
    [{ content: [text('No tool.')] }, { tools, toolChoice: { mode: 'none' } }],
    [{ content: { type: 'audio', data: 'AA', mimeType: 'audio/wav' } }, {}],
  ])('takes %j', (answer, rest) => {
    expect(check(answer, rest)).toBeUndefined();
  });

  it.each([
    [{ role: 'user', content: text('x') }, {}, 'role: must be assistant'],
    [{ model: undefined, content: text('x') }, {}, 'model: must be'],
    [{ content: 'x' }, {}, 'content: the content must be an object'],
    [{ content: [result('a')] }, {}, 'content: an assistant gives no results'],
    [{ content: text('x'), stopReason: 'toolUse' }, { tools }, 'stopReason: must not be toolUse'],
    [{ content: text('x'), stopReason: 5 }, {}, 'stopReason: must be a text'],
    [{ content: use('a') }, {}, 'content: the server offers no tool "weather"'],
    [{ content: use('a', 'rm') }, { tools }, 'content: the server offers no tool "rm"'],
    [{ content: use('a') }, { tools, toolChoice: { mode: 'none' } }, 'content: the server wants no tool'],
    [{ content: text('x') }, { tools, toolChoice: { mode: 'required' } }, 'content: the server requires'],
    [{ content: [use('a'), use('a')] }, { tools }, 'content: two tools are used under the id "a"'],
  ])('refuses %j to %j', (answer, rest, sentence) => {
    expect(check(answer, rest)).toContain(sentence);
  });
});
