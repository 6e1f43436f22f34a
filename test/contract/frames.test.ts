// The stories of src/protocol: lines come in, frames are looked into, frames go out.

import { describe, expect, it } from 'vitest';
import { errorFrame, notificationFrame, requestFrame, resultFrame } from '../../src/protocol/compose.ts';
import { withProgressToken } from '../../src/protocol/edit.ts';
import { ERAS, eraOf, LATEST } from '../../src/protocol/eras.ts';
import { readFrame } from '../../src/protocol/frame.ts';
import { elements, member, members, stringOf } from '../../src/protocol/json.ts';
import { splitLines } from '../../src/protocol/lines.ts';

const text = (bytes: Buffer | undefined) => bytes?.toString();

function collect(maxBytes: number) {
  const lines: Buffer[] = [];
  const tooLong: number[] = [];
  const splitter = splitLines({
    maxBytes,
    onLine: (line) => lines.push(line),
    onTooLong: (bytes) => tooLong.push(bytes),
  });
  return { splitter, lines, tooLong };
}

describe('splitLines', () => {
  it('joins a line that comes in pieces, cuts the carriage return and skips empty lines', () => {
    const { splitter, lines } = collect(100);
    for (const chunk of ['on', 'e\r', '\n\n\r\ntwo\nth', 'ree']) splitter.push(Buffer.from(chunk));
    expect(lines.map(String)).toEqual(['one', 'two']);
    expect(splitter.pending).toBe(5);
  });

  it('does not copy a line that lies in one chunk', () => {
    const { splitter, lines } = collect(100);
    const chunk = Buffer.from('one\ntwo\n');
    splitter.push(chunk);
    expect(lines.map((line) => line.buffer)).toEqual([chunk.buffer, chunk.buffer]);
  });

  it('takes a line of exactly the cap', () => {
    const { splitter, lines, tooLong } = collect(4);
    splitter.push(Buffer.from('1234\n'));
    expect([lines.length, tooLong]).toEqual([1, []]);
  });

  it('gives up on a line that is too long before its end has come, and stays silent', () => {
    const { splitter, lines, tooLong } = collect(4);
    for (const chunk of ['ok\n123', '45', '6\nlater\n']) splitter.push(Buffer.from(chunk));
    expect([lines.map(String), tooLong, splitter.pending]).toEqual([['ok'], [5], 0]);
  });

  it('gives up on a long line in one chunk and does not deliver what follows it', () => {
    const { splitter, lines, tooLong } = collect(4);
    splitter.push(Buffer.from('ok\n12345\nlater\n'));
    expect([lines.map(String), tooLong]).toEqual([['ok'], [5]]);
  });

  it('joins a line that drips in byte by byte', () => {
    const { splitter, lines } = collect(10_000);
    const line = 'abcdefghij'.repeat(100);
    for (const byte of Buffer.from(`${line}\n`)) splitter.push(Buffer.from([byte]));
    expect(lines.map(String)).toEqual([line]);
  });
});

describe('readFrame', () => {
  it('shares memory with the line', () => {
    const line = Buffer.from('{"jsonrpc":"2.0","id":1,"result":{"big":9007199254740993}}');
    const frame = readFrame(line);
    expect(frame.kind === 'result' && frame.result.buffer === line.buffer).toBe(true);
  });

  it('obeys another depth', () => {
    const line = Buffer.from('[{"jsonrpc":"2.0","method":"m","params":{"a":[]}}]');
    expect([readFrame(line, 4).kind, readFrame(line, 3).kind]).toEqual(['batch', 'malformed']);
    expect(readFrame(Buffer.from('{}'), 0)).toMatchObject({ why: expect.stringContaining('deeper than 0') });
  });

  it('says where the JSON breaks and not what it says', () => {
    const frame = readFrame(Buffer.from('{"password":"hunter2"'));
    expect(frame).toEqual({ kind: 'malformed', code: -32700, why: 'the line is not valid JSON at byte 21' });
  });
});

describe('json', () => {
  const bytes = Buffer.from(' { "a" : [1, "x]", {"b":2}], "\\u0062" : "\\u00e9", "é":true, "twice":1, "twice":2 } ');

  it('finds a member, also when its key is escaped or not ASCII', () => {
    expect(['a', 'b', 'é', 'c'].map((key) => text(member(bytes, key)))).toEqual([
      '[1, "x]", {"b":2}]',
      '"\\u00e9"',
      'true',
      undefined,
    ]);
  });

  it('counts a key that is given twice as absent', () => {
    expect(member(bytes, 'twice')).toBeUndefined();
  });

  it('lists members and elements in order', () => {
    expect([...members(bytes)].map(([key]) => key)).toEqual(['a', 'b', 'é', 'twice', 'twice']);
    expect([...elements(Buffer.from('[1, "x]", {"b":2}]'))].map(String)).toEqual(['1', '"x]"', '{"b":2}']);
    expect([[...members(Buffer.from('{}'))], [...elements(Buffer.from('[ ]'))]]).toEqual([[], []]);
  });

  it('reads strings and only strings', () => {
    const values = ['"a\\n\\u00e9"', '"ü"', '""', '1', '"open', '"a"b', ''];
    expect(values.map((value) => stringOf(Buffer.from(value)))).toEqual(['a\né', 'ü', '', ...Array(4).fill(undefined)]);
  });

  it('walks a hundred thousand elements without parsing one', () => {
    const tool = `{"name":"tool","description":"${'d'.repeat(220)}"}`;
    const array = Buffer.from(`[${Array(100_000).fill(tool).join()}]`);
    let count = 0;
    for (const element of elements(array)) count += Number(element.length === tool.length);
    expect(count).toBe(100_000);
  });
});

describe('compose', () => {
  it('writes each kind of message as one line', () => {
    const body = Buffer.from('{"x":1}');
    const frames = [
      requestFrame(7, 'tools/call', body),
      requestFrame(7, 'ping'),
      notificationFrame('a"é', body),
      notificationFrame('a'),
      resultFrame('"x"', body),
      errorFrame('null', body),
    ];
    expect(frames.map(String)).toEqual([
      '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"x":1}}\n',
      '{"jsonrpc":"2.0","id":7,"method":"ping"}\n',
      '{"jsonrpc":"2.0","method":"a\\"é","params":{"x":1}}\n',
      '{"jsonrpc":"2.0","method":"a"}\n',
      '{"jsonrpc":"2.0","id":"x","result":{"x":1}}\n',
      '{"jsonrpc":"2.0","id":null,"error":{"x":1}}\n',
    ]);
  });

  it('turns the newlines of pretty-printed params into spaces, so that they cannot end the frame', () => {
    const frame = requestFrame(1, 'm', Buffer.from('{\r\n "a": "\\n"\n}'));
    expect(String(frame)).toBe('{"jsonrpc":"2.0","id":1,"method":"m","params":{   "a": "\\n" }}\n');
    expect(String(notificationFrame('m', Buffer.from('{\r}')))).toBe('{"jsonrpc":"2.0","method":"m","params":{ }}\n');
  });

  it.each([
    ['no members', '{}', '{"_meta":{"progressToken":5}}'],
    ['only a space', '{ }', '{"_meta":{"progressToken":5} }'],
    ['no _meta', '{"a":1}', '{"_meta":{"progressToken":5},"a":1}'],
    ['an empty _meta', '{"a":1,"_meta":{ }}', '{"a":1,"_meta":{"progressToken":5 }}'],
    ['a _meta without a token', '{"_meta":{"t":1}}', '{"_meta":{"progressToken":5,"t":1}}'],
    ['a token', '{"_meta":{"progressToken" : "old","t":1}}', '{"_meta":{"progressToken" : 5,"t":1}}'],
    ['an object for a token', '{"_meta":{"t":{},"progressToken":{"a":[1]}}}', '{"_meta":{"t":{},"progressToken":5}}'],
    ['a _meta deeper down', '{"a":{"_meta":{}}}', '{"_meta":{"progressToken":5},"a":{"_meta":{}}}'],
    ['a _meta in a string', '{"a":"\\"_meta\\":{}"}', '{"_meta":{"progressToken":5},"a":"\\"_meta\\":{}"}'],
    ['an escaped _meta', '{"\\u005fmeta":{}}', '{"\\u005fmeta":{"progressToken":5}}'],
    [
      'a token deeper in _meta',
      '{"_meta":{"a":{"progressToken":1}}}',
      '{"_meta":{"progressToken":5,"a":{"progressToken":1}}}',
    ],
    ['a _meta that is no object', '{"_meta":[1]}', '{"_meta":[1]}'],
    ['a _meta of null', '{"_meta":null}', '{"_meta":null}'],
    ['two _meta', '{"_meta":{},"_meta":{}}', '{"_meta":{},"_meta":{}}'],
    [
      'two tokens',
      '{"_meta":{"progressToken":1,"progressToken":2}}',
      '{"_meta":{"progressToken":1,"progressToken":2}}',
    ],
    ['no object at all', '[1]', '[1]'],
  ])('sets the progress token of params with %s', (_, params, expected) => {
    expect(String(withProgressToken(Buffer.from(params), 5))).toBe(expected);
  });
});

describe('eras', () => {
  it('knows the versions it speaks and no other', () => {
    expect(ERAS.map(eraOf)).toEqual([...ERAS]);
    expect([eraOf(LATEST), eraOf('2023-01-01'), eraOf('')]).toEqual([LATEST, undefined, undefined]);
  });
});
