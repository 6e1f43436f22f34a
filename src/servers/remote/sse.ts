// The link to a server over HTTP+SSE, as of 2024-11-05: one GET brings everything the server says, beginning with the path
// that takes our messages. There is one stream only, so no message on it belongs to a request; with it the session ends.

import type { Failure } from '../../protocol/failures.ts';
import type { Link, LinkEvents } from '../connection/link.ts';
import { type Address, pathWithin } from './address.ts';
import { type Client, ignore, type Sent } from './client.ts';
import { readEvents } from './events.ts';
import { collect, type Head, type Reader } from './exchange.ts';
import { refusalIn, type Say } from './failures.ts';
import { bodyOf, OneWayPosts, Outstanding } from './posts.ts';

export type SseOptions = {
  readonly client: Client;
  readonly address: Address;
  readonly events: LinkEvents;
  readonly say: Say;
  readonly maxBytes: number;
  readonly maxPosts: number;
  readonly onDebug: (text: string) => void;
  /** The server gave no such stream. */
  readonly onRefused: (why: string) => void;
};

type Sending = { readonly id: string; readonly frame: Buffer; sent: Sent | undefined };

export class SseLink implements Link {
  readonly #options: SseOptions;
  readonly #sendings: Outstanding<Sending>;
  readonly #oneWay: OneWayPosts;
  readonly #stream: Sent;
  /** The path that takes our messages, once the server has named it. */
  #endpoint: string | undefined;
  #isOver = false;

  constructor(options: SseOptions) {
    this.#options = options;
    this.#sendings = new Outstanding(options.maxPosts, options.events.onRoom);
    this.#oneWay = new OneWayPosts(options);
    this.#stream = options.client.send({
      method: 'GET',
      headers: { accept: 'text/event-stream' },
      onHead: (head) => this.#answered(head),
      onTrouble: ({ kind, why }) => {
        if (kind === 'unauthorized') options.events.onUnauthorized(why);
        else options.onRefused(`${options.address.where}: ${why}`);
      },
    });
  }

  // ── Down ───────────────────────────────────────────────────────────────────

  #answered({ status, headers }: Head): Reader {
    if (status === 200 && String(headers['content-type']).startsWith('text/event-stream')) return this.#reader();
    const why = `it answered the GET of its events with HTTP ${status}`;
    return ignore(this.#stream, () => this.#options.onRefused(why));
  }

  #reader(): Reader {
    const { maxBytes, events } = this.#options;
    const parser = readEvents({
      maxBytes,
      onRetry: () => {}, // the session ends with its stream, so there is nothing to come back to
      onEvent: (type, data) => {
        if (type === 'endpoint' && this.#endpoint === undefined) this.#located(String(data ?? ''));
        else if (type === 'message' && data && !this.#isOver) events.onMessage(data);
      },
      onTooLong: () => this.#over('it sent a frame of more than x-troupe.maxFrameBytes'),
    });
    return {
      onChunk(chunk) {
        parser.push(chunk);
        events.onChunk();
      },
      onEnd: () => this.#over('it ended the stream of its events'),
      onBroken: (why) => this.#over(`the stream of its events broke: ${why}`),
    };
  }

  #located(pointer: string): void {
    const { address, events } = this.#options;
    this.#endpoint = pathWithin(address, pointer);
    if (this.#endpoint === undefined)
      return this.#over('it wants our messages at another origin, and we do not send them there');
    for (const sending of this.#sendings.all()) this.#post(sending);
    events.onRoom();
  }

  #over(why: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#stream.abort();
    this.#options.events.onClosed(why, false);
  }

  // ── Up ─────────────────────────────────────────────────────────────────────

  request(frame: Buffer, id: string): void {
    const sending = this.#sendings.add({ id, frame, sent: undefined });
    if (this.#endpoint !== undefined) this.#post(sending);
  }

  #post(sending: Sending): void {
    const { id } = sending;
    const { client, address, events, say, maxBytes } = this.#options;
    const fail = (failure: Failure): void => {
      this.#sendings.remove(id);
      events.onFailed(id, failure);
    };
    const sent: Sent = client.send({
      method: 'POST',
      path: this.#endpoint ?? address.path,
      headers: { 'content-type': 'application/json' },
      body: bodyOf(sending.frame),
      onHead: (head) =>
        collect(
          maxBytes,
          () => sent.abort(),
          (body) => {
            if (head.status >= 300) fail(say.status(head, refusalIn(body)));
            else this.#sendings.remove(id); // taken; its answer comes on the stream
          },
        ),
      onTrouble: (trouble) => {
        fail(say.trouble(trouble));
        if (trouble.kind === 'unauthorized') events.onUnauthorized(trouble.why);
      },
    });
    sending.sent = sent;
  }

  notify(frame: Buffer): void {
    if (this.#endpoint !== undefined && !this.#isOver) this.#oneWay.send({ frame, headers: {}, path: this.#endpoint });
  }

  reply(frame: Buffer): boolean {
    this.notify(frame);
    return this.#oneWay.hasRoom();
  }

  drop(id: string): boolean {
    const known = this.#sendings.get(id);
    if (!known) return true; // it was taken long ago
    known.sent?.abort();
    this.#sendings.remove(id);
    return known.sent?.wasSent === true;
  }

  negotiated(): void {}

  hasRoom(): boolean {
    return this.#endpoint !== undefined && this.#sendings.hasRoom();
  }

  // ── The end ────────────────────────────────────────────────────────────────

  pause(): void {
    this.#options.client.pause();
  }

  resume(): void {
    this.#options.client.resume();
  }

  close(): void {
    setImmediate(() => this.#over('it was closed'));
  }

  kill(): void {
    this.#isOver = true;
    this.#options.client.destroy();
  }
}
