// One stream of server-sent events that outlives its connections: when a connection ends before the stream does, it is
// taken up again by GET from the last event that came, after the pause the server asked for.

import { type Client, ignore, type Sent } from './client.ts';
import { readEvents } from './events.ts';
import type { Head, Reader } from './exchange.ts';

export type StreamOptions = {
  readonly client: Client;
  readonly maxBytes: number;
  /** Of the GET that takes the stream up again. */
  readonly headers: () => Record<string, string>;
  readonly onMessage: (data: Buffer) => void;
  readonly onChunk: () => void;
  /** Whether anything is still to come. */
  readonly isWanted: () => boolean;
  /** A stream of its own may begin anew when no event gave an id; the stream of a request may not. */
  readonly isStanding: boolean;
  /** It will not be taken up again. */
  readonly onOver: (why: string) => void;
  readonly onTooLong: () => void;
  /** The server could not be reached. */
  readonly onUnreachable: () => void;
};
export type Stream = ReturnType<typeof createStream>;

/** The pauses while nothing comes and the server asked for none. */
const PAUSES_MS = [500, 1_000, 2_000, 5_000, 10_000, 30_000];
const SHORTEST_MS = 20;
const LONGEST_MS = 3_600_000;
/** What may stand in a header. */
const USABLE_ID = /^[\x21-\x7e]([\x20-\x7e]{0,1022}[\x21-\x7e])?$/;

export function createStream(options: StreamOptions) {
  const { client, isStanding, isWanted, onOver } = options;
  let lastId: string | undefined;
  let retryMs: number | undefined;
  let barren = 0;
  let timer: NodeJS.Timeout | undefined;
  let sent: Sent | undefined;
  let isStopped = false;

  /** Takes the events of one connection. */
  function reader(): Reader {
    const events = readEvents({
      maxBytes: options.maxBytes,
      onRetry: (ms) => {
        retryMs = Math.min(ms, LONGEST_MS);
      },
      onEvent(type, data, id) {
        barren = 0;
        if (id !== undefined) lastId = USABLE_ID.test(id) ? id : undefined;
        if (type === 'message' && data && !isStopped) options.onMessage(data);
      },
      onTooLong() {
        stop();
        options.onTooLong();
      },
    });
    return {
      onChunk(chunk) {
        events.push(chunk);
        options.onChunk();
      },
      onEnd: () => again('its stream ended without an answer'),
      onBroken: again,
    };
  }

  function again(why: string): void {
    if (isStopped) return;
    if (!isWanted()) return stop();
    if (lastId === undefined && !isStanding) return over(why);
    const pause = barren === 0 ? 0 : (PAUSES_MS[Math.min(barren, PAUSES_MS.length) - 1] ?? 0);
    barren++;
    timer = setTimeout(open, Math.max(retryMs ?? PAUSES_MS[0] ?? 0, pause, SHORTEST_MS));
  }

  function open(): void {
    if (isStopped) return;
    if (!isWanted()) return stop();
    sent = client.send({
      method: 'GET',
      headers: {
        ...options.headers(),
        accept: 'text/event-stream',
        ...(lastId !== undefined && { 'last-event-id': lastId }),
      },
      onHead: answered,
      onTrouble({ kind, why }) {
        if (kind !== 'unsent' && kind !== 'broken') return over(why);
        if (kind === 'unsent') options.onUnreachable();
        again(why);
      },
    });
  }

  function answered({ status, headers }: Head): Reader {
    const isStream = String(headers['content-type']).startsWith('text/event-stream');
    if (status === 200 && isStream) return reader();
    const why = `it answered the GET of its stream with HTTP ${status}`;
    return ignore(sent ?? NOTHING, () => (status >= 500 || status === 429 ? again(why) : over(why)));
  }

  function over(why: string): void {
    if (isStopped) return;
    stop();
    onOver(why);
  }

  function stop(): void {
    isStopped = true;
    clearTimeout(timer);
    sent?.abort();
  }

  return { reader, open, stop };
}

const NOTHING = { abort: () => {} };
