// Requests that a door may get, and answers that a remote server may give, as the bytes of HTTP would carry them.

import fc from 'fast-check';
import { damaged, messages } from './messages.ts';

/** Stand for the session that is open at the door, and for the door's own name. */
export const SESSION = 'SESSION-OF-THE-STAGE';
export const HOST = 'HOST-OF-THE-STAGE';

type Header = readonly [name: string, value: string];

const latin = fc.string({ unit: 'binary-ascii', maxLength: 30 }).map((text) => text.replace(/[\r\n]/g, ''));
const oddValue = fc.oneof(
  latin,
  fc.constantFrom(
    '',
    ' ',
    ',',
    '0',
    '-1',
    '1e9',
    '9'.repeat(40),
    'x'.repeat(9_000),
    '\xff\xfe',
    '*/*',
    'chunked',
    'identity',
    'a;b="c',
  ),
);
const header = (name: string, ...usual: string[]): fc.Arbitrary<Header> =>
  fc.tuple(
    fc.constant(name),
    fc.oneof({ weight: 5, arbitrary: fc.constantFrom(...usual) }, { weight: 1, arbitrary: oddValue }),
  );

// ── Requests ─────────────────────────────────────────────────────────────────

export type HttpRequest = {
  readonly method: string;
  readonly path: string;
  readonly headers: readonly Header[];
  readonly body: string;
  /** The length that the head claims, less what the body has; the rest never comes. */
  readonly lack: number;
};

const method = fc.oneof(
  { weight: 10, arbitrary: fc.constant('POST') },
  { weight: 3, arbitrary: fc.constantFrom('GET', 'DELETE', 'OPTIONS', 'HEAD', 'PUT', 'TRACE', 'CONNECT', 'PRI') },
);
const path = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.constantFrom(
      '/mcp',
      '/mcp/victim',
      '/mcp/echo',
      '/sse',
      '/messages',
      '/ws',
      '/ws/victim',
      '/mcp/@all',
    ),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      '/',
      '*',
      '//mcp',
      '/mcp/',
      '/mcp/%00',
      '/mcp/%2e%2e/x',
      '/mcp?session=1',
      '/mcp/a/b',
      'http://x/mcp',
    ),
  },
  { weight: 1, arbitrary: latin.map((text) => `/${text.replace(/\s/g, '+')}`) },
);
const usualHeaders = fc.tuple(
  header('Host', HOST),
  header('Content-Type', 'application/json', 'application/json; charset=utf-8', 'text/plain'),
  header('Accept', 'application/json, text/event-stream', 'application/json', '*/*'),
  header('Mcp-Session-Id', SESSION),
  header('Mcp-Protocol-Version', '2025-06-18', '2025-11-25', '2024-11-05', '2026-07-28'),
);
const rareHeaders = fc.array(
  fc.oneof(
    header('Last-Event-ID', '1', '0-0'),
    header('Origin', 'http://localhost:1', 'null'),
    header('Authorization', 'Bearer x', 'Basic eA=='),
    header('Transfer-Encoding', 'chunked'),
    header('Expect', '100-continue'),
    header('Connection', 'close', 'keep-alive', 'Upgrade', 'Upgrade, HTTP2-Settings'),
    header('Upgrade', 'websocket', 'h2c'),
    header('Sec-WebSocket-Version', '13'),
    header('Sec-WebSocket-Key', 'dGhlIHNhbXBsZSBub25jZQ=='),
    header('Content-Encoding', 'gzip', 'br'),
    header('Mcp-Method', 'tools/call'),
    header('X-Odd', 'a'),
  ),
  { maxLength: 3 },
);

export const httpRequests: fc.Arbitrary<HttpRequest> = fc.record({
  method,
  path,
  headers: fc
    .tuple(usualHeaders, rareHeaders, fc.nat(40))
    .map(([usual, rare, left]) => [...usual.filter((_, at) => at !== left), ...rare]),
  body: messages,
  lack: fc.oneof(
    { weight: 30, arbitrary: fc.constant(0) },
    { weight: 1, arbitrary: fc.constantFrom(-1, 1, 1_000, 2 ** 40) },
  ),
});

// ── Answers ──────────────────────────────────────────────────────────────────

export type HttpAnswer = {
  readonly status: number;
  readonly headers: readonly Header[];
  readonly body: string;
  /** The answer says no length, and ends when the connection is cut. */
  readonly isCut: boolean;
};

const status = fc.oneof(
  { weight: 8, arbitrary: fc.constant(200) },
  { weight: 4, arbitrary: fc.constantFrom(202, 204, 301, 307, 400, 401, 403, 404, 405, 406, 410, 429, 500, 502, 503) },
  { weight: 1, arbitrary: fc.integer({ min: 200, max: 599 }) },
);
const answerHeaders = fc
  .tuple(
    header('Content-Type', 'application/json', 'text/event-stream', 'text/html'),
    fc.array(
      fc.oneof(
        header('Mcp-Session-Id', 'one', 'two'),
        header('Retry-After', '0', '1', 'Wed, 21 Oct 2099 07:28:00 GMT'),
        header(
          'WWW-Authenticate',
          'Bearer',
          'Bearer resource_metadata="http://127.0.0.1:1/x"',
          'Bearer error="insufficient_scope", scope="a b"',
        ),
        header('Location', '/mcp', 'http://169.254.169.254/', '//'),
        header('Content-Encoding', 'gzip'),
        header('Set-Cookie', 'a=b'),
      ),
      { maxLength: 2 },
    ),
  )
  .map(([type, rare]) => [type, ...rare]);

const eventField = fc.oneof(
  { weight: 6, arbitrary: messages.map((text) => `data: ${text}`) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      'id: 1',
      'id: \0',
      'retry: 0',
      'retry: 999999999999',
      'retry: -1',
      'event: message',
      'event: endpoint',
      ':',
      '',
    ),
  },
);
const events = fc.array(eventField, { maxLength: 6 }).map((fields) => `${fields.join('\n')}\n\n`);

export const httpAnswers: fc.Arbitrary<HttpAnswer> = fc.record({
  status,
  headers: answerHeaders,
  body: damaged(fc.oneof({ weight: 3, arbitrary: messages }, { weight: 2, arbitrary: events })),
  isCut: fc.boolean(),
});
