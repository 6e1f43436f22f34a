// One stream of server-sent events that outlives its connections: when a connection ends before the stream does, it is
// resumed by GET from the last event that came, after the pause the server asked for.

import { type Client, ignore, type Sent } from './client.ts';
import { readEvents } from './events.ts';
import type { Head, Reader } from './exchange.ts';

export type StreamOptions = {
  readonly client: Client;
  readonly maxBytes: number;
  /** The headers of the GET that resumes the stream. */
  readonly headers: () => Record<string, string>;
  readonly onMessage: (data: Buffer) => void;
  readonly onChunk: () => void;
  /** Whether anything is still to come. */
  readonly isWanted: () => boolean;
  /** Whether the stream can be opened again when no event gave an id: that of a request cannot, its answer would be missed. */
  readonly mayBeginAnew: boolean;
  /** The stream will not be resumed. */
  readonly onOver: (why: string) => void;
  readonly onTooLong: () => void;
  /** The server could not be reached. */
  readonly onUnreachable: (why: string) => void;
};

/** The pauses while nothing comes and the server asked for none. */
const PAUSES_MS = [500, 1_000, 2_000, 5_000, 10_000, 30_000];
/** Whatever the server asked for: it may be asked four times a second, and is not left for longer than ten minutes. */
const SHORTEST_MS = 250;
const LONGEST_MS = 600_000;
/** An id that may stand in a header. */
const USABLE_ID = /^[\x21-\x7e]([\x20-\x7e]{0,1022}[\x21-\x7e])?$/;

export class Stream {
  readonly #options: StreamOptions;
  #lastId: string | undefined;
  #retryMs: number | undefined;
  /** How many connections in a row brought no event. */
  #barren = 0;
  #timer: NodeJS.Timeout | undefined;
  #sent: Sent | undefined;
  #isStopped = false;

  constructor(options: StreamOptions) {
    this.#options = options;
  }

  /** Takes the events of one connection. */
  reader(): Reader {
    const { maxBytes, onMessage, onChunk, onTooLong } = this.#options;
    const events = readEvents({
      maxBytes,
      onRetry: (ms) => {
        this.#retryMs = Math.min(ms, LONGEST_MS);
      },
      onEvent: (type, data, id) => {
        this.#barren = 0;
        if (id !== undefined) this.#lastId = USABLE_ID.test(id) ? id : undefined;
        if (type === 'message' && data && !this.#isStopped) onMessage(data);
      },
      onTooLong: () => {
        this.stop();
        onTooLong();
      },
    });
    return {
      onChunk: (chunk) => {
        events.push(chunk);
        onChunk();
      },
      onEnd: () => this.#again('its stream ended without an answer'),
      onBroken: (why) => this.#again(why),
    };
  }

  open(): void {
    if (this.#isStopped) return;
    const { client, headers, isWanted, onUnreachable } = this.#options;
    if (!isWanted()) return this.stop();
    this.#sent = client.send({
      method: 'GET',
      headers: {
        ...headers(),
        accept: 'text/event-stream',
        ...(this.#lastId !== undefined && { 'last-event-id': this.#lastId }),
      },
      onHead: (head) => this.#answered(head),
      onTrouble: ({ kind, why }) => {
        if (kind !== 'unsent' && kind !== 'broken') return this.#over(why);
        if (kind === 'unsent') onUnreachable(why);
        this.#again(why);
      },
    });
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    this.#sent?.abort();
  }

  #answered({ status, headers }: Head): Reader {
    const isStream = String(headers['content-type']).startsWith('text/event-stream');
    if (status === 200 && isStream) return this.reader();
    const why = `it answered the GET of its stream with HTTP ${status}`;
    const ended = (): void => (status >= 500 || status === 429 ? this.#again(why) : this.#over(why));
    return ignore({ abort: () => this.#sent?.abort() }, ended);
  }

  #again(why: string): void {
    if (this.#isStopped) return;
    const { isWanted, mayBeginAnew } = this.#options;
    if (!isWanted()) return this.stop();
    if (this.#lastId === undefined && !mayBeginAnew) return this.#over(why);
    const pause = this.#barren === 0 ? 0 : (PAUSES_MS[Math.min(this.#barren, PAUSES_MS.length) - 1] ?? 0);
    this.#barren++;
    const pauseMs = Math.max(this.#retryMs ?? PAUSES_MS[0] ?? 0, pause, SHORTEST_MS);
    this.#timer = setTimeout(() => this.open(), pauseMs);
  }

  #over(why: string): void {
    if (this.#isStopped) return;
    this.stop();
    this.#options.onOver(why);
  }
}
