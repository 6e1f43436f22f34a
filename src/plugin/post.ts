// One JSON request to an API. It is bounded in time and size, it goes to the address that was configured and to no other, and
// it is sent again only when the service says that it is busy. Errors are sentences with the host in them and the remedy, and
// never with a header, a query or the request. Of the service's own words only the short names of its errors are repeated:
// free text may quote the request, and errors are logged.

import { setTimeout as wait } from 'node:timers/promises';
import { type FailureCode, TroupeError } from '../protocol/failures.ts';

export type Post = {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: object;
  /** Retries included; two minutes unless told. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
};

const TIMEOUT_MS = 120_000;
const MAX_BYTES = 16 * 1024 ** 2;
/** Too many requests, unavailable, and one vendor's status for overloaded. */
const BUSY = new Set([429, 503, 529]);
const RETRIES = 2;
const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 60_000;

export async function post(request: Post): Promise<unknown> {
  const { timeoutMs = TIMEOUT_MS, signal } = request;
  const host = URL.canParse(request.url) ? new URL(request.url).host : 'the address';
  const deadline = performance.now() + timeoutMs;
  // Not AbortSignal.timeout within AbortSignal.any: Node may collect that one before it fires.
  const limit = new AbortController();
  const timer = setTimeout(() => limit.abort(), timeoutMs);
  const stop = () => limit.abort();
  signal?.addEventListener('abort', stop, { once: true });
  if (signal?.aborted) stop();
  try {
    for (let retry = 0; ; retry++) {
      const response = await send(request, limit.signal);
      const waitMs = waitAfter(response, retry);
      const mayRetry = waitMs !== undefined && retry < RETRIES && performance.now() + waitMs < deadline;
      if (!mayRetry) return await answerOf(response, host, request, retry);
      await response.body?.cancel();
      await wait(waitMs, undefined, { signal: limit.signal });
    }
  } catch (error) {
    if (error instanceof TroupeError) throw error;
    if (signal?.aborted) throw new TroupeError('cancelled', `the request to ${host} was cancelled`);
    if (limit.signal.aborted)
      throw new TroupeError(
        'timeout',
        `${host} did not answer within ${timeoutMs / 1_000} s; raise timeoutMs, or take a faster model`,
      );
    throw new TroupeError('unavailable', `${host} cannot be reached: ${whyOf(error)}`);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', stop);
  }
}

const send = ({ url, headers, body }: Post, signal: AbortSignal): Promise<Response> =>
  fetch(url, {
    method: 'POST',
    redirect: 'manual',
    signal,
    body: JSON.stringify(body),
    headers: { ...headers, 'content-type': 'application/json', accept: 'application/json' },
  });

/** How long a busy service asks to wait; nothing when it is not busy, or asks not to be tried again. */
function waitAfter({ status, headers }: Response, retry: number): number | undefined {
  if (!BUSY.has(status) || headers.get('x-should-retry') === 'false') return undefined;
  const written = headers.get('retry-after') ?? '';
  const wanted = /^\d+(\.\d+)?$/.test(written) ? Number(written) * 1_000 : Date.parse(written) - Date.now();
  const waitMs = Number.isNaN(wanted) ? FIRST_WAIT_MS * 2 ** retry : Math.max(0, wanted);
  return waitMs > LONGEST_WAIT_MS ? undefined : waitMs;
}

async function answerOf(response: Response, host: string, request: Post, retries: number): Promise<unknown> {
  const bytes = await capped(response, host);
  if (!response.ok) throw refusalOf({ response, bytes, host, request, retries });
  return readJson(bytes, host);
}

async function capped(response: Response, host: string): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.byteLength;
    if (size > MAX_BYTES)
      throw new TroupeError('tooLarge', `${host} answered with more than ${MAX_BYTES} bytes; lower maxTokens`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** By the error's code alone: its message may quote the address or a header. */
function whyOf(error: unknown): string {
  const cause = error instanceof Error && error.cause ? error.cause : error;
  const code = (cause as { code?: unknown } | null)?.code;
  if (typeof code !== 'string' || code === 'ERR_INVALID_URL')
    return 'the request cannot be sent; check the address and the headers';
  if (/CERT|SSL|TLS|SELF_SIGNED|ISSUER/.test(code)) return `its certificate is not trusted (${code}); correct baseUrl`;
  return WHYS[code] ?? `the connection failed (${code}); try again`;
}

const WHYS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nobody listens there; start the service, or correct baseUrl',
  ENOTFOUND: 'there is no such host; correct baseUrl',
  EAI_AGAIN: 'its name cannot be resolved now; check the network',
  ECONNRESET: 'it ended the connection before it had answered; try again',
  UND_ERR_SOCKET: 'it ended the connection before it had answered; try again',
  UND_ERR_CONNECT_TIMEOUT: 'it does not take connections; check the network and baseUrl',
};

function readJson(bytes: Buffer, host: string): unknown {
  try {
    return JSON.parse(bytes.toString());
  } catch {
    // The parser's message would quote the answer.
    throw new TroupeError('rejected', `${host} answered with what is no JSON; check baseUrl`);
  }
}

type Refused = {
  readonly response: Response;
  readonly bytes: Buffer;
  readonly host: string;
  readonly request: Post;
  readonly retries: number;
};

function refusalOf({ response: { status, headers, type }, bytes, host, request, retries }: Refused): TroupeError {
  const error = (code: FailureCode, why: string) => new TroupeError(code, `${host} ${why}`);
  if (type === 'opaqueredirect' || (status >= 300 && status < 400))
    return error('rejected', `redirects elsewhere (${status}), where the key must not go; correct baseUrl`);
  if (status === 401 || status === 403)
    return error('unauthorized', `refuses us (${status}); check apiKey, and what it may be used for`);
  const said = [status, ...namesOf(bytes, request)].join(', ');
  if (status === 429 || status === 503 || status === 529)
    return error('busy', `is busy or its limit is reached (${said}${later(headers, retries)}); try again later`);
  if (status === 404) return error('rejected', `knows no such model or address (${said}); check models and baseUrl`);
  if (status === 413) return error('rejected', `takes no request as large as this (${said}); ask with less`);
  if (status >= 500) return error('rejected', `failed (${said}); try again later`);
  return error('rejected', `refused the request (${said}); check what the model takes, and maxTokens`);
}

function later(headers: Headers, retries: number): string {
  const wanted = headers.get('retry-after') ?? '';
  const isTime = SECONDS.test(wanted) || DATE.test(wanted);
  return `${retries > 0 ? `, also after ${retries} retries` : ''}${isTime ? `, Retry-After: ${wanted}` : ''}`;
}

const SECONDS = /^\d{1,9}(\.\d{1,9})?$/;
const DATE = /^[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT$/;
const NAME = /^[a-z0-9_.-]{1,64}$/;

/** The names of an error: `{error: {type, code}}`, or the same without `error` around it. */
function namesOf(bytes: Buffer, request: Post): string[] {
  const { type, code } = errorIn(bytes);
  const names = [type, code].filter((each) => typeof each === 'string');
  return [...new Set(names)].filter((each) => NAME.test(each) && !isQuoted(each, request));
}

function errorIn(bytes: Buffer): { readonly type?: unknown; readonly code?: unknown } {
  try {
    const answer = JSON.parse(bytes.toString());
    return Object(answer?.error ?? answer);
  } catch {
    return {}; // a page of some proxy: its status says enough
  }
}

/** Whether a name may be quoted from the request: a service in debug mode repeats it, and a key may look like a name. */
function isQuoted(name: string, { url, headers, body }: Post): boolean {
  const sent = JSON.stringify([url, headers, body]).toLowerCase();
  const words = Object.values(headers).flatMap((value) => value.toLowerCase().split(' '));
  return sent.includes(name) || words.some((word) => word.length >= 4 && name.includes(word));
}
