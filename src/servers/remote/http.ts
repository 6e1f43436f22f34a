// The link to a server over Streamable HTTP: each message is a POST, each request is answered on its own response, and messages
// that belong to no request come on the stream of a GET. When the server has forgotten the session, a new one is opened: a
// request that was refused for it is sent again, once; one that was already being answered fails with an unknown outcome.

import type { Call } from '../../calls/call.ts';
import type { Era } from '../../protocol/eras.ts';
import type { Link, LinkEvents } from '../connection/link.ts';
import { type Client, ignore, type Sent } from './client.ts';
import type { Head } from './exchange.ts';
import { type Refusal, type Say, saysSessionGone } from './failures.ts';
import { OneWayPosts, Outstanding, RequestPost } from './posts.ts';
import { Stream } from './stream.ts';

export type HttpOptions = {
  readonly client: Client;
  readonly events: LinkEvents;
  readonly say: Say;
  readonly maxBytes: number;
  readonly maxPosts: number;
  /** How long the DELETE of the session may take. */
  readonly goodbyeMs: number;
  /** The headers of a request that repeat what its body says. */
  readonly headersOf: (call: Call) => Record<string, string>;
  readonly onDebug: (text: string) => void;
  /** The server answered the first `initialize` as one of 2024-11-05 does; `giveUp` if it is none. */
  readonly onLegacy: (request: Request, giveUp: () => void) => void;
};
export type Request = { readonly frame: Buffer; readonly id: string; readonly call: Call };

/** Without a post the request waits for the session. `epoch` is that of the session it was sent in. */
type Sending = Request & { epoch: number; isSecond: boolean; post: RequestPost | undefined };

/** How long requests that were not refused may still be answered after the session was forgotten. */
const LAST_WORDS_MS = 5_000;
const SESSION_ID = /^[\x21-\x7e]{1,1024}$/;
const FORGOTTEN = 'it forgot the session';

export class HttpLink implements Link {
  readonly #options: HttpOptions;
  readonly #sendings: Outstanding<Sending>;
  readonly #oneWay: OneWayPosts;
  #phase: 'opening' | 'open' | 'over' = 'opening';
  /** No session was opened yet: the server may be a legacy one. */
  #isFirst = true;
  /** The present session has answered a request: a server that forgets it before that forgets every session at once. */
  #isProven = false;
  /** Counts the sessions. */
  #epoch = 0;
  #session: string | undefined;
  #era: Era | undefined;
  /** Brings the messages that belong to no request. */
  #stream: Stream | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: HttpOptions) {
    this.#options = options;
    this.#sendings = new Outstanding(options.maxPosts, options.events.onRoom);
    this.#oneWay = new OneWayPosts(options);
  }

  // ── Requests ───────────────────────────────────────────────────────────────

  request(frame: Buffer, id: string, call: Call): void {
    const sending: Sending = { frame, id, call, epoch: this.#epoch, isSecond: false, post: undefined };
    this.#sendings.add(sending);
    if (this.#phase === 'open' || call.method === 'initialize') this.#start(sending);
  }

  drop(id: string): boolean {
    const post = this.#sendings.get(id)?.post;
    post?.abort();
    this.#sendings.remove(id);
    return post?.wasSent === true;
  }

  hasRoom(): boolean {
    return this.#phase === 'open' && this.#sendings.hasRoom();
  }

  #headers(): Record<string, string> {
    const headers: Record<string, string> = {};
    if (this.#session !== undefined) headers['mcp-session-id'] = this.#session;
    if (this.#era !== undefined) headers['mcp-protocol-version'] = this.#era;
    return headers;
  }

  #start(sending: Sending): void {
    const { id, frame, call } = sending;
    const isInitialize = call.method === 'initialize';
    const headers = this.#headers();
    sending.epoch = this.#epoch;
    sending.post = new RequestPost(this.#options, {
      id,
      frame,
      headers: Object.assign(this.#options.headersOf(call), headers),
      streamHeaders: () => headers,
      onHead: (head) => (isInitialize ? this.#begin(head) : this.#prove(head)),
      isTaken: (head, refusal) =>
        isInitialize ? this.#isLegacy(sending, head, refusal) : this.#isGone(sending, head, refusal),
      onDone: () => this.#sendings.remove(id),
    });
  }

  #begin({ status, headers }: Head): void {
    const given = headers['mcp-session-id'];
    if (status < 300) this.#session = typeof given === 'string' && SESSION_ID.test(given) ? given : undefined;
  }

  #prove({ status }: Head): void {
    if (status < 300) this.#isProven = true;
  }

  #isLegacy(sending: Sending, head: Head, refusal: Refusal | undefined): boolean {
    if (!this.#isFirst || ![400, 404, 405].includes(head.status)) return false;
    const { events, say, onLegacy } = this.#options;
    this.#sendings.remove(sending.id);
    onLegacy(sending, () => events.onFailed(sending.id, say.status(head, refusal)));
    return true;
  }

  #isGone(sending: Sending, { status }: Head, refusal: Refusal | undefined): boolean {
    const hadSession = sending.epoch !== this.#epoch || this.#session !== undefined;
    if (sending.isSecond || !hadSession || !saysSessionGone(status, refusal, sending.id)) return false;
    sending.isSecond = true;
    sending.post = undefined;
    this.#lose(sending.epoch);
    if (this.#phase === 'open') this.#start(sending);
    return true;
  }

  // ── The session ────────────────────────────────────────────────────────────

  negotiated(era: Era): void {
    this.#era = era;
  }

  /** The first message that learns of the loss has a new session opened; the others find it opening, or open. */
  #lose(lost: number): void {
    if (lost !== this.#epoch || this.#phase !== 'open') return;
    const { events } = this.#options;
    if (!this.#isProven) return events.onClosed('it forgets its sessions at once', false);
    this.#epoch++;
    this.#phase = 'opening';
    this.#isProven = false;
    this.#session = undefined;
    this.#era = undefined;
    this.#stream?.stop();
    for (const { post } of this.#sendings.all()) if (post?.isAnswering) post.fail(FORGOTTEN);
    this.#timer = setTimeout((epoch: number) => this.#endOlder(epoch), LAST_WORDS_MS, this.#epoch);
    events.onSessionLost();
  }

  #endOlder(than: number): void {
    for (const { post, epoch } of this.#sendings.all()) if (epoch < than) post?.fail(FORGOTTEN);
  }

  #opened(): void {
    if (this.#phase !== 'opening') return;
    const { client, maxBytes, events, onDebug } = this.#options;
    this.#phase = 'open';
    this.#isFirst = false;
    for (const sending of this.#sendings.all()) if (!sending.post) this.#start(sending);
    this.#stream = new Stream({
      client,
      maxBytes,
      headers: () => this.#headers(),
      mayBeginAnew: true,
      isWanted: () => this.#phase === 'open',
      onMessage: (data) => events.onMessage(data),
      onChunk: events.onChunk,
      onUnreachable: events.onUnreachable,
      onOver: (why) => onDebug(`it has no standing stream: ${why}`),
      onTooLong: () => events.onClosed('it sent a frame of more than x-troupe.maxFrameBytes', false),
    });
    this.#stream.open();
    events.onRoom();
  }

  // ── One-way messages ───────────────────────────────────────────────────────

  /** Before the session is open, only the notification that opens it is sent. */
  notify(frame: Buffer, method: string): void {
    const isOpening = method === 'notifications/initialized';
    if (!isOpening && this.#phase !== 'open') return;
    this.#send(frame, { 'mcp-method': method }, isOpening ? () => this.#opened() : () => {});
  }

  reply(frame: Buffer): boolean {
    if (this.#phase === 'open') this.#send(frame, {}, () => {});
    return this.#oneWay.hasRoom();
  }

  #send(frame: Buffer, headers: Record<string, string>, onDone: () => void): void {
    const epoch = this.#epoch;
    const hadSession = this.#session !== undefined;
    this.#oneWay.send({
      frame,
      headers: { ...this.#headers(), ...headers },
      onDone,
      onRefused: (status, refusal) => {
        if (hadSession && saysSessionGone(status, refusal)) this.#lose(epoch);
      },
    });
  }

  // ── The end ────────────────────────────────────────────────────────────────

  pause(): void {
    this.#options.client.pause();
  }

  resume(): void {
    this.#options.client.resume();
  }

  close(): void {
    const { client, events, goodbyeMs } = this.#options;
    const headers = this.#headers();
    const hadSession = this.#session !== undefined && this.#phase !== 'over';
    this.#phase = 'over';
    this.#stream?.stop();
    const done = (): void => events.onClosed('it was closed', false);
    this.#timer = setTimeout(done, hadSession ? goodbyeMs : 0);
    if (!hadSession) return;
    const sent: Sent = client.send({
      method: 'DELETE',
      headers,
      onTrouble: done,
      onHead: () => ignore({ abort: () => sent.abort() }, done),
    });
  }

  kill(): void {
    this.#phase = 'over';
    clearTimeout(this.#timer);
    this.#stream?.stop();
    for (const { post } of this.#sendings.all()) post?.abort();
    this.#options.client.destroy();
  }
}
