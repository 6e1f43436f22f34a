// The reader of server-sent events gives the same events however the bytes are cut, never more than it may keep, and in
// time that grows with the input only.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readEvents } from '../../src/servers/remote/events.ts';

type Seen = [type: string, data: string | undefined, id: string | undefined];

function read(chunks: Buffer[], maxBytes = 1_000_000) {
  const seen: Seen[] = [];
  const retries: number[] = [];
  let tooLong = 0;
  const reader = readEvents({
    maxBytes,
    onEvent: (type, data, id) => seen.push([type, data?.toString(), id]),
    onRetry: (ms) => retries.push(ms),
    onTooLong: () => tooLong++,
  });
  for (const chunk of chunks) reader.push(chunk);
  return { seen, retries, tooLong };
}

const whole = (text: string) => read([Buffer.from(text)]);

describe('what a stream says', () => {
  it.each<[string, string, Seen[]]>([
    ['one event', 'data: a\n\n', [['message', 'a', undefined]]],
    ['an id and a type', 'id: 7\nevent: endpoint\ndata: /x\n\n', [['endpoint', '/x', '7']]],
    [
      'no space after the colon, and only one is taken',
      'data:a\n\ndata:  b\n\n',
      [
        ['message', 'a', undefined],
        ['message', ' b', undefined],
      ],
    ],
    ['several lines of data', 'data: a\ndata: b\ndata\n\n', [['message', 'a\nb\n', undefined]]],
    ['comments and unknown fields', ': ping\n\nfoo: bar\ndata: a\n\n', [['message', 'a', undefined]]],
    ['a byte order mark', '\uFEFFdata: a\n\n', [['message', 'a', undefined]]],
    [
      'carriage returns',
      'data: a\r\rdata: b\r\n\r\n',
      [
        ['message', 'a', undefined],
        ['message', 'b', undefined],
      ],
    ],
    ['an event that only primes', 'id: p\ndata:\n\n', [['message', undefined, 'p']]],
    ['an id with a NUL, which counts as none', 'id: a\0b\ndata: x\n\n', [['message', 'x', undefined]]],
    ['an event that never ended', 'data: a\n\ndata: half', [['message', 'a', undefined]]],
    ['a type that does not outlive its event', 'event: x\n\ndata: a\n\n', [['message', 'a', undefined]]],
  ])('%s', (_, text, expected) => {
    expect(whole(text).seen).toEqual(expected);
  });

  it('takes a retry of digits only', () => {
    expect(whole('retry: 500\nretry: 5x\nretry: -1\nretry:\n\n').retries).toEqual([500]);
  });
});

describe('wherever it is cut', () => {
  const line = fc.oneof(
    fc.string({ unit: 'grapheme', maxLength: 20 }).map((text) => `data: ${text.replace(/[\r\n]/g, '')}`),
    fc.constantFrom('id: 1', 'id: é', 'event: endpoint', 'retry: 10', ': comment', '', '', 'data', 'other: x'),
  );
  const stream = fc.array(fc.tuple(line, fc.constantFrom('\n', '\r\n', '\r')), { maxLength: 30 });

  it('says the same', () => {
    fc.assert(
      fc.property(stream, fc.array(fc.nat(8), { minLength: 1 }), fc.boolean(), (lines, cuts, hasMark) => {
        const bytes = Buffer.from(`${hasMark ? '\uFEFF' : ''}${lines.map(([text, end]) => text + end).join('')}`);
        const pieces: Buffer[] = [];
        for (let from = 0, turn = 0; from < bytes.length; turn++) {
          const size = cuts[turn % cuts.length] || 1;
          pieces.push(bytes.subarray(from, from + size));
          from += size;
        }
        expect(read(pieces)).toEqual(read([bytes]));
      }),
      { numRuns: 500 },
    );
  });
});

describe('what is too much', () => {
  it('gives up once on a line that is too long, before it ends', () => {
    const { seen, tooLong } = read(
      [Buffer.from('data: a\n\ndata: '), ...Array(50).fill(Buffer.alloc(100, 'x'))],
      1_000,
    );
    expect({ seen, tooLong }).toEqual({ seen: [['message', 'a', undefined]], tooLong: 1 });
  });

  it('counts the lines of an event together', () => {
    expect(read([Buffer.from(`data: ${'x'.repeat(50)}\n`.repeat(30))], 1_000).tooLong).toBe(1);
  });

  it('counts empty lines of data as well', () => {
    expect(read([Buffer.from('data\n'.repeat(2_000))], 1_000).tooLong).toBe(1);
  });

  it('reads data that drips in byte by byte without keeping a buffer for each', () => {
    const drop = Buffer.from('x');
    const bytes = 400_000;
    const before = process.memoryUsage().rss;
    const { seen } = read([Buffer.from('data: '), ...Array(bytes).fill(drop), Buffer.from('\n\n')], bytes);
    expect(seen[0]?.[1]?.length).toBe(bytes);
    expect(process.memoryUsage().rss - before).toBeLessThan(300 * bytes);
  });
});
