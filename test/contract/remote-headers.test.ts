// What a message says is repeated in its headers, so that what stands between can route by it: the method, the name, and
// the arguments that a tool marks. A tool whose marks cannot be honoured is not offered.

import { describe, expect, it } from 'vitest';
import { decodeHeader, encodeHeader } from '../../src/protocol/headers.ts';
import { mirroredHeaders, mirrorsOf } from '../../src/servers/remote/mirrored.ts';
import { eventually } from '../support/eventually.ts';
import { json, listen, remoteCast, scripted } from '../support/remote.ts';

const tool = (properties: object, rest: object = {}) => ({
  ...{ name: 'query', inputSchema: { type: 'object', properties, ...rest } },
});
const bytes = (value: object) => Buffer.from(JSON.stringify(value));
const marked = (mark: unknown, type: unknown = 'string') => ({ a: { type, 'x-mcp-header': mark } });

describe('values', () => {
  it.each([
    ['us-west1', 'us-west1'],
    ['a b\tc', 'a b\tc'],
    ['Hello, 世界', '=?base64?SGVsbG8sIOS4lueVjA==?='],
    [' padded ', '=?base64?IHBhZGRlZCA=?='],
    ['line1\nline2', '=?base64?bGluZTEKbGluZTI=?='],
    ['=?base64?eA==?=', '=?base64?PT9iYXNlNjQ/ZUE9PT89?='],
    ['', '=?base64??='],
  ])('%j is sent as %s', (value, expected) => {
    expect(encodeHeader(value)).toBe(expected);
    expect(decodeHeader(expected)).toBe(value);
  });
});

describe('definitions', () => {
  it('finds marks at any depth of properties', () => {
    const nested = { type: 'object', properties: { b: { type: 'integer', 'x-mcp-header': 'Deep' } } };
    expect(mirrorsOf(bytes(tool({ ...marked('Region'), nested })))).toEqual([
      { path: ['a'], header: 'Region' },
      { path: ['nested', 'b'], header: 'Deep' },
    ]);
  });

  it('knows an argument of that name, and data, from a mark', () => {
    expect(mirrorsOf(bytes(tool({ 'x-mcp-header': { type: 'array', default: [{ 'x-mcp-header': '' }] } })))).toEqual(
      [],
    );
  });

  it.each([
    ['an empty mark', tool(marked('')), 'no name of a header'],
    ['a mark with a space', tool(marked('My Region')), 'no name of a header'],
    ['a mark with a line break', tool(marked('a\r\nb')), 'no name of a header'],
    ['a mark that is no text', tool(marked(7)), 'no name of a header'],
    ['two marks that differ in case only', tool({ ...marked('Region'), b: marked('REGION').a }), 'given twice'],
    ['a mark on an object', tool(marked('X', 'object')), 'no string, number or boolean'],
    ['a mark on several types', tool(marked('X', ['string', 'null'])), 'no string, number or boolean'],
    ['a mark on no type', tool({ a: { 'x-mcp-header': 'X' } }), 'no string, number or boolean'],
    ['a mark within a list', tool({ a: { type: 'array', items: marked('X').a } }), 'on no argument'],
    ['a mark in a choice', tool({}, { anyOf: [{ properties: marked('X') }] }), 'on no argument'],
    ['a mark on the whole', tool({}, { 'x-mcp-header': 'X' }), 'on no argument'],
  ])('refuses %s', (_, definition, why) => {
    expect(mirrorsOf(bytes(definition))).toContain(why);
  });
});

describe('calls', () => {
  const types = { s: 'string', n: 'number', i: 'integer', b: 'boolean', o: 'string' };
  const properties = Object.fromEntries(
    Object.entries(types).map(([name, type]) => [name, { type, 'x-mcp-header': name }]),
  );
  const entries = [{ name: 'query', bytes: bytes(tool(properties)) }];
  const headersOf = (args: string, method = 'tools/call') =>
    mirroredHeaders({ method, params: Buffer.from(`{"name":"query","arguments":${args}}`) } as never, entries);

  it('repeat their marked arguments, numbers as they stand', () => {
    expect(headersOf('{"s":"x","n":3.14,"i":9007199254740993,"b":false}')).toEqual({
      ...{ 'mcp-method': 'tools/call', 'mcp-name': 'query', 'mcp-param-s': 'x' },
      ...{ 'mcp-param-n': '3.14', 'mcp-param-i': '9007199254740993', 'mcp-param-b': 'false' },
    });
    expect(headersOf('{"n":1e3}')).toMatchObject({ 'mcp-param-n': '1000' });
  });

  it('leave out what is null, absent or no value', () => {
    expect(Object.keys(headersOf('{"s":null,"o":{"s":"x"},"n":[1]}'))).toEqual(['mcp-method', 'mcp-name']);
  });

  it('name what they read or get, and only that', () => {
    expect(headersOf('{}', 'prompts/get')).toEqual({ 'mcp-method': 'prompts/get', 'mcp-name': 'query' });
    const read = { method: 'resources/read', params: bytes({ uri: 'memo://ü' }) };
    expect(mirroredHeaders(read as never, [])['mcp-name']).toBe(encodeHeader('memo://ü'));
    expect(headersOf('{}', 'completion/complete')).toEqual({ 'mcp-method': 'completion/complete' });
  });
});

it('sends them on the wire, and leaves invalid tools out of the list with a warning', async () => {
  const script = scripted({
    tools: [
      { name: 'query', inputSchema: { type: 'object', properties: marked('Region') } },
      { name: 'broken', inputSchema: { type: 'object', properties: marked('two words') } },
    ],
    call: ({ message, response }) => json(response, 200, { jsonrpc: '2.0', id: message.id, result: {} }),
  });
  await using web = await listen(script);
  await using far = await remoteCast(web.url);
  await far.until('ready');
  expect([...(await far.tools())]).toEqual(['do', 'query']);
  await eventually(() => expect(far.log.join('')).toContain('tool broken is left out: x-mcp-header of a'));
  await far.call('query', { a: 'Grüße' });
  expect(script.of('tools/call')[0]?.headers).toMatchObject({
    ...{ 'mcp-method': 'tools/call', 'mcp-name': 'query', 'mcp-param-region': encodeHeader('Grüße') },
  });
  expect(script.of('notifications/initialized')[0]?.headers['mcp-method']).toBe('notifications/initialized');
  expect(script.of('initialize')[0]?.headers['mcp-method']).toBe('initialize');
  expect(await far.call('broken')).toMatchObject({ ok: false, failure: { code: 'unknownName' } });
});
