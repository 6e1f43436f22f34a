// Which questions a host is asked: what it declared, as far as that can be read, and what the version that it speaks has.
// Everything else is for the next in line.

import { describe, expect, test } from 'vitest';
import { ERAS, type Era } from '../../src/protocol/eras.ts';
import { named } from '../../src/sessions/calls.ts';
import { capabilitiesOf, readInitialize } from '../../src/sessions/initialize.ts';
import { createQuestions } from '../../src/sessions/questions.ts';
import { realWorld } from '../../src/world/world.ts';

const ALL = { elicitation: { form: {}, url: {} }, sampling: { tools: {} } };
const text = (words: string) => ({ type: 'text', text: words });
const user = (content: unknown) => ({ messages: [{ role: 'user', content }], maxTokens: 9 });
const use = { type: 'tool_use', id: 'u', name: 'look', input: {} };
const result = { type: 'tool_result', toolUseId: 'u', content: [] };
const USED = [
  { role: 'assistant', content: use },
  { role: 'user', content: result },
];

const QUESTIONS = {
  form: { message: 'Who?', requestedSchema: { type: 'object', properties: {} } },
  url: { mode: 'url', message: 'Go there', url: 'https://example.com/', elicitationId: 'e' },
  message: user(text('hi')),
  parts: user([text('hi')]),
  tools: { ...user(text('hi')), tools: [{ name: 'look', inputSchema: { type: 'object' } }] },
  choice: { ...user(text('hi')), toolChoice: { mode: 'none' } },
  used: { ...user(text('hi')), messages: USED },
};
type Name = keyof typeof QUESTIONS;
const NAMES = Object.keys(QUESTIONS) as Name[];

const initialized = (declared: unknown, protocolVersion: string) =>
  readInitialize(Buffer.from(JSON.stringify({ protocolVersion, capabilities: declared, clientInfo: {} })));

function askedOf(host: Parameters<typeof createQuestions>[0]): Name[] {
  const told: string[] = [];
  const line = { tell: (frame: Buffer) => void told.push(frame.toString()), answer: () => {} };
  const questions = createQuestions(host, () => {}, realWorld);
  return NAMES.filter((name) => {
    const method = name === 'form' || name === 'url' ? 'elicitation/create' : 'sampling/createMessage';
    const params = Buffer.from(JSON.stringify(QUESTIONS[name]));
    const asking = questions.ask({ line, isOpen: true }, { method, params, answer: () => {} });
    expect(told.splice(0)).toHaveLength(asking ? 1 : 0);
    return asking !== undefined;
  });
}

describe('a host that declares everything', () => {
  test.each<[Era, Name[]]>([
    ['2024-11-05', ['message']],
    ['2025-03-26', ['message']],
    ['2025-06-18', ['form', 'message']],
    ['2025-11-25', NAMES],
  ])('and speaks %s is asked what that version has: %j', (era, names) => {
    expect(askedOf(initialized(ALL, era))).toEqual(names);
  });

  test('knows what to do with an address only if its version has them', () => {
    const handling = ERAS.filter((era) => createQuestions(initialized(ALL, era), () => {}, realWorld).handlesUrls);
    expect(handling).toEqual(['2025-11-25']);
  });
});

const FORMS = ['form'];
const MESSAGES = ['message', 'parts'];
const DECLARED: [unknown, string[]][] = [
  [{}, []],
  [null, []],
  [[], []],
  ['elicitation', []],
  [{ elicitation: null, sampling: null }, []],
  [{ elicitation: 3, sampling: 'yes' }, []],
  [{ elicitation: true, sampling: false }, []],
  [{ elicitation: [], sampling: [{ tools: {} }] }, []],
  [{ elicitation: {} }, FORMS],
  [{ elicitation: { form: {} } }, FORMS],
  [{ elicitation: { url: null } }, FORMS],
  [{ elicitation: { form: null, url: {} } }, ['url']],
  [{ elicitation: { form: [], url: 1 } }, FORMS],
  [{ sampling: {} }, MESSAGES],
  [{ sampling: { tools: null } }, MESSAGES],
  [{ sampling: { tools: true, context: {} } }, MESSAGES],
  [{ sampling: { tools: {} } }, ['message', 'parts', 'tools', 'choice', 'used']],
  [JSON.parse('{"__proto__":{"sampling":{}},"constructor":null}'), []],
];

test.each(DECLARED)('a host that declares %j is asked %j', (declared, names) => {
  expect(askedOf(initialized(declared, '2025-11-25'))).toEqual(names);
});

test('what a host can do besides is kept as it says it', () => {
  const others = { roots: { listChanged: true }, experimental: { x: 1 } };
  expect(capabilitiesOf({ ...others, ...ALL, tasks: null }, '2025-11-25')).toEqual({ ...others, ...ALL });
});

describe('at an endpoint of many servers', () => {
  const ask = (params: string, more: object = {}) => ({
    ...{ method: 'elicitation/create', params: Buffer.from(params), answer: () => {}, ...more },
  });
  const PARAMS = '{ "a":1e2, "message" : "Sign \\u0041\\n\\"now\\"", "b":12345678901234567890 }';

  test('a question says whose it is, and no other byte is another', () => {
    const told = named('gh', ask(PARAMS))?.params.toString();
    expect(told).toBe('{ "a":1e2, "message" : "gh asks: Sign A\\n\\"now\\"", "b":12345678901234567890 }');
  });

  test('what is ours, and what has no message, stays as it is', () => {
    expect(named('gh', ask(PARAMS, { isOurs: true }))?.params.toString()).toBe(PARAMS);
    expect(named('gh', ask(PARAMS, { method: 'sampling/createMessage' }))?.params.toString()).toBe(PARAMS);
  });

  test('a question whose words cannot be told apart is for somebody else', () => {
    expect(named('gh', ask('{"message":"a","message":"b"}'))).toBeUndefined();
    expect(named('gh', ask('{"message":7}'))).toBeUndefined();
  });
});
