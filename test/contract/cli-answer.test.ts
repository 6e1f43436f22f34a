// `troupe answer` with a flag, as scripts use it: what leaves for the daemon, what comes back, and every way to be refused.
// Also how a form reads what is typed into it.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import type { Field } from '../../src/asks/forms/form.ts';
import { readValue, type Value, valueText } from '../../src/cli/answer/field.ts';
import { openBrowser } from '../../src/cli/terminal/programs.ts';
import { folded } from '../../src/cli/terminal/words.ts';
import { type Asked, type Reply, workplace } from '../support/cli.ts';

const idOf = (start: string): string => `${start}-0000-4000-8000-000000000000`;
const ask = (id: string, more: object = {}) => ({
  ...{ id: idOf(id), kind: 'elicitation', mode: 'form', stage: 'answer', server: 'everything', tool: 'greet' },
  ...{ principal: '_', message: 'Who are you?', openedAt: 1, expiresAt: 2, waitsOn: 'inbox', ...more },
});
const schema = (required: string[]) => ({
  type: 'object',
  properties: { name: { type: 'string' }, size: { type: 'integer', default: 3 }, color: { type: 'string' } },
  required,
});
const ASKS = [
  ask('ab12cd34', { schema: schema(['name', 'color']) }),
  ask('ab99cd34', { schema: schema(['size']) }),
  ask('bb12cd34', { mode: 'url', url: 'https://example.com/a' }),
  ask('cb12cd34', { kind: 'sampling', request: { messages: [] } }),
  ask('db12cd34', { kind: 'sampling', stage: 'request', request: { messages: [] } }),
  ask('eb12cd34', { kind: 'approval', arguments: {} }),
  ask('fb12cd34', { mode: 'url', stage: 'done', url: 'https://example.com/a' }),
];
const daemon =
  (outcome = 'accepted') =>
  ({ method, params }: Asked): Reply => ({
    result: JSON.stringify(method === 'inbox' ? { version: 1, asks: ASKS } : { id: params.id, outcome }),
  });

test.each([
  [
    'ab12',
    ['--accept', '{"name":"Ada", "big":12345678901234567890}'],
    '"content":{"name":"Ada", "big":12345678901234567890}}',
  ],
  ['ab12cd34-0000', ['--decline'], '"action":"decline","stage":"answer"}'],
  ['AB12', ['--cancel'], '"action":"cancel","stage":"answer"}'],
  ['ab99', ['--accept'], '"content":{"size":3}}'],
  ['bb12', ['--accept'], '"action":"accept","stage":"answer"}'],
  ['eb12', ['--accept'], '"action":"accept","stage":"answer"}'],
  ['fb12', ['--accept'], '"action":"accept","stage":"done"}'],
  ['db12', ['--accept'], '"action":"accept","stage":"request"}'],
  ['db12', ['--accept', '{"messages":[]}'], '"stage":"request","content":{"messages":[]}}'],
])('answer %s %j says what was said, and to what', async (id, flags, tail) => {
  await using place = workplace();
  const asked = await place.control(daemon());
  const { code, stdout, stderr } = await place.run('answer', id, ...flags);
  expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: 'everything has your answer\n', stderr: '' });
  expect(asked.map(({ method }) => method)).toEqual(['inbox', 'answer']);
  expect(asked[1]?.params.id).toMatch(new RegExp(`^${id.toLowerCase()}`));
  expect(asked[1]?.line.endsWith(`${tail}}`)).toBe(true);
});

test('text is short for what a model would say', async () => {
  await using place = workplace();
  const asked = await place.control(daemon('answered'));
  const { stdout } = await place.run('answer', 'cb12', '--accept', '{"text":"Paris"}', '--json');
  expect(JSON.parse(stdout)).toEqual({ id: idOf('cb12cd34'), outcome: 'answered' });
  expect(asked[1]?.params.content).toEqual({
    ...{ role: 'assistant', model: 'human', content: { type: 'text', text: 'Paris' }, stopReason: 'endTurn' },
  });
});

test.each([
  ['db12', '--accept', 'open', 'open; answer again: troupe answer db12cd34\n'],
  ['cb12', '--cancel', 'rejected', 'everything is told that you cancelled\n'],
  ['cb12', '--decline', 'rejected', 'everything is told that you declined\n'],
])('of %s %s that ends as %s a script reads what comes next', async (id, flag, outcome, said) => {
  await using place = workplace();
  await place.control(daemon(outcome));
  expect(await place.run('answer', id, flag)).toEqual({ code: 0, stdout: said, stderr: '' });
});

test('what is said may come from a file', async () => {
  await using place = workplace();
  const asked = await place.control(daemon());
  writeFileSync(join(place.directory, 'answer.json'), '{\n  "name": "Ada"\n}\n');
  expect((await place.run('answer', 'ab12', '--accept', '@answer.json')).code).toBe(0);
  expect(asked[1]?.params.content).toEqual({ name: 'Ada' });
});

test.each([
  [['ab12'], /without a terminal; say --accept, --accept '<json>', --decline or --cancel/],
  [['ab12', '--accept'], /the form wants name, color; say --accept '\{"name":"…"\}'/],
  [['ab12', '--accept', '{"name"'], /--accept is not JSON/],
  [['ab12', '--accept', '[]'], /--accept wants a JSON object/],
  [['ab12', '--accept', '@gone.json'], /--accept @gone.json cannot be read/],
  [['ab12', '--accept', '-'], /--accept is not JSON/],
  [['ab12', '--accept', '--decline'], /--accept and --decline cannot both be said/],
  [['ab1', '--decline'], /too short/],
  [['ab1', '--decline', '--cancel'], /cannot both/],
  [['cb12', '--accept'], /a model's answer wants words/],
  [['bb12', '--accept', '{}'], /an address takes no JSON/],
  [['eb12', '--accept', '{}'], /an approval takes no JSON/],
])('answer %j is a usage error, and nothing is sent', async (words, sentence) => {
  await using place = workplace();
  const asked = await place.control(daemon());
  const { code, stdout, stderr } = await place.run('answer', ...words);
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toMatch(sentence);
  expect(asked.filter(({ method }) => method === 'answer')).toEqual([]);
});

test('a beginning that fits several is told so, and one that fits none', async () => {
  await using place = workplace();
  await place.control(({ method }) => ({
    result: JSON.stringify(method === 'inbox' ? { version: 1, asks: [ask('ab12cd34'), ask('ab12ffff')] } : {}),
  }));
  expect(await place.run('answer', 'ab12', '--decline')).toMatchObject({
    ...{ code: 2, stderr: 'troupe: 2 questions begin with ab12; write more of the id\n' },
  });
  expect(await place.run('answer', 'ffff', '--decline')).toMatchObject({
    ...{ code: 1, stderr: 'troupe: no open question begins with ffff; `troupe inbox` lists them\n' },
  });
});

test.each([
  ['answered', 1, 'question ab12cd34 was already answered by the host'],
  ['invalid', 2, 'name: must NOT have fewer than 3 characters'],
])('a refusal %s of the daemon is its sentence, and the exit code %d', async (code, exit, message) => {
  await using place = workplace();
  const error = { code: -32016, message, data: { troupe: { code, delivery: 'not sent' } } };
  const asks = JSON.stringify({ version: 1, asks: ASKS });
  const asked = await place.control(({ method }) => (method === 'inbox' ? { result: asks } : { error }));
  expect(await place.run('answer', 'ab12', '--decline')).toEqual({
    code: exit,
    stdout: '',
    stderr: `troupe: ${message}\n`,
  });
  // One that is gone is not in the list; by its whole id the daemon still knows what became of it.
  expect((await place.run('answer', idOf('0000cd34'), '--decline')).stderr).toBe(`troupe: ${message}\n`);
  expect(asked.at(-1)?.params).toEqual({ id: idOf('0000cd34'), action: 'decline' });
});

const common = { name: 'f', title: 'F', description: '', isRequired: false };
const choices = [
  { value: 'r', title: 'Red' },
  { value: '1', title: 'One' },
  { value: 'g', title: 'Green' },
];
const text: Field = { ...common, type: 'string' };
const required: Field = { ...text, isRequired: true };
const choice: Field = { ...common, type: 'choice', choices };
const several: Field = { ...common, type: 'choices', choices };
const integer: Field = { ...common, type: 'integer' };

test.each<[Field, string, Value, Value]>([
  [text, ' a b ', undefined, 'a b'],
  [text, '', 'kept', 'kept'],
  [text, '', undefined, undefined],
  [text, '-', 'kept', undefined],
  [text, '-', undefined, '-'],
  [text, '""', 'kept', ''],
  [text, '"-"', 'kept', '-'],
  [required, '"-"', 'kept', '-'],
  [{ ...required, isNullable: true }, '', undefined, null],
  [integer, '-7', undefined, -7],
  [integer, '1e3', undefined, 1000],
  [{ ...common, type: 'number' }, '.5', undefined, 0.5],
  [{ ...common, type: 'boolean' }, 'YES', undefined, true],
  [{ ...common, type: 'boolean' }, 'n', true, false],
  [choice, '3', undefined, 'g'],
  [choice, '1', undefined, '1'],
  [choice, 'GREEN', undefined, 'g'],
  [several, '3, red,3', undefined, ['g', 'r']],
  [several, '-', ['g'], undefined],
])('%j reads %j with %j in brackets as %j', (field, typed, kept, value) => {
  expect(readValue(field, typed, kept)).toEqual({ value });
});

test.each<[Field, string, RegExp]>([
  [required, '', /required; type "" for an empty text/],
  [required, '-', /required; type "-" for that sign/],
  [{ ...integer, isRequired: true }, '-', /It is required\.$/],
  [integer, '1.5', /whole number/],
  [integer, 'seven', /no number; type one like 42/],
  [integer, '0x10', /no number/],
  [integer, '12345678901234567890', /too large to be sent exactly/],
  [{ ...common, type: 'boolean' }, 'maybe', /y or n/],
  [choice, '4', /"4" is none of them; type a number from 1 to 3/],
  [several, 'r, x\x1b', /"x\\u001b" is none of them; type numbers from 1 to 3, with commas/],
])('%j does not take %j', (field, typed, problem) => {
  expect(readValue(field, typed, undefined)).toEqual({ problem: expect.stringMatching(problem) });
});

test('values are shown by their titles, with what is sent where that differs', () => {
  expect(valueText(several, ['r', '1'])).toBe('Red (r), One (1)');
  expect(valueText({ ...choice, choices: [{ value: 'a', title: 'a' }] }, 'a')).toBe('a');
  expect(valueText(text, undefined)).toBe('(left out)');
});

test('a machine without an opener of browsers, and an address for none, are told apart from success', async () => {
  vi.stubEnv('PATH', '/nowhere');
  onTestFinished(() => void vi.unstubAllEnvs());
  expect(await openBrowser('https://example.com/')).toBe(false);
  expect(await openBrowser('file:///etc/passwd')).toBe(false);
});

test('a text is folded between words, within words where there is no other way, and wide letters count twice', () => {
  expect(folded('one two three', 8)).toEqual(['one two', 'three']);
  expect(folded('one two three', 7)).toEqual(['one two', 'three']);
  expect(folded('  one two', 6)).toEqual(['  one', 'two']);
  expect(folded('abcdefghijk', 5)).toEqual(['abcde', 'fghij', 'k']);
  expect(folded('日本語日本語', 7)).toEqual(['日本語', '日本語']);
  expect(folded('x'.repeat(1_000_000), 76)).toHaveLength(13_158);
  expect(folded('a\n\nb\n', 5)).toEqual(['a', '', 'b']);
});
