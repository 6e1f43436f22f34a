// What holds for all JSON, all chunkings and all damage, not only for the lines we thought of.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { requestFrame } from '../../src/protocol/compose.ts';
import { withProgressToken } from '../../src/protocol/edit.ts';
import { readFrame } from '../../src/protocol/frame.ts';
import { elements, member, members, stringOf } from '../../src/protocol/json.ts';
import { splitLines } from '../../src/protocol/lines.ts';

const indents = fc.constantFrom(undefined, 0, 1, '\t');
const json = fc
  .tuple(fc.jsonValue({ maxDepth: 6 }), indents)
  .map(([value, indent]) => JSON.stringify(value, null, indent));
const key = fc.oneof(fc.constantFrom('_meta', 'progressToken', 'a', '__proto__'), fc.string({ unit: 'binary' }));
const object = fc.dictionary(key, fc.jsonValue({ maxDepth: 3 })).map((value) => ({ ...value }));

describe('readFrame', () => {
  it('takes all that JSON.parse takes and gives its bytes back', () => {
    fc.assert(
      fc.property(json, fc.nat(), (text, id) => {
        const frame = readFrame(Buffer.from(`{"jsonrpc":"2.0","id":${id},"result":${text}}`));
        expect(frame).toEqual({ kind: 'result', id: String(id), result: Buffer.from(text) });
      }),
    );
  });

  it('agrees with JSON.parse on damaged JSON', () => {
    const damage = fc.record({
      at: fc.nat(),
      drop: fc.nat(2),
      put: fc.constantFrom(...'{}[]",:\\u0-+.eE1 tfn\t', '', '00'),
    });
    fc.assert(
      fc.property(json, damage, (text, { at, drop, put }) => {
        const start = at % (text.length + 1);
        const damaged = text.slice(0, start) + put + text.slice(start + drop);
        const line = Buffer.from(`{"jsonrpc":"2.0","id":1,"result":${damaged}}`);
        expect(isNotJson(line)).toBe(!isJson(line));
      }),
      { numRuns: 2000 },
    );
  });

  it('answers any bytes and never throws', () => {
    const message = Buffer.from(
      '[{"jsonrpc":"2.0","id":"a\\u0031","method":"m","params":{"x":[1.5e3,true,null,"é"]}},{"id":1}]',
    );
    const flips = fc.array(fc.tuple(fc.nat(message.length - 1), fc.nat(255)), { maxLength: 4 });
    fc.assert(
      fc.property(flips, fc.nat(message.length), (changes, length) => {
        const line = Buffer.from(message);
        for (const [at, byte] of changes) line[at] = byte;
        expect(readFrame(line.subarray(0, length)).kind).toMatch(
          /^(request|notification|result|error|batch|malformed)$/,
        );
      }),
      { numRuns: 2000 },
    );
    fc.assert(fc.property(fc.uint8Array(), (bytes) => void readFrame(Buffer.from(bytes))));
  });

  it('finds the end of a long string wherever it is and whatever it holds', () => {
    const part = fc
      .tuple(fc.constantFrom('x', 'é', '"', '\\', '\n', '\ud800', '\x01'), fc.nat(3000))
      .map(([of, times]) => of.repeat(times));
    fc.assert(
      fc.property(fc.array(part, { maxLength: 5 }), fc.nat(7), (parts, shift) => {
        const text = JSON.stringify(parts.join(''));
        const line = Buffer.from(`${' '.repeat(shift)}{"jsonrpc":"2.0","id":1,"result":${text}}`);
        const frame = readFrame(line);
        expect(frame.kind === 'result' && String(frame.result) === Buffer.from(text).toString()).toBe(true);
      }),
    );
  });
});

describe('splitLines', () => {
  it('gives the same lines however the stream is cut', () => {
    const text = fc.array(fc.constantFrom('a', 'é', '\r', '\n', '\r\n', 'some words'), { maxLength: 60 });
    fc.assert(
      fc.property(text, fc.array(fc.nat(7), { minLength: 1 }), (parts, sizes) => {
        const stream = Buffer.from(parts.join(''));
        const lines: string[] = [];
        const splitter = splitLines({ maxBytes: 1e6, onLine: (line) => lines.push(String(line)), onTooLong: () => {} });
        for (let at = 0, turn = 0; at < stream.length; turn++) {
          const size = (sizes[turn % sizes.length] ?? 0) + 1;
          splitter.push(stream.subarray(at, at + size));
          at += size;
        }
        const expected = String(stream).split('\n');
        expect(splitter.pending).toBe(Buffer.byteLength(expected.pop() ?? ''));
        expect(lines).toEqual(expected.map((line) => line.replace(/\r$/, '')).filter(Boolean));
      }),
    );
  });
});

describe('json', () => {
  it('sees the members and elements that JSON.parse sees', () => {
    fc.assert(
      fc.property(object, indents, (value, indent) => {
        const bytes = Buffer.from(JSON.stringify(value, null, indent));
        const seen = [...members(bytes)].map(([name, span]) => [name, JSON.parse(String(span))]);
        expect(seen).toEqual(Object.entries(JSON.parse(String(bytes))));
        for (const [name, inner] of seen) expect(JSON.parse(String(member(bytes, name)))).toEqual(inner);
        const list = Buffer.from(JSON.stringify(Object.values(value), null, indent));
        expect([...elements(list)].map((span) => JSON.parse(String(span)))).toEqual(JSON.parse(String(list)));
      }),
    );
  });

  it('answers garbage with nothing, at once', () => {
    fc.assert(
      fc.property(fc.string(), fc.constantFrom('', '{', '[', '{"a":', '"'), (garbage, start) => {
        const bytes = Buffer.from(start + garbage);
        void [[...members(bytes)], [...elements(bytes)], member(bytes, 'a'), stringOf(bytes)];
      }),
    );
  });
});

describe('withProgressToken', () => {
  it('changes the token and nothing else', () => {
    fc.assert(
      fc.property(object, indents, fc.nat(), (params, indent, token) => {
        const before = Buffer.from(JSON.stringify(params, null, indent));
        const after = String(withProgressToken(before, token));
        const meta = JSON.parse(String(before))._meta ?? (Object.hasOwn(params, '_meta') ? null : {});
        const isObject = typeof meta === 'object' && meta !== null && !Array.isArray(meta);
        const changed = { ...JSON.parse(String(before)), _meta: { ...meta, progressToken: token } };
        expect(JSON.parse(after)).toEqual(isObject ? changed : JSON.parse(String(before)));
      }),
    );
  });

  it('keeps every byte around what it inserts', () => {
    const plain = object.map(({ _meta, ...rest }) => JSON.stringify(rest));
    fc.assert(
      fc.property(plain, fc.nat(), (params, token) => {
        const after = String(withProgressToken(Buffer.from(params), token));
        expect(after.replace(new RegExp(`^\\{"_meta":\\{"progressToken":${token}\\},?`), '{')).toBe(params);
      }),
    );
  });
});

describe('requestFrame', () => {
  it('is one line that reads back as the request it was made of', () => {
    fc.assert(
      fc.property(fc.nat(), fc.string({ unit: 'grapheme' }), object, indents, (id, method, params, indent) => {
        const frame = requestFrame(id, method, Buffer.from(JSON.stringify(params, null, indent)));
        expect(frame.indexOf('\n')).toBe(frame.length - 1);
        const back = readFrame(frame.subarray(0, -1));
        expect(back).toMatchObject({ kind: 'request', id: String(id), method });
        expect(JSON.parse(String('params' in back && back.params))).toEqual(JSON.parse(JSON.stringify(params)));
      }),
    );
  });
});

function isNotJson(line: Buffer): boolean {
  const frame = readFrame(line);
  return frame.kind === 'malformed' && frame.code === -32700;
}

function isJson(line: Buffer): boolean {
  try {
    JSON.parse(String(line));
    return true;
  } catch {
    return false;
  }
}
