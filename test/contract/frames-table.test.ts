// Every hostile or odd line we could think of, and the one answer that is defined for it.

import { describe, expect, it } from 'vitest';
import { type Frame, readFrame } from '../../src/protocol/frame.ts';

type Row = [what: string, line: string | Buffer, answer: object];

const parse = { kind: 'malformed', code: -32700, why: expect.any(String) };
const invalid = { kind: 'malformed', code: -32600, why: expect.any(String) };
const ping = { kind: 'request', id: '1', method: 'ping' };
const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);
const request = (id: string) => `{"jsonrpc":"2.0","id":${id},"method":"ping"}`;
const result = (id: string) => `{"jsonrpc":"2.0","id":${id},"result":{}}`;
const error = (id: string) => `{"jsonrpc":"2.0","id":${id},"error":{}}`;
const params = (json: string) => `{"jsonrpc":"2.0","method":"m","params":${json}}`;
const notified = (json: string) => ({ kind: 'notification', method: 'm', params: json });

const NOT_JSON: Row[] = [
  ['an empty line', '', parse],
  ['a line of spaces', '   ', parse],
  ['plain text, as from a stray print', 'Server listening on port 3000', parse],
  ['a lone NUL', '\0', parse],
  ['invalid UTF-8 in a string', Buffer.from([...Buffer.from('{"jsonrpc":"2.0","method":"'), 0xff, 0x22, 0x7d]), parse],
  ['an overlong UTF-8 sequence', Buffer.from([0x22, 0xc0, 0xaf, 0x22]), parse],
  ['a surrogate encoded in UTF-8', Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22]), parse],
  ['a byte order mark after the first byte', ` \ufeff${request('1')}`, parse],
  ['an unterminated string', '{"jsonrpc":"2.0","method":"pi', parse],
  ['an unterminated object', '{"jsonrpc":"2.0","method":"ping"', parse],
  ['an unterminated batch', `[${request('1')}`, parse],
  ['a batch without a comma', `[${request('1')} ${request('2')}]`, parse],
  ['a batch with a comma too many', `[${request('1')},]`, parse],
  ['garbage after the message', `${request('1')}x`, parse],
  ['two messages on one line', request('1') + request('2'), parse],
  ['garbage after an empty batch', '[]]', parse],
  ['a trailing comma in an object', '{"jsonrpc":"2.0","method":"ping",}', parse],
  ['a trailing comma in an array', params('{"a":[1,]}'), parse],
  ['a key without quotes', '{jsonrpc:"2.0"}', parse],
  ['a key without a value', params('{"a"}'), parse],
  ['single quotes', "{'jsonrpc':'2.0'}", parse],
  ['a comment', `${request('1')} // hello`, parse],
  ['brackets that do not match', params('{"a":[1}]'), parse],
  ['NaN', params('{"a":NaN}'), parse],
  ['Infinity', params('{"a":-Infinity}'), parse],
  ['a number with a leading zero', params('{"a":01}'), parse],
  ['a number with a plus', params('{"a":+1}'), parse],
  ['a number that ends in a point', params('{"a":1.}'), parse],
  ['a number that begins with a point', params('{"a":.5}'), parse],
  ['an exponent without digits', params('{"a":1e+}'), parse],
  ['a lone minus', params('{"a":-}'), parse],
  ['a literal cut short', params('{"a":tru}'), parse],
  ['a literal in capitals', params('{"a":True}'), parse],
  ['a raw tab in a string', params('{"a":"\t"}'), parse],
  ['a raw NUL far into a long string', params(`{"a":"${'x'.repeat(5000)}\0${'y'.repeat(5000)}"}`), parse],
  ['an unknown escape', params('{"a":"\\x0041"}'), parse],
  ['a \\u escape cut short', params('{"a":"\\u12"}'), parse],
  ['a parse error after an id', '{"jsonrpc":"2.0","id":7,"method":"m","params":{]}', parse],
];

const NOT_A_MESSAGE: Row[] = [
  ['a number', '1', invalid],
  ['a string', '"ping"', invalid],
  ['null', 'null', invalid],
  ['an empty object', '{}', invalid],
  ['no jsonrpc', '{"id":1,"method":"ping"}', { ...invalid, id: '1' }],
  ['jsonrpc 1.0', '{"jsonrpc":"1.0","id":1,"method":"ping"}', { ...invalid, id: '1' }],
  ['jsonrpc as a number', '{"jsonrpc":2.0,"method":"ping"}', invalid],
  ['jsonrpc as a number that looks like the string', '{"jsonrpc":12.04,"method":"ping"}', invalid],
  ['neither method nor result nor error', '{"jsonrpc":"2.0","id":1}', { ...invalid, id: '1' }],
  ['both result and error', '{"jsonrpc":"2.0","id":1,"result":{},"error":{}}', invalid],
  ['method and result', '{"jsonrpc":"2.0","id":1,"method":"m","result":{}}', invalid],
  ['two ids', '{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', invalid],
  ['two ids, one in disguise', '{"jsonrpc":"2.0","id":1,"\\u0069d":2,"method":"ping"}', invalid],
  ['two results', '{"jsonrpc":"2.0","id":1,"result":1,"result":2}', invalid],
  ['two methods', '{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}', { ...invalid, id: '1' }],
  ['two params', '{"jsonrpc":"2.0","method":"a","params":{},"params":{}}', invalid],
  ['two jsonrpc', '{"jsonrpc":"2.0","jsonrpc":"2.0","method":"a"}', invalid],
  ['a method that is no string', '{"jsonrpc":"2.0","id":1,"method":5}', { ...invalid, id: '1' }],
  ['params null', '{"jsonrpc":"2.0","id":1,"method":"m","params":null}', { ...invalid, id: '1' }],
  ['params by position, which MCP does not have', params('[1]'), invalid],
  ['params as a string', params('"x"'), invalid],
  ...[
    'null',
    '1.5',
    '1.0',
    '1e3',
    '9007199254740992',
    '-9007199254740993',
    `1${'0'.repeat(400)}`,
    'true',
    '{}',
    '[]',
  ].map((id): Row => [`a request whose id is ${id.slice(0, 20)}`, request(id), invalid]),
  ['a request whose id is too long', request(`"${'i'.repeat(257)}"`), invalid],
  ...['null', '1.5', '9007199254740992', 'false', '{}'].map(
    (id): Row => [`a result whose id is ${id}`, result(id), { ...invalid, why: expect.stringContaining('nobody') }],
  ),
  ['a result without an id', '{"jsonrpc":"2.0","result":{}}', { ...invalid, why: expect.stringContaining('nobody') }],
  ['an error whose id is a fraction', error('0.5'), { ...invalid, why: expect.stringContaining('nobody') }],
  ['an empty batch', '[ ]', invalid],
  ['a batch of 1001', `[${Array(1001).fill(request('1')).join()}]`, invalid],
  ['129 levels', `{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":${nested(127)}}}`, { ...invalid, id: '1' }],
  ['a result of 129 levels', `{"jsonrpc":"2.0","id":1,"result":${nested(128)}}`, invalid],
  ['a million levels of arrays', nested(1e6), invalid],
  ['a million levels in params', `{"jsonrpc":"2.0","method":"m","params":${'{"a":'.repeat(1e6)}`, invalid],
];

const FINE: Row[] = [
  ['a byte order mark at the start, as some Windows runtimes write', `\ufeff${request('1')}`, ping],
  ['spaces around everything', ' { "jsonrpc" : "2.0" , "id" : 1 , "method" : "ping" } \t', ping],
  ['another order of keys', '{"method":"ping","id":1,"jsonrpc":"2.0"}', ping],
  ['unknown members', '{"x":[{"id":2}],"jsonrpc":"2.0","id":1,"method":"ping","trace":null}', ping],
  ['escaped keys and values', '{"jsonrpc":"2\\u002e0","\\u0069\\u0064":1,"m\\u0065thod":"p\\u0069ng"}', ping],
  ['an id of zero', request('0'), { ...ping, id: '0' }],
  ['an id of minus zero', request('-0'), { ...ping, id: '-0' }],
  ['the largest safe id', request('9007199254740991'), { ...ping, id: '9007199254740991' }],
  ['the smallest safe id', request('-9007199254740991'), { ...ping, id: '-9007199254740991' }],
  ['a string id that looks like a number', request('"1"'), { ...ping, id: '"1"' }],
  ['an empty string id', request('""'), { ...ping, id: '""' }],
  ['a string id of 256 bytes', request(`"${'i'.repeat(256)}"`), { ...ping, id: `"${'i'.repeat(256)}"` }],
  [
    'a string id with escapes, kept raw',
    result('"\\u0061é\\n"'),
    { kind: 'result', id: '"\\u0061é\\n"', result: '{}' },
  ],
  ['an error to nobody', error('null'), { kind: 'error', id: 'null', error: '{}' }],
  ['an error without an id', '{"jsonrpc":"2.0","error":{}}', { kind: 'error', id: 'null', error: '{}' }],
  ['a result of null', '{"jsonrpc":"2.0","id":1,"result":null}', { kind: 'result', id: '1', result: 'null' }],
  ['an integer beyond 2^53 in params', params('{"n":9007199254740993}'), notified('{"n":9007199254740993}')],
  ['a number beyond any double', params('{"n":1e400}'), notified('{"n":1e400}')],
  ['all forms of numbers', params('{"n":[-0,0.10,1E+2,1e-2,-1.5e0]}'), notified('{"n":[-0,0.10,1E+2,1e-2,-1.5e0]}')],
  ['a lone surrogate escape', params('{"s":"\\ud800"}'), notified('{"s":"\\ud800"}')],
  [
    'all escapes',
    params('{"s":"\\"\\\\\\/\\b\\f\\n\\r\\t\\uABcd"}'),
    notified('{"s":"\\"\\\\\\/\\b\\f\\n\\r\\t\\uABcd"}'),
  ],
  ['a DEL and other planes', params('{"s":"\x7f𝄞\u2028"}'), notified('{"s":"\x7f𝄞\u2028"}')],
  ['duplicate keys in params, kept', params('{"a":1,"a":2}'), notified('{"a":1,"a":2}')],
  ['spaces and order in params, kept', params('{ "z" : 1,\t"a":[ ] }'), notified('{ "z" : 1,\t"a":[ ] }')],
  ['128 levels', params(`{"a":${nested(126)}}`), notified(`{"a":${nested(126)}}`)],
  ['an envelope key deeper down', params('{"id":null,"jsonrpc":1}'), notified('{"id":null,"jsonrpc":1}')],
  [
    'a batch',
    `[${request('1')}, ${result('2')}]`,
    { kind: 'batch', frames: [ping, { kind: 'result', id: '2', result: '{}' }] },
  ],
  [
    'a batch with bad messages',
    `[1,[],[${request('1')}],{},${request('1')}]`,
    { kind: 'batch', frames: [invalid, invalid, invalid, invalid, ping] },
  ],
];

describe.each([
  ['refused as no JSON', NOT_JSON],
  ['refused as no JSON-RPC message', NOT_A_MESSAGE],
  ['read', FINE],
])('%s:', (_, rows) => {
  it.each(rows)('%s', (_what, line, answer) => {
    expect(readable(readFrame(Buffer.from(line as string)))).toEqual(answer);
  });
});

function readable(frame: Frame): object {
  if (frame.kind === 'batch') return { ...frame, frames: frame.frames.map(readable) };
  return Object.fromEntries(
    Object.entries(frame).map(([key, value]) => [key, Buffer.isBuffer(value) ? String(value) : value]),
  );
}
