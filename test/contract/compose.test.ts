// Frames that are written as bytes say what their text would.

import fc from 'fast-check';
import { expect, it } from 'vitest';
import { knownBytes, progressFrame, wrapped } from '../../src/protocol/compose.ts';
import { digitsOf, putDigits } from '../../src/protocol/digits.ts';

const whole = fc.oneof(fc.nat(), fc.constantFrom(0, 9, 10, 99, 100, 999_999_999, 2 ** 32, Number.MAX_SAFE_INTEGER));

it('writes every whole number as JSON does', () => {
  fc.assert(
    fc.property(whole, fc.nat({ max: 5 }), (value, from) => {
      const bytes = Buffer.alloc(32, '_');
      const to = putDigits(bytes, from, value);
      expect(to - from).toBe(digitsOf(value));
      expect(bytes.toString('latin1', 0, to + 1)).toBe(`${'_'.repeat(from)}${value}_`);
    }),
  );
});

it('asks for progress by the id, and leaves all else as it is', () => {
  const params = fc.dictionary(fc.string(), fc.jsonValue()).filter((each) => !('_meta' in each));
  fc.assert(
    fc.property(whole, fc.string(), params, fc.constantFrom('', ' ', '\n '), (id, method, given, space) => {
      const bytes = Buffer.from(JSON.stringify(given).replace('{', `{${space}`));
      const frame = progressFrame(id, method, bytes).toString();
      expect(frame.indexOf('\n')).toBe(frame.length - 1);
      const expected = { jsonrpc: '2.0', id, method, params: { _meta: { progressToken: id }, ...given } };
      expect(JSON.parse(frame)).toEqual(JSON.parse(JSON.stringify(expected)));
    }),
  );
});

it('keeps the bytes of short names, and of no more than some', () => {
  let made = 0;
  const bytesOf = knownBytes((name) => {
    made++;
    return `"${name}":`;
  });
  expect(wrapped(bytesOf('é'), Buffer.from('1')).toString()).toBe('"é":1}');
  for (let turn = 0; turn < 3; turn++) bytesOf('é');
  expect(made).toBe(1);
  for (let turn = 0; turn < 3; turn++) bytesOf('x'.repeat(129));
  expect(made).toBe(4);
  for (let name = 0; name < 1_100; name++) bytesOf(`${name}`);
  bytesOf('é');
  expect(made).toBe(4 + 1_100 + 1);
});
