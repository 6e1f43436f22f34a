// How an outcome becomes messages: one, or several chunks and an end, or a reference to an object. It is never cut short.
// Frames are numbered from 1, so that a reader notices a lost one; an empty message without headers is the end.

import { createHash } from 'node:crypto';
import { type Msg, type MsgHdrs, type NatsConnection, headers as newHeaders } from 'nats';
import type { Outcome } from '../calls/call.ts';
import { errorObject, type Failure, natsCode, rpcCodeOf } from '../protocol/failures.ts';
import type { Blobs, Stored } from './blobs.ts';

export type FrameKind = 'ack' | 'progress' | 'log' | 'ask' | 'ka' | 'chunk' | 'result' | 'error';

/** Where messages go. A stream names and numbers each frame; a plain reply does so for chunks only. */
export type Outlet = {
  readonly isStream: boolean;
  readonly accepts: readonly string[];
  send(kind: FrameKind, body: Uint8Array, headers?: Headers): void;
  end(): void;
};
export type Headers = Readonly<Record<string, string>>;
export type Bus = { readonly nc: NatsConnection; readonly blobs: Blobs };

const MAX_CHUNK = 512 * 1024;
const MAX_CHUNKED = 32 * 2 ** 20;
const CHUNKS_PER_FLUSH = 8;
/** Room for the headers of a message. */
export const HEADER_ROOM = 1024;

export const maxPayload = (nc: NatsConnection): number => nc.info?.max_payload ?? 2 ** 20;
export const chunkBytes = (nc: NatsConnection): number => Math.max(256, Math.min(MAX_CHUNK, maxPayload(nc) - 4096));
export const accepted = (msg: Msg): string[] =>
  (msg.headers?.get('Troupe-Accept') ?? '').split(',').map((form) => form.trim());

export const toHeaders = (entries: Headers): MsgHdrs => {
  const headers = newHeaders();
  for (const [key, value] of Object.entries(entries)) headers.set(key, value);
  return headers;
};

/** An outcome that fits into one message is sent at once, and nothing is returned; a larger one takes a while. */
export function sendOutcome(bus: Bus, outlet: Outlet, outcome: Outcome): Promise<void> | undefined {
  const kind = outcome.ok ? 'result' : 'error';
  const body = outcome.ok ? outcome.result : errorObject(outcome.failure);
  const headers = outcome.ok ? resultHeaders(outcome.isError) : errorHeaders(outcome.failure);
  if (body.length + HEADER_ROOM > maxPayload(bus.nc)) return sendLarge(bus, outlet, { body, headers });
  outlet.send(kind, body, headers);
  if (outlet.isStream) outlet.end();
  return undefined;
}

type Large = { readonly body: Buffer; readonly headers: Headers };

async function sendLarge(bus: Bus, outlet: Outlet, large: Large): Promise<void> {
  const mayChunk = outlet.accepts.includes('chunk');
  const mayRefer = outlet.accepts.includes('object');
  if (mayChunk && (large.body.length <= MAX_CHUNKED || !mayRefer)) return sendChunks(bus, outlet, large);
  const stored = await bus.blobs.put(large.body).catch(() => undefined); // no JetStream, or its store is full
  if (!stored && mayChunk) return sendChunks(bus, outlet, large);
  if (stored && mayRefer) outlet.send('result', json(stored), { ...large.headers, ...reference(stored) });
  else refuse(outlet, large.body.length, stored);
  if (outlet.isStream) outlet.end();
}

async function sendChunks({ nc }: Bus, outlet: Outlet, { body, headers }: Large): Promise<void> {
  const size = chunkBytes(nc);
  const count = Math.ceil(body.length / size);
  const first = { ...headers, 'Mcp-Size': String(body.length), Digest: digestOf(body) };
  for (let i = 0; i < count; i++) {
    const place = { 'Mcp-Chunk': `${i + 1}/${count}` };
    outlet.send('chunk', body.subarray(i * size, (i + 1) * size), i === 0 ? { ...first, ...place } : place);
    // A burst beyond what the broker will hold for a slow reader would cost that reader its connection.
    if (i % CHUNKS_PER_FLUSH === CHUNKS_PER_FLUSH - 1) await nc.flush();
  }
  outlet.end();
}

/** In the spelling of the object store: URL-safe, with its padding. */
export const digestOf = (body: Buffer): string => `SHA-256=${createHash('sha256').update(body).digest('base64url')}=`;

/** The caller accepts neither chunks nor objects: it is told where the result was stored, if it could be. */
function refuse(outlet: Outlet, bytes: number, stored: Stored | undefined): void {
  const failure: Failure = {
    code: 'tooLarge',
    delivery: 'failed',
    message: stored
      ? `The result has ${bytes} bytes, too many for one message; fetch the object, or send Troupe-Accept: chunk,object.`
      : `The result has ${bytes} bytes, too many for one message; send Troupe-Accept: chunk to get it in parts.`,
  };
  const headers = errorHeaders(failure);
  if (stored) outlet.send('error', json(stored), { ...headers, ...reference(stored) });
  else outlet.send('error', errorObject(failure), headers);
}

const reference = ({ bucket, object, size, digest }: Stored): Headers => ({
  'Troupe-Object': `${bucket}/${object}`,
  'Mcp-Size': String(size),
  Digest: digest,
});

const resultHeaders = (isError: boolean): Headers => (isError ? { 'Mcp-Is-Error': 'true' } : {});

export function errorHeaders(failure: Failure): Headers {
  return {
    'Nats-Service-Error-Code': String(natsCode(failure)),
    // A line break would end the header, and what follows would be read as one of ours.
    'Nats-Service-Error': failure.message.replace(/\s+/g, ' ').trim().slice(0, 200),
    'Mcp-Error-Code': String(rpcCodeOf(failure)),
  };
}

export const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));
