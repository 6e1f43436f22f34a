// What a stranger on the bus may send: requests under the tree of troupe whose every part is odd, long, malformed or all of it.
// Short rounds of tests and long ones draw from here.

import fc from 'fast-check';

/** One message as it goes over the wire, so that nothing on the way mends it. */
export type BusMessage = {
  readonly subject: Buffer;
  readonly reply?: Buffer;
  /** The whole block, its first line and the empty last one included. */
  readonly headers?: Buffer;
  readonly body: Buffer;
};

/** What a broker takes of a line behind its first word: subject, reply subject and the sizes. */
const LINE_BYTES = 4_096;
const BLANK = /[\s\0]/;

const bytesOf = (text: string): Buffer => Buffer.from(text, 'utf8');

// ── Names and subjects ───────────────────────────────────────────────────────

const plain = fc.string({ unit: fc.constantFrom(...'abcXYZ019_-'), minLength: 1, maxLength: 12 }).map(bytesOf);
const long = fc
  .tuple(fc.constantFrom('x', '=2E', 'ü', '='), fc.constantFrom(63, 64, 199, 200, 201, 255, 1_000, 2_000, 3_900))
  .map(([piece, bytes]) => bytesOf(piece.repeat(Math.ceil(bytes / Buffer.byteLength(piece)))));
const unicode = fc
  .string({ unit: 'binary', minLength: 1, maxLength: 20 })
  .map((text) => bytesOf([...text].filter((each) => !BLANK.test(each)).join('')));
const nonsense = fc
  .uint8Array({ minLength: 1, maxLength: 40 })
  .map((bytes) => Buffer.from(bytes.filter((byte) => byte > 0x20 && byte !== 0x7f)));
const escaped = fc.constantFrom('=', '==', '=2', '=2E', '=2e', '=h', '=00', '=0D=0A', '_', '*', '>', '').map(bytesOf);

/** One token, which may hold dots, wildcards, escapes and bytes that are no text. */
export const token: fc.Arbitrary<Buffer> = fc.oneof(
  { weight: 4, arbitrary: plain },
  { weight: 3, arbitrary: long },
  unicode,
  nonsense,
  escaped,
);

const joined = (...parts: (string | Buffer)[]): Buffer =>
  Buffer.concat(parts.flatMap((part, index) => [...(index > 0 ? [bytesOf('.')] : []), Buffer.from(part as Buffer)]));

/** Subjects that a daemon with these servers listens on, or that look like it. */
export function subject(servers: readonly string[], root = 'troupe'): fc.Arbitrary<Buffer> {
  const server = fc.oneof(
    { weight: 6, arbitrary: fc.constantFrom(...servers).map(bytesOf) },
    { weight: 1, arbitrary: token },
  );
  const verb = fc.constantFrom('call', 'list', 'read', 'prompt', 'complete', 'subscribe', 'unsubscribe').map(bytesOf);
  const kind = fc.constantFrom('tools', 'prompts', 'resources', 'templates', 'echo').map(bytesOf);
  const task = fc.constantFrom('get', 'result', 'cancel').map(bytesOf);
  const path = fc.oneof(
    fc.tuple(verb, server, fc.oneof(kind, token)).map((parts) => joined(...parts)),
    fc.tuple(verb, server).map((parts) => joined(...parts)),
    fc.tuple(server, fc.oneof(kind, token)).map(([of, name]) => joined('call', of, name)),
    fc.tuple(fc.constantFrom('cancel', 'answer'), token).map(([word, id]) => joined(word, id)),
    fc.tuple(task, token).map(([word, id]) => joined('task', word, id)),
    fc.constantFrom('task.list', 'inbox', 'rpc', 'rpc.@none').map(bytesOf),
    server.map((scope) => joined('rpc', scope)),
    fc.tuple(fc.constantFrom('ev', 'sess', 'peers', 'ask', 'hb'), token, token).map((parts) => joined(...parts)),
  );
  const tree = fc.oneof(
    fc.constant(bytesOf(root)),
    token.map((caller) => joined(root, 'as', caller)),
    token.map((node) => joined(root, 'node', node)),
  );
  const micro = fc
    .tuple(fc.constantFrom('PING', 'INFO', 'STATS'), fc.constantFrom(...servers))
    .map(([word, name]) => bytesOf(`$SRV.${word}.mcp-${name}`));
  return fc.oneof(
    { weight: 9, arbitrary: fc.tuple(tree, path).map(([before, after]) => joined(before, after)) },
    { weight: 1, arbitrary: micro },
  );
}

/** Reply subjects: inboxes of every length, and such as a daemon must not write to. */
export const reply: fc.Arbitrary<Buffer | undefined> = fc.oneof(
  { weight: 1, arbitrary: fc.constant(undefined) },
  {
    weight: 5,
    arbitrary: fc
      .tuple(fc.constantFrom('_INBOX.', '_INBOX_a.', '_R_.'), token)
      .map(([head, tail]) => joined(head, tail)),
  },
  {
    weight: 2,
    arbitrary: fc
      .constantFrom(1_000, 1_024, 1_025, 3_900, 3_990, 4_010, 4_060)
      .map((count) => bytesOf(`_INBOX.${'r'.repeat(count)}`)),
  },
  { weight: 1, arbitrary: token },
);

// ── Headers ──────────────────────────────────────────────────────────────────

const KNOWN = [
  ...['Troupe-Stream', 'Troupe-Task', 'Troupe-Ttl', 'Troupe-Timeout', 'Troupe-Request-Id', 'Troupe-Idempotency-Key'],
  ...['Troupe-Accept', 'Troupe-Object', 'Troupe-Subscriber', 'Troupe-Probe', 'Mcp-Name', 'Mcp-Session-Id', 'Mcp-Seq'],
  ...[
    'Mcp-Frame',
    'Mcp-Chunk',
    'Nats-Msg-Id',
    'Nats-Service-Error',
    'Nats-Service-Error-Code',
    'Status',
    'traceparent',
  ],
];
const headerValue = fc.oneof(
  fc.constantFrom('1', '', '0', 'chunk', 'chunk,object', 'troupe_blobs/x', '5s', '=?base64?eA==?=', '1/1', 'ka', 'end'),
  fc.constantFrom(64, 300, 5_000, 20_000).map((count) => 'v'.repeat(count)),
  fc.constant(`troupe_blobs/${'o'.repeat(4_000)}`),
  fc.string({ unit: 'binary', maxLength: 30 }),
  fc.constantFrom('a\rb', 'a\nb', '\n', 'a\n\nTroupe-Task: 1', 'a\r\nTroupe-Task: 1'),
);
const headerLine = fc.oneof(
  { weight: 6, arbitrary: fc.tuple(fc.constantFrom(...KNOWN), headerValue).map(([key, value]) => `${key}: ${value}`) },
  {
    weight: 1,
    arbitrary: fc.tuple(fc.string({ unit: 'binary', maxLength: 20 }), headerValue).map((pair) => pair.join(':')),
  },
  { weight: 1, arbitrary: fc.constantFrom('no colon', ':', ': x', ' Troupe-Stream: 1', 'Bad Key: 1', 'ü: 1') },
  { weight: 1, arbitrary: fc.constantFrom(10_000, 200_000).map((count) => `${'K'.repeat(count)}: 1`) },
);
const firstLine = fc.oneof(
  { weight: 6, arbitrary: fc.constant('NATS/1.0') },
  {
    weight: 1,
    arbitrary: fc.constantFrom('NATS/1.0 503', 'NATS/1.0 503 No Responders', 'NATS/1.0 -1', 'NATS/2.0', ''),
  },
);
const many = fc
  .tuple(fc.constantFrom(100, 2_000, 40_000), fc.boolean())
  .map(([count, isSame]) => Array.from({ length: count }, (_, index) => (isSame ? 'A: 1' : `k${index}:`)));

/** A block of headers; `undefined` is a message without any. */
export const headers: fc.Arbitrary<Buffer | undefined> = fc.oneof(
  { weight: 2, arbitrary: fc.constant(undefined) },
  {
    weight: 6,
    arbitrary: fc
      .tuple(firstLine, fc.array(headerLine, { maxLength: 5 }), fc.constantFrom('\r\n\r\n', '\r\n', '', '\n\n'))
      .map(([first, lines, end]) => bytesOf([first, ...lines].join('\r\n') + end)),
  },
  { weight: 1, arbitrary: many.map((lines) => bytesOf(['NATS/1.0', ...lines, '', ''].join('\r\n'))) },
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)) },
);

// ── Bodies, and whole messages ───────────────────────────────────────────────

export const body: fc.Arbitrary<Buffer> = fc
  .oneof(
    {
      weight: 5,
      arbitrary: fc.constantFrom(
        ...['', '{}', '{"message":"hi"}', '[]', 'null', '{"cursor":"x"}', '{"uri":"memo://a"}', '{"message":'],
        '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}',
      ),
    },
    { weight: 1, arbitrary: fc.constantFrom(2_000, 700_000).map((count) => `{"message":"${'m'.repeat(count)}"}`) },
    { weight: 1, arbitrary: fc.constantFrom(10_000).map((depth) => '['.repeat(depth)) },
    { weight: 1, arbitrary: fc.json() },
  )
  .map(bytesOf);

function lineBytes({ subject, reply, headers, body }: BusMessage): number {
  const sizes = headers ? `${headers.length} ${headers.length + body.length}` : `${body.length}`;
  return subject.length + (reply ? reply.length + 1 : 0) + 1 + sizes.length;
}

/**
 * Requests that are sound but for their length: a name, or the reply subject, fills the line up to the last bytes. What the daemon
 * makes of it, a subject of an event or a line with a second reply subject, may then be longer than what came.
 */
function full(servers: readonly string[], root = 'troupe'): fc.Arbitrary<BusMessage> {
  const others = ['list', 'read', 'subscribe', 'task.list', 'inbox', 'rpc'];
  const verb = fc.oneof(
    { weight: 2, arbitrary: fc.constant('call') },
    { weight: 1, arbitrary: fc.constantFrom(...others) },
  );
  const path = fc.tuple(fc.constantFrom(...servers), verb).map(([server, verb]) => {
    if (verb === 'call') return `call.${server}.echo`;
    if (verb === 'list') return `list.${server}.tools`;
    return verb === 'read' || verb === 'subscribe' ? `${verb}.${server}` : verb;
  });
  const block = fc.constantFrom(undefined, 'Troupe-Stream: 1', 'Troupe-Task: 1', 'Troupe-Request-Id: r1');
  const text = fc.constantFrom('{}', '{"message":"hi"}', '{"uri":"memo://a"}');
  return fc
    .record({ path, block, text, long: fc.constantFrom('caller', 'reply'), spare: fc.nat({ max: 20 }) })
    .map(({ path, block, text, long, spare }) => {
      const headers = block === undefined ? {} : { headers: bytesOf(`NATS/1.0\r\n${block}\r\n\r\n`) };
      const made = (padding: string): BusMessage => {
        const about = { ...headers, body: bytesOf(text) };
        if (long === 'caller') return { ...about, subject: bytesOf(`${root}.as.${padding}.${path}`) };
        return { ...about, subject: bytesOf(`${root}.${path}`), reply: bytesOf(`_INBOX.${padding}`) };
      };
      return made('x'.repeat(LINE_BYTES - lineBytes(made('')) - spare));
    });
}

/** Whole messages that a broker hands on; `maxPayload` is what it takes of headers and body together. */
export const message = (servers: readonly string[], maxPayload = 2 ** 20): fc.Arbitrary<BusMessage> => {
  const odd = fc
    .record({ subject: subject(servers), reply, headers, body })
    .map(({ reply, headers, ...rest }) => ({ ...rest, ...(reply && { reply }), ...(headers && { headers }) }))
    .filter((it) => lineBytes(it) <= LINE_BYTES && it.reply?.length !== 0)
    .filter((it) => it.body.length + (it.headers?.length ?? 0) <= maxPayload);
  return fc.oneof({ weight: 4, arbitrary: odd }, { weight: 1, arbitrary: full(servers) });
};
