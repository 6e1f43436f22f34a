// Two promises of the design, at a running daemon: whatever the others do, a healthy server serves (P7), and what passes
// through arrives as the bytes that were sent (P8).

import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Daemon, daemon, fixture } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { whileNeighbourWorks } from '../support/neighbour.ts';

const RESTART = { intensity: 1_000, periodMs: 60_000, backoffMs: [20] };
const SINNER = { enabled: false, stdinMs: 200, termMs: 300, timeoutMs: 1_000, restart: RESTART };
let d: Daemon;

beforeAll(async () => {
  d = await daemon({
    servers: {
      echo: fixture('echo'),
      records: fixture('records'),
      unborn: fixture('dies-at-start', { ...SINNER, restart: { ...RESTART, intensity: 5 } }),
      mortal: fixture('dies-in-call', SINNER),
      endless: fixture('floods-stdout', SINNER),
      chatty: fixture('floods-notifications', { ...SINNER, timeoutMs: '30s' }),
      noisy: fixture('floods-stderr', SINNER),
      garbled: fixture('garbage', SINNER),
      hung: fixture('hangs', { ...SINNER, pingTimeoutMs: 300 }),
      liar: fixture('lies-version', SINNER),
      crowded: fixture('many-tools', { ...SINNER, timeoutMs: '30s' }),
    },
  });
});
afterAll(() => d[Symbol.asyncDispose]());

test('P7 contained: with every other server misbehaving at once, a healthy one answers every call', async () => {
  const healthy = ['echo', 'records'];
  const sinners = (await d.status()).servers.map(({ name }) => name).filter((name) => !healthy.includes(name));
  await whileNeighbourWorks(d, async () => {
    await Promise.all(sinners.map((name) => d.cli('start', name)));
    const sins = [
      ...[1, 2].map(() => d.request('troupe.call.mortal.die')),
      ...[1, 2].map(() => d.request('troupe.call.endless.flood')),
      d.request('troupe.call.chatty.flood', { count: 5_000 }, { timeout: 30_000 }),
      d.request('troupe.call.noisy.flood'),
      d.request('troupe.call.hung.hang'),
      ...Array.from({ length: 20 }, (_, at) => d.request('troupe.call.garbled.echo', { message: `${at}` })),
    ];
    const replies = await Promise.all(sins); // each of them is answered too, one way or the other
    expect(replies.filter(({ code }) => ![undefined, 408, 502, 503].includes(code))).toEqual([]);
    await d.until('liar', 'failed');
    await d.until('unborn', 'failed');
    await eventually(async () => (await d.server('crowded')).tools === 100_000, 20_000);
    await eventually(async () => (await d.server('hung')).restarts > 0);
    await eventually(async () => (await d.server('endless')).restarts > 0);
  });
  expect(await d.server('echo')).toMatchObject({ state: 'ready', restarts: 0, errors: 0 });
  await Promise.all(sinners.map((name) => d.cli('stop', name)));
});

const TRICKY = {
  'an integer beyond 2^53': '{"n":9007199254740993}',
  'keys in their own order, numbers among them': '{"z":1,"10":2,"a":3,"2":4,"__proto__":{"x":1}}',
  'unknown fields, deep': '{"a":{"b":[{"x-unknown":null,"more":[[],{}]}]}}',
  'white space inside strings and between tokens': '{ "a b" :\t"  two  spaces\\t\\n " ,  "c":[ 1 ,2 ] }',
  'a number too large for a double': '{"n":1e400,"m":-1E+400}',
  'negative zero and odd spellings of numbers': '{"n":-0,"m":0.10,"o":1E5,"p":-0.0e-0}',
  'the same key twice': '{"a":1,"a":2,"b":{"a":3,"a":4}}',
  'escapes and the characters they stand for': '{"a":"\\u0041\\/\\ud83d\\ude00","b":"A/😀","\\u0061":1,"l":"\\ud800"}',
  'words that look like the envelope': '{"id":1,"method":"x","params":{},"result":"\\"result\\":","jsonrpc":"1.0"}',
  'a very long digit string': `{"n":${'1234567890'.repeat(50)}.${'0987654321'.repeat(50)}}`,
  nothing: '{}',
};
const resultOf = (args: string) => `{"content":[],"structuredContent":${args}}`;

test.each(Object.entries(TRICKY))('P8 same bytes: %s, over NATS and over the command line', async (_, args) => {
  expect((await d.request('troupe.call.echo.raw', args)).text).toBe(resultOf(args));
  expect((await d.cli('call', 'echo', 'raw', '--args', args, '--json')).stdout).toBe(resultOf(args));
});

test('P8 same bytes: whatever JSON a caller may think of', async () => {
  const property = fc.asyncProperty(fc.dictionary(fc.string({ unit: 'grapheme' }), fc.jsonValue()), async (value) => {
    const args = JSON.stringify(value);
    expect((await d.request('troupe.call.echo.raw', args)).text).toBe(resultOf(args));
  });
  await fc.assert(property, { numRuns: 200 });
});

test('P8 same bytes: a pretty-printed body differs only in its line breaks, which would end the frame', async () => {
  const pretty = JSON.stringify({ a: [1, { b: 'x\ny' }] }, undefined, 2);
  expect((await d.request('troupe.call.echo.raw', pretty)).text).toBe(resultOf(pretty.replaceAll('\n', ' ')));
});

test('P8 same bytes: of what the caller says beside the arguments only the progress token is changed', async () => {
  const body = '{"_meta":{"x":9007199254740993,"progressToken":"mine","é":1e400},  "arguments":{"b":1,"a":-0}}';
  const { data } = await d.request('troupe.call.records.received', body);
  const line: string = data.structuredContent.value.at(-1);
  const { id } = JSON.parse(line);
  const params = `{"name":"received",${body.slice(1)}`.replace('"mine"', String(id));
  expect(line).toBe(`{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":${params}}`);
});
