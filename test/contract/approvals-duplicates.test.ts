// JSON that means one thing to everybody: no object in it has a name twice.

import fc from 'fast-check';
import { expect, it } from 'vitest';
import { namesEachOnce } from '../../src/protocol/json.ts';

const isPlain = (json: string) => namesEachOnce(Buffer.from(json));

it.each([
  '{"a":1,"a":1}',
  '{"a":1 , "\\u0061" : 2}',
  '{"":{}, "":[]}',
  '[[{"b":[{"c":1,"d":{},"c":2}]}]]',
  '{"a":{"b":1},"c":[{"b":1}],"a":"b"}',
])('%s is refused', (json) => {
  expect(isPlain(json)).toBe(false);
});

it.each([
  '{}',
  '{"a":{"a":["a","a",{"a":"a"}]},"b":"\\"a\\":"}',
  '[{"a":1},{"a":2}]',
  '["a","a"]',
  '{"A":1,"a":2,"a ":3}',
])('%s is taken', (json) => {
  expect(isPlain(json)).toBe(true);
});

it('takes whatever was written from a value, and nothing of it with a member repeated', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.string(), (value, name) => {
      expect(isPlain(JSON.stringify({ deep: [value], other: value }))).toBe(true);
      const twice = `${JSON.stringify(name)}:${JSON.stringify(value)}`;
      expect(isPlain(`{"deep":[{${twice}, ${twice}}]}`)).toBe(false);
    }),
  );
});

it('refuses what is no JSON, and more names than anybody would read, and takes any depth', () => {
  expect(isPlain('{"a')).toBe(false);
  const many = (count: number) => `[${Array.from({ length: count }, () => '{"a":1}').join()}]`;
  expect([isPlain(many(100_000)), isPlain(many(100_001))]).toEqual([true, false]);
  expect(isPlain(`${'[{"a":'.repeat(50_000)}1${'}]'.repeat(50_000)}`)).toBe(true);
});
