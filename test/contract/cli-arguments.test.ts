// What the user types becomes the JSON of a tool's arguments, typed by its schema, with every digit as it was written.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { argumentsJson, stringArguments } from '../../src/cli/calls/arguments.ts';

const SCHEMA = {
  type: 'object',
  properties: {
    text: { type: 'string' },
    count: { type: 'integer' },
    ratio: { type: 'number' },
    deep: { type: 'boolean' },
    list: { type: 'array' },
    map: { type: 'object' },
    maybe: { type: ['string', 'null'] },
    either: { anyOf: [{ type: 'string' }, { type: 'number' }] },
    color: { enum: ['red', 'blue'] },
    elsewhere: { $ref: '#/$defs/x' },
  },
};

const json = (pairs: string[], args?: string, schema: unknown = SCHEMA): string =>
  argumentsJson(pairs, args, schema).toString();

test.each([
  ['text=5', '{"text":"5"}'],
  ['text=true', '{"text":"true"}'],
  ['text=a=b', '{"text":"a=b"}'],
  ['text=', '{"text":""}'],
  ['text=line\nbreak "quoted"', '{"text":"line\\nbreak \\"quoted\\""}'],
  ['count=9007199254740993', '{"count":9007199254740993}'],
  ['ratio=1e400', '{"ratio":1e400}'],
  ['ratio=3', '{"ratio":3}'],
  ['deep=true', '{"deep":true}'],
  ['list=[1,2.50]', '{"list":[1,2.50]}'],
  ['map={"b":1,"a":2}', '{"map":{"b":1,"a":2}}'],
  ['maybe=null', '{"maybe":null}'],
  ['maybe=5', '{"maybe":"5"}'],
  ['either=5', '{"either":5}'],
  ['either=five', '{"either":"five"}'],
  ['color=red', '{"color":"red"}'],
  ['elsewhere=5', '{"elsewhere":5}'],
  ['unknown=5', '{"unknown":5}'],
  ['unknown=five', '{"unknown":"five"}'],
  ['unknown="5"', '{"unknown":"\\"5\\""}'],
  ['text:=5', '{"text":5}'],
  ['text:={"x":9007199254740993}', '{"text":{"x":9007199254740993}}'],
])('%s becomes %s', (pair, expected) => expect(json([pair])).toBe(expected));

test.each([
  ['count=many', /count wants integer/],
  ['count=1.5', /count wants integer/],
  ['deep=yes', /deep wants boolean/],
  ['list=a', /list wants array/],
  ['text:={', /the value of text is not JSON/],
  ['=5', /is no argument/],
  ['word', /write key=value/],
])('%s is refused in one sentence', (pair, sentence) => expect(() => json([pair])).toThrow(sentence));

test('--args alone passes as it was written', () => {
  const written = '{"b":9007199254740993,  "a":1.0,"b2":{"z":1,"a":2}}';
  expect(json([], written)).toBe(written);
});

test('pairs are added to --args, and win', () => {
  expect(json(['count=2', 'text=x'], '{"big":9007199254740993,"count":1}')).toBe(
    '{"big":9007199254740993,"count":2,"text":"x"}',
  );
});

test('--args @file reads a file, pretty-printed or not', () => {
  const directory = mkdtempSync(join(tmpdir(), 'troupe-args-'));
  const file = join(directory, 'args.json');
  writeFileSync(file, '{\n  "n": 9007199254740993\n}\n');
  expect(JSON.parse(json([], `@${file}`))).toEqual({ n: 9007199254740992 });
  expect(json([], `@${file}`)).toContain('9007199254740993');
  rmSync(directory, { recursive: true });
  expect(() => json([], `@${file}`)).toThrow(/cannot be read/);
});

test.each(['[1]', '"x"', '5', '{', ''])('--args %j is refused: it must be an object', (args) =>
  expect(() => json([], args)).toThrow(/--args/),
);

test('any integer keeps its digits, whatever the schema knows', () => {
  const digits = fc.bigInt({ min: -(10n ** 60n), max: 10n ** 60n });
  fc.assert(fc.property(digits, (n) => json([`count=${n}`]) === `{"count":${n}}` && json([`x=${n}`]) === `{"x":${n}}`));
});

test('any string survives as a string argument', () => {
  fc.assert(fc.property(fc.string({ unit: 'grapheme' }), (text) => JSON.parse(json([`text=${text}`])).text === text));
});

test('arguments of prompts are strings', () => {
  expect(stringArguments(['a=5', 'b:=6', 'c=x=y'])).toEqual({ a: '5', b: '6', c: 'x=y' });
});
