// The POSTs to one server: requests, which are answered, and one-way messages, which are not; and how many of them may be
// outstanding.

import { Transients } from '../../calls/transients.ts';
import type { Failure } from '../../protocol/failures.ts';
import type { LinkEvents } from '../connection/link.ts';
import type { Client, Sent } from './client.ts';
import { collect, type Head, type Reader, TOO_LONG } from './exchange.ts';
import { type Refusal, refusalIn, type Say } from './failures.ts';
import { Stream } from './stream.ts';

const CONTENT = { accept: 'application/json, text/event-stream', 'content-type': 'application/json' };

/** The body of a message: a frame without the newline that ends it on other transports. */
export const bodyOf = (frame: Buffer): Buffer => frame.subarray(0, -1);

// ── Requests ─────────────────────────────────────────────────────────────────

const MAX_OUTSTANDING_BYTES = 64 * 1024 * 1024;

/** The requests that a server has not yet answered, or not yet taken: at most so many, and so many bytes. */
export class Outstanding<T extends { readonly id: string; readonly frame: Buffer }> {
  readonly #items = new Transients<string, T>();
  readonly #maxCount: number;
  readonly #onRoom: () => void;
  #bytes = 0;

  constructor(maxCount: number, onRoom: () => void) {
    this.#maxCount = maxCount;
    this.#onRoom = onRoom;
  }

  add(item: T): T {
    this.#items.set(item.id, item);
    this.#bytes += item.frame.length;
    return item;
  }

  get(id: string): T | undefined {
    return this.#items.get(id);
  }

  /** A copy, because requests may be removed in a loop over it. */
  all(): T[] {
    return this.#items.values();
  }

  remove(id: string): void {
    const known = this.#items.get(id);
    if (!known) return;
    this.#bytes -= known.frame.length;
    this.#items.delete(id);
    this.#onRoom();
  }

  hasRoom(): boolean {
    return this.#items.size < this.#maxCount && this.#bytes < MAX_OUTSTANDING_BYTES;
  }
}

export type PostPorts = {
  readonly client: Client;
  readonly events: LinkEvents;
  readonly say: Say;
  readonly maxBytes: number;
};
export type PostOptions = {
  readonly id: string;
  readonly frame: Buffer;
  readonly headers: Record<string, string>;
  /** The headers of a GET that resumes the stream of the answer. */
  readonly streamHeaders: () => Record<string, string>;
  readonly onHead: (head: Head) => void;
  /** True when the link handles this refusal: the post then fails no request. */
  readonly isTaken: (head: Head, refusal: Refusal | undefined) => boolean;
  /** The request is answered or has failed. */
  readonly onDone: () => void;
};

/** A stream should end with its answer; one that does not is closed after this time. */
const LINGER_MS = 1_000;
const MAX_REFUSAL_BYTES = 1024 * 1024;

/**
 * One request as an HTTP POST: its answer comes as JSON or on a stream of its own, whose other messages belong to the request
 * too. The request is settled exactly once, unless the link takes its refusal.
 */
export class RequestPost {
  readonly #ports: PostPorts;
  readonly #options: PostOptions;
  readonly #sent: Sent;
  #stream: Stream | undefined;
  #linger: NodeJS.Timeout | undefined;

  constructor(ports: PostPorts, options: PostOptions) {
    this.#ports = ports;
    this.#options = options;
    this.#sent = ports.client.send({
      method: 'POST',
      headers: Object.assign({}, options.headers, CONTENT),
      body: bodyOf(options.frame),
      onHead: (head) => this.#answered(head),
      onTrouble: (trouble) => {
        this.#fail(ports.say.trouble(trouble));
        if (trouble.kind === 'unauthorized') ports.events.onUnauthorized(trouble.why);
      },
    });
  }

  get wasSent(): boolean {
    return this.#sent.wasSent;
  }

  get isAnswering(): boolean {
    return this.#stream !== undefined;
  }

  abort(): void {
    clearTimeout(this.#linger);
    this.#stream?.stop();
    this.#sent.abort();
  }

  fail(why: string): void {
    this.abort();
    this.#fail(this.#ports.say.lost(why));
  }

  #answered(head: Head): Reader {
    const { say, maxBytes } = this.#ports;
    const { status } = head;
    const type = String(head.headers['content-type'] ?? '');
    const stop = (): void => this.#sent.abort();
    this.#options.onHead(head);
    if (status >= 300) return collect(MAX_REFUSAL_BYTES, stop, (body) => this.#refused(head, refusalIn(body)));
    if (type.startsWith('text/event-stream')) return this.#streamed();
    if (type.startsWith('application/json')) return collect(maxBytes, stop, (body, why) => this.#read(body, why));
    return collect(MAX_REFUSAL_BYTES, stop, () =>
      this.#fail(say.unreadable(`HTTP ${status} with ${type ? `a body of ${type.slice(0, 60)}` : 'no body'}`)),
    );
  }

  #read(body: Buffer, why?: string): void {
    const { events, say } = this.#ports;
    const { id, onDone } = this.#options;
    if (why !== undefined) return this.#fail(why === TOO_LONG ? say.tooLarge(why) : say.lost(why));
    events.onMessage(body, id);
    events.onChunk();
    if (events.isPending(id)) this.#fail(say.unreadable('the body of its response is no answer to the request'));
    else onDone();
  }

  #streamed(): Reader {
    const { client, events, say, maxBytes } = this.#ports;
    const stream = new Stream({
      client,
      maxBytes,
      headers: this.#options.streamHeaders,
      mayBeginAnew: false,
      isWanted: () => events.isPending(this.#options.id),
      onChunk: events.onChunk,
      onMessage: (data) => this.#message(data),
      onOver: (why) => this.#fail(say.lost(why)),
      onTooLong: () => {
        this.#sent.abort();
        this.#fail(say.tooLarge(TOO_LONG));
      },
      onUnreachable: () => {}, // the next attempt may succeed, and the call has a deadline
    });
    this.#stream = stream;
    const { onChunk, onEnd, onBroken } = stream.reader();
    const ended = (next: () => void): void => {
      clearTimeout(this.#linger);
      next();
    };
    return { onChunk, onEnd: () => ended(onEnd), onBroken: (why) => ended(() => onBroken(why)) };
  }

  #message(data: Buffer): void {
    const { id, onDone } = this.#options;
    const { events } = this.#ports;
    events.onMessage(data, id);
    if (events.isPending(id) || this.#linger) return;
    this.#linger = setTimeout(() => this.abort(), LINGER_MS);
    this.#linger.unref();
    onDone();
  }

  #refused(head: Head, refusal: Refusal | undefined): void {
    if (!this.#options.isTaken(head, refusal)) this.#fail(this.#ports.say.status(head, refusal));
  }

  #fail(failure: Failure): void {
    this.#ports.events.onFailed(this.#options.id, failure);
    this.#options.onDone();
  }
}

// ── One-way messages ─────────────────────────────────────────────────────────

export type OneWayPorts = {
  readonly client: Client;
  readonly events: LinkEvents;
  readonly onDebug: (text: string) => void;
};
export type OneWay = {
  readonly frame: Buffer;
  readonly headers: Record<string, string>;
  readonly path?: string;
  readonly onRefused?: (status: number, refusal: Refusal | undefined) => void;
  readonly onDone?: () => void;
};

const MAX_POSTS = 1_000;
const MAX_BYTES = 16 * 1024 * 1024;
const MAX_BODY_BYTES = 64 * 1024;
const HEAD_MS = 30_000;

/**
 * Notifications, and answers to what the server asked. They are few and short-lived: a server that does not take them is
 * noticed by their number.
 */
export class OneWayPosts {
  readonly #ports: OneWayPorts;
  #posts = 0;
  #bytes = 0;

  constructor(ports: OneWayPorts) {
    this.#ports = ports;
  }

  hasRoom(): boolean {
    return this.#posts < MAX_POSTS && this.#bytes < MAX_BYTES;
  }

  send(message: OneWay): void {
    const { client, events, onDebug } = this.#ports;
    const { headers, path } = message;
    const done = this.#count(message);
    const sent = client.send({
      method: 'POST',
      headers: { ...headers, ...CONTENT },
      headMs: HEAD_MS,
      ...(path !== undefined && { path }),
      body: bodyOf(message.frame),
      onHead: ({ status }) =>
        collect(
          MAX_BODY_BYTES,
          () => sent.abort(),
          (body) => {
            if (status >= 300) onDebug(`it answered a message that needs no answer with HTTP ${status}`);
            if (status >= 300) message.onRefused?.(status, refusalIn(body));
            done();
          },
        ),
      onTrouble: ({ kind, why }) => {
        onDebug(`a message that needs no answer was lost: ${why}`);
        if (kind === 'unauthorized') events.onUnauthorized(why);
        if (kind === 'unsent') events.onUnreachable(why);
        done();
      },
    });
  }

  /** Counts the message until the returned function is called for the first time. */
  #count({ frame, onDone }: OneWay): () => void {
    this.#posts++;
    this.#bytes += frame.length;
    let isDone = false;
    return () => {
      if (isDone) return;
      isDone = true;
      this.#posts--;
      this.#bytes -= frame.length;
      onDone?.();
    };
  }
}
