// What an API answered that is not what we wanted, as a sentence: what it did, and what to do about it. Of its own words
// only the short names that it has for its errors are repeated: free text may be the request's, and sentences are logged.

import { type FailureCode, TroupeError } from '../protocol/failures.ts';
import type { Post } from './post.ts';

export function readJson(bytes: Buffer, host: string): unknown {
  try {
    return JSON.parse(bytes.toString());
  } catch {
    // The engine's complaint would quote the answer.
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

export function refusalOf({
  response: { status, headers, type },
  bytes,
  host,
  request,
  retries,
}: Refused): TroupeError {
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

/** `{error: {type, code}}` is how all of them say it, or the same without `error` around it. */
function namesOf(bytes: Buffer, request: Post): string[] {
  const { type, code } = errorIn(bytes);
  const names = [type, code].filter((each) => typeof each === 'string');
  return [...new Set(names)].filter((each) => NAME.test(each) && !isEcho(each, request));
}

function errorIn(bytes: Buffer): { readonly type?: unknown; readonly code?: unknown } {
  try {
    const answer = JSON.parse(bytes.toString());
    return Object(answer?.error ?? answer);
  } catch {
    return {}; // a page of some proxy: its status says enough
  }
}

/** Somebody's debug mode may repeat what it was sent, and a key or a word of a prompt may look like a name. */
function isEcho(name: string, { url, headers, body }: Post): boolean {
  const sent = JSON.stringify([url, headers, body]).toLowerCase();
  const words = Object.values(headers).flatMap((value) => value.toLowerCase().split(' '));
  return sent.includes(name) || words.some((word) => word.length >= 4 && name.includes(word));
}
