// A NATS message read as a request: what it asks for, for whom, and how it wants the answer.
// What cannot be read is refused with a sentence; the message's bytes become the call's bytes.

import { randomUUID } from 'node:crypto';
import type { Msg, MsgHdrs } from 'nats';
import { type Address, isRequestId, type Request, requestedName } from '../../bus/subjects.ts';
import { durationOf } from '../../config/durations.ts';
import type { Caller } from '../../operations/parameters.ts';
import { knownBytes, wrapped } from '../../protocol/compose.ts';
import { TroupeError } from '../../protocol/failures.ts';
import { isJsonObject, member, members, stringOf } from '../../protocol/json.ts';
import { hasName, methodOfVerb, rowOf } from '../../protocol/methods.ts';
import type { Order } from '../../tasks/task.ts';

/** What the caller wants beside the answer. */
export type Extras = {
  readonly requestId: string;
  readonly isNamed: boolean;
  readonly isStream: boolean;
  readonly timeoutMs?: number;
};
export type Asked = { readonly method: string; readonly name: string; readonly params: Buffer };

const EMPTY = Buffer.from('{}');
const OPEN_BRACE = 0x7b;
const MAX_URI = 8_192;
const MAX_SUBSCRIBER = 256;
let sequence = 0;

/** Whoever publishes on a tree is its caller: the permissions of the bus say who may. */
export const callerOf = ({ caller }: { readonly caller: string }): Caller => ({
  principal: caller,
  by: 'a client on NATS',
});

/** The tree that a request came on, where its caller can be told to ask again. */
export const treeOf = ({ caller, node }: { readonly caller: string; readonly node?: string | undefined }): Address =>
  node === undefined ? { caller } : { node };

/** Most calls have no headers, and reading headers that are not there costs nothing. */
export function extrasOf({ headers }: Msg): Extras {
  if (!headers) return { requestId: `c${++sequence}`, isNamed: false, isStream: false };
  const given = headers.get('Troupe-Request-Id');
  if (given && !isRequestId(given))
    throw new TroupeError('invalid', 'Troupe-Request-Id must be 1 to 64 letters, digits, - or _');
  const timeout = headers.get('Troupe-Timeout');
  const timeoutMs = timeout ? durationOf(timeout) : undefined;
  if (timeout && !timeoutMs) throw new TroupeError('invalid', 'Troupe-Timeout must be a duration such as 30s or 5000');
  return {
    requestId: given || randomUUID(),
    isNamed: given !== '',
    isStream: wantsStream({ headers }),
    ...(timeoutMs && { timeoutMs }),
  };
}

/** Which of a caller's listeners it is. */
export function subscriberOf({ headers }: Pick<Msg, 'headers'>): string {
  const subscriber = headers?.get('Troupe-Subscriber') ?? '';
  if (subscriber.length > MAX_SUBSCRIBER)
    throw new TroupeError('invalid', `Troupe-Subscriber must have at most ${MAX_SUBSCRIBER} characters`);
  return subscriber;
}

export const wantsStream = ({ headers }: Pick<Msg, 'headers'>): boolean => headers?.get('Troupe-Stream') === '1';

/** The task that a message wants its call to be; undefined when it wants the outcome itself. */
export function orderOf(request: Request, msg: Msg, body: Buffer): Order | undefined {
  const { headers } = msg;
  if (!headers) return undefined;
  if (!headers.has('Troupe-Task')) {
    // A caller that sends a key counts on it: a call that ignored the key would run a second time.
    const misplaced = FOR_TASKS.find((name) => headers.has(name));
    if (misplaced)
      throw new TroupeError('invalid', `${misplaced} is for tasks; send Troupe-Task: 1 with it, or leave it out`);
    return undefined;
  }
  const nonsense = nonsenseIn(request, headers);
  if (nonsense) throw new TroupeError('invalid', nonsense);
  const ttl = headers.get('Troupe-Ttl');
  const ttlMs = headers.has('Troupe-Ttl') ? durationOf(ttl) : undefined;
  if (headers.has('Troupe-Ttl') && !(ttlMs && Number.isSafeInteger(ttlMs)))
    throw new TroupeError('invalid', 'Troupe-Ttl must be a duration such as 1h or 3600000');
  const key = headers.get('Troupe-Idempotency-Key');
  if (headers.has('Troupe-Idempotency-Key') && !KEY.test(key))
    throw new TroupeError('invalid', 'Troupe-Idempotency-Key must be 1 to 256 printable characters of ASCII');
  const { name: tool, params } = askedOf(request, msg, body);
  const { caller: principal, server } = request;
  return { principal, door: 'nats', server, tool, params, ...(ttlMs && { ttlMs }), ...(key && { key }) };
}

const FOR_TASKS = ['Troupe-Ttl', 'Troupe-Idempotency-Key'];
const KEY = /^[\x20-\x7e]{1,256}$/;

/** Why these headers cannot be meant together with `Troupe-Task`. */
function nonsenseIn({ verb }: Request, headers: MsgHdrs): string | undefined {
  if (headers.get('Troupe-Task') !== '1') return 'Troupe-Task must be 1; leave it out to wait for the result itself';
  if (verb !== 'call') return `only the call of a tool can be a task, not ${verb}; leave Troupe-Task out`;
  if (wantsStream({ headers }))
    return 'a task is told in one reply; send Troupe-Stream: 1 where you ask for its result, and not with Troupe-Task';
  if (headers.has('Troupe-Request-Id'))
    return 'a task has an id of its own, Troupe-Task-Id of the reply; send Troupe-Idempotency-Key in place of Troupe-Request-Id';
  if (headers.has('Troupe-Timeout'))
    return 'a task has until its ttl is over; send Troupe-Ttl in place of Troupe-Timeout';
  return undefined;
}

export function askedOf({ verb, tail }: Request, msg: Msg, body: Buffer): Asked {
  const method = methodOfVerb(verb);
  if (!method) throw new TroupeError('unsupported', `${verb} is not a call`);
  const kind = rowOf(method)?.target?.kind;
  if (!kind) return { method, name: '', params: objectOf(body, `the parameters of ${method}`) };
  if (hasName(kind)) {
    const name = nameOf(tail, msg);
    return { method, name, params: namedParams(name, body, `the arguments of a ${kind.slice(0, -1)}`) };
  }
  const uri = uriOf(body);
  return { method, name: uri, params: body[0] === OPEN_BRACE ? body : Buffer.from(JSON.stringify({ uri })) };
}

/** `{"uri": "…"}` or the bare URI. */
export function uriOf(body: Buffer): string {
  const text = body.toString().trim();
  if (!text.startsWith('{')) {
    if (text === '' || text.length > MAX_URI || /\s/.test(text))
      throw new TroupeError('invalid', 'send a URI, or {"uri": "…"}');
    return text;
  }
  const value = member(objectOf(body, 'a resource'), 'uri');
  const uri = value && stringOf(value);
  if (!uri || uri.length > MAX_URI) throw new TroupeError('invalid', 'send a URI, or {"uri": "…"}');
  return uri;
}

export function cursorOf(body: Buffer): string | undefined {
  if (body.length === 0) return undefined;
  const value = member(objectOf(body, 'a list request'), 'cursor');
  return value && stringOf(value);
}

function nameOf(tail: string, { headers }: Msg): string {
  const name = requestedName(tail, headers?.get('Mcp-Name') || undefined);
  if (name === undefined)
    throw new TroupeError('invalid', 'the subject and the header Mcp-Name do not name the same thing');
  return name;
}

/** The body is the arguments, or `{"arguments", "_meta"}` when it has exactly these two members. */
function namedParams(name: string, body: Buffer, what: string): Buffer {
  const args = objectOf(body, what);
  const names = args.includes(META)
    ? [...members(args)]
        .map(([key]) => key)
        .sort()
        .join()
    : '';
  if (names === '_meta,arguments')
    return Buffer.concat([Buffer.from(`{"name":${JSON.stringify(name)},`), args.subarray(args.indexOf('{') + 1)]);
  return wrapped(argumentsOf(name), args);
}

const argumentsOf = knownBytes((name) => `{"name":${JSON.stringify(name)},"arguments":`);

const META = Buffer.from('"_meta"');

function objectOf(body: Buffer, what: string): Buffer {
  if (body.length === 0) return EMPTY;
  if (!isJsonObject(body)) throw new TroupeError('malformed', `the body must be a JSON object: ${what}`);
  return body;
}
