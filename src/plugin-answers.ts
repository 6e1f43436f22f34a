// What an API answered that is not what we wanted, as a sentence: what it did, and what to do about it. Its own words are
// quoted, short and without anything secret; of long quotations in them, which may be the request's text, only the marks stay.

import { type FailureCode, TroupeError } from './failures.ts';
import type { Post } from './plugin-post.ts';
import { withoutControls } from './telemetry/printable.ts';

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
  // Vendors quote parts of a wrong key.
  if (status === 401 || status === 403)
    return error('unauthorized', `refuses us (${status}); check apiKey, and what it may be used for`);
  const said = wordsOf(bytes, request);
  if (status === 429 || status === 503 || status === 529)
    return error(
      'busy',
      `is busy or its limit is reached (${status}${later(headers, retries)})${said}; try again later`,
    );
  if (status === 404) return error('rejected', `knows no such model or address (404)${said}; check models and baseUrl`);
  if (status >= 500) return error('rejected', `failed (${status})${said}; try again later`);
  return error('rejected', `refused the request (${status})${said}`);
}

function later(headers: Headers, retries: number): string {
  const wanted = headers.get('retry-after') ?? '';
  const isShort = /^[\w ,:.+-]{1,40}$/.test(wanted);
  return `${retries > 0 ? `, also after ${retries} retries` : ''}${isShort ? `, Retry-After: ${wanted}` : ''}`;
}

const MOST_CHARACTERS = 300;
const LONG_QUOTATION = /(["'`])[^"'`]{24,}\1/g;

/** `{error: {message}}` is how all of them say it, or `{error}`, or `{message}`. */
function wordsOf(bytes: Buffer, request: Post): string {
  const message = messageOf(bytes);
  if (!message) return '';
  const short = withoutSecrets(message, request).replace(LONG_QUOTATION, '$1…$1').replace(/\s+/g, ' ').trim();
  return `: ${withoutControls(short).slice(0, MOST_CHARACTERS)}`;
}

function messageOf(bytes: Buffer): string | undefined {
  try {
    const { error, message } = JSON.parse(bytes.toString());
    return [error?.message, error, message].find((each) => typeof each === 'string');
  } catch {
    return undefined; // a page of some proxy: its status says enough
  }
}

/** Somebody's debug mode may echo what it was sent. */
function withoutSecrets(text: string, { url, headers }: Post): string {
  const sent = [
    ...Object.values(headers).flatMap((value) => [value, ...value.split(' ')]),
    ...new URL(url).searchParams.values(),
  ];
  const secrets = sent.filter(({ length }) => length >= 4).sort((a, b) => b.length - a.length);
  return secrets.reduce((masked, secret) => masked.replaceAll(secret, '[masked]'), text);
}
