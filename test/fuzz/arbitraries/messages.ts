// Messages that are nearly right: JSON-RPC with the methods and members that troupe reads, holding values that it does not expect,
// then damaged now and then. Bytes are latin1 text, so that an input can be kept as JSON.

import fc from 'fast-check';
import { methodNames } from '../../../src/protocol/methods.ts';
import type { Random } from '../../chaos/random.ts';

/** Stands for the id of a request that is really open; a stage puts it in. */
export const OPEN_ID = 987_654_321_012;

export const bytesOf = (text: string): string => Buffer.from(text, 'utf8').toString('latin1');
const toBuffer = (bytes: string): Buffer => Buffer.from(bytes, 'latin1');

// ── Values ───────────────────────────────────────────────────────────────────

const NASTY = [
  '',
  '_',
  '__proto__',
  'constructor',
  '\u0000',
  '\u202e',
  '\ud800',
  'a\r\nb: c',
  '../../etc',
  '%00',
  '=h.x',
  '>',
  '*',
];
const long = fc.constantFrom(65, 300, 4_096, 70_000).map((length) => 'x'.repeat(length));
const word = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.constantFrom('echo', 'victim', 'victim__echo', 'tools', 'file:///a', 'demo://a', 'info', 'cursor'),
  },
  { weight: 3, arbitrary: fc.constantFrom(...NASTY) },
  { weight: 2, arbitrary: fc.string({ unit: 'binary', maxLength: 40 }) },
  { weight: 1, arbitrary: long },
);
const number = fc.oneof(
  fc.constantFrom(0, -1, 1.5, 2 ** 31, 2 ** 53, -(2 ** 63), 1e308, 5e-324),
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
);
const scalar = fc.oneof({ weight: 4, arbitrary: word }, number, fc.boolean(), fc.constant(null));

/** The names that some part of troupe looks for in what it is sent. */
const NAMES = [
  ...[
    'name',
    'arguments',
    'uri',
    'cursor',
    '_meta',
    'progressToken',
    'progress',
    'total',
    'message',
    'level',
    'logger',
    'data',
  ],
  ...[
    'ref',
    'argument',
    'requestId',
    'reason',
    'task',
    'taskId',
    'ttl',
    'status',
    'pollInterval',
    'protocolVersion',
    'capabilities',
  ],
  ...[
    'clientInfo',
    'serverInfo',
    'tools',
    'resources',
    'resourceTemplates',
    'prompts',
    'roots',
    'nextCursor',
    'content',
    'isError',
  ],
  ...[
    'structuredContent',
    'mode',
    'requestedSchema',
    'url',
    'elicitationId',
    'action',
    'messages',
    'maxTokens',
    'role',
    'model',
  ],
  ...[
    'io.modelcontextprotocol/related-task',
    'inputSchema',
    'annotations',
    'destructiveHint',
    'server',
    'method',
    'params',
    'id',
  ],
];
const memberName = fc.oneof({ weight: 8, arbitrary: fc.constantFrom(...NAMES) }, { weight: 1, arbitrary: word });

const { value } = fc.letrec<{ value: unknown; object: object }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    { weight: 4, arbitrary: scalar },
    { weight: 2, arbitrary: tie('object') },
    { weight: 1, arbitrary: fc.array(tie('value'), { maxLength: 4 }) },
  ),
  object: fc.array(fc.tuple(memberName, tie('value')), { maxLength: 5 }).map((entries) => Object.fromEntries(entries)),
}));
export const values: fc.Arbitrary<unknown> = value;
const object = fc
  .array(fc.tuple(memberName, values), { maxLength: 6 })
  .map((entries): Record<string, unknown> => Object.fromEntries(entries));

// ── Messages ─────────────────────────────────────────────────────────────────

const id = fc.oneof(
  { weight: 4, arbitrary: fc.integer({ min: 0, max: 99 }) },
  { weight: 3, arbitrary: fc.constant(OPEN_ID) },
  { weight: 2, arbitrary: scalar },
  { weight: 1, arbitrary: object },
);
const method = fc.oneof(
  { weight: 10, arbitrary: fc.constantFrom<string>(...methodNames) },
  { weight: 1, arbitrary: word },
);
/** What callers may want: those that close a session are rare, or nothing else would be tried in one. */
const request = fc.record(
  { jsonrpc: fc.constant('2.0'), id, method, params: object },
  { requiredKeys: ['jsonrpc', 'id', 'method'] },
);
const notification = fc.record(
  { jsonrpc: fc.constant('2.0'), method, params: object },
  { requiredKeys: ['jsonrpc', 'method'] },
);
const result = fc.record({
  jsonrpc: fc.constant('2.0'),
  id,
  result: fc.oneof({ weight: 5, arbitrary: object }, values),
});
const error = fc.record({
  jsonrpc: fc.constant('2.0'),
  id,
  error: fc.oneof(
    fc.record({ code: number, message: word, data: values }, { requiredKeys: ['code', 'message'] }),
    values,
  ),
});
const odd = object.map((members) => ({ jsonrpc: '2.0', ...members }));
const one = fc.oneof(
  { weight: 6, arbitrary: request },
  { weight: 3, arbitrary: notification },
  { weight: 4, arbitrary: result },
  { weight: 2, arbitrary: error },
  { weight: 1, arbitrary: odd },
);
const whole = fc
  .oneof(
    { weight: 20, arbitrary: one },
    { weight: 1, arbitrary: fc.array(one, { maxLength: 4 }) },
    { weight: 1, arbitrary: values },
  )
  .map((message) => bytesOf(JSON.stringify(message) ?? 'null'));

const deep = fc
  .tuple(fc.constantFrom('[', '{"a":', '[{"params":'), fc.constantFrom(10, 200, 5_000))
  .map(([open, depth]) => open.repeat(depth));

// ── Damage ───────────────────────────────────────────────────────────────────

const PUT = [
  ...'{}[]",:\\u0-+.eE1 tfn',
  '\n',
  '\r\n',
  '\0',
  '\xff',
  '\xc3',
  '"id":1,',
  '"method":"ping",',
  '\\ud800',
  '1e999',
  '00',
];
const damage = fc.array(
  fc.record({ at: fc.nat(), drop: fc.nat(3), put: fc.oneof(fc.constantFrom(...PUT), fc.string({ maxLength: 3 })) }),
  { minLength: 1, maxLength: 3 },
);

/** The bytes as they are, or with a few of them lost, changed or added. */
export const damaged = (bytes: fc.Arbitrary<string>): fc.Arbitrary<string> =>
  fc.oneof(
    { weight: 4, arbitrary: bytes },
    {
      weight: 1,
      arbitrary: fc.tuple(bytes, damage).map(([text, changes]) =>
        changes.reduce((left, { at, drop, put }) => {
          const start = at % (left.length + 1);
          return left.slice(0, start) + bytesOf(put) + left.slice(start + drop);
        }, text),
      ),
    },
  );

/** One message as it may arrive. */
export const messages: fc.Arbitrary<string> = damaged(
  fc.oneof(
    { weight: 30, arbitrary: whole },
    { weight: 1, arbitrary: deep },
    { weight: 1, arbitrary: fc.string({ unit: 'binary' }).map(bytesOf) },
  ),
);

/** The message with the ids that are really open; some stay as they are, and are answers to nobody. */
export function withOpenIds(message: string, open: readonly (string | number)[]): Buffer {
  if (open.length === 0 || !message.includes(String(OPEN_ID))) return toBuffer(message);
  let next = 0;
  return toBuffer(message.replaceAll(String(OPEN_ID), () => bytesOf(JSON.stringify(open[next++ % open.length]))));
}

// ── Variants ─────────────────────────────────────────────────────────────────
// Drawing an input costs more than most targets take to read it, so that each is used again: with a value of another one in it, a
// part left out or said twice, or a byte changed.

const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|true|false|null/g;

export function variantOf(text: string, other: string, dice: Random): string {
  const from = dice.between(0, text.length);
  switch (dice.between(0, 3)) {
    case 0: {
      const mine = dice.oneOf([...text.slice(0, 4_000).matchAll(TOKEN), undefined]);
      const theirs = dice.oneOf([...other.slice(0, 4_000).matchAll(TOKEN), undefined]);
      if (!mine || !theirs) return text;
      return text.slice(0, mine.index) + theirs[0] + text.slice(mine.index + mine[0].length);
    }
    case 1: {
      const to = text.indexOf(',', from);
      const part = to < 0 ? '' : text.slice(from, to);
      return dice.between(0, 1) === 0
        ? text.slice(0, from) + text.slice(from + part.length)
        : text.slice(0, from) + part + text.slice(from);
    }
    case 2:
      return text.slice(0, from) + dice.oneOf(PUT) + text.slice(from);
    default:
      return text.slice(0, from) + String.fromCharCode(dice.between(0, 255)) + text.slice(from + 1);
  }
}
