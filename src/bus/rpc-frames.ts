// JSON-RPC frames as NATS messages, and back: one message each, or a series of chunks for a frame that does not fit into one.
// Both ends of a session use this. Frames leave in the order in which they were given; a broken series yields no frame.

import { Empty, type Msg, type NatsConnection } from 'nats';
import { blobs } from './blobs.ts';
import { chunkBytes, digestOf, HEADER_ROOM, type Headers, maxPayload, type Outlet, sendOutcome } from './frames.ts';

/** `reply` goes with each message of a frame: the broker answers there when the message has no subscriber. */
export type Publish = (body: Uint8Array, headers?: Headers, reply?: string) => void;
export type FrameSender = {
  /** Undefined when the frame was published at once; else resolves when it was, with false if it never will be. */
  send(frame: Uint8Array, headers?: Headers, reply?: string): Promise<boolean> | undefined;
  /** Frames that wait are dropped. */
  stop(): void;
};

type Waiting = {
  readonly frame: Uint8Array;
  readonly headers: Headers | undefined;
  readonly reply: string | undefined;
  readonly settle: (isOut: boolean) => void;
};

export function frameSender(nc: NatsConnection, publish: Publish): FrameSender {
  const bus = { nc, blobs: blobs(nc, () => chunkBytes(nc)) };
  let waiting: Waiting[] = [];
  let isSending = false;
  let isStopped = false;

  async function sendLarge({ frame, headers, reply, settle }: Waiting): Promise<void> {
    isSending = true;
    const guarded: Publish = (body, more) => {
      if (!isStopped) publish(body, more, reply);
    };
    const result = Buffer.from(frame.buffer, frame.byteOffset, frame.byteLength);
    try {
      await sendOutcome(bus, chunkOutlet(guarded, headers), { ok: true, result, isError: false });
      settle(!isStopped);
    } catch {
      settle(false); // disconnected in the middle of the series: the reader drops what it has of it
    }
    isSending = false;
    next();
  }

  function next(): void {
    for (;;) {
      const first = isSending ? undefined : waiting.shift();
      if (!first) return;
      if (!fits(first.frame)) return void sendLarge(first);
      publish(first.frame, first.headers, first.reply);
      first.settle(true);
    }
  }

  const fits = (frame: Uint8Array): boolean => frame.length + HEADER_ROOM <= maxPayload(nc);

  return {
    send(frame, headers, reply) {
      if (isStopped) return Promise.resolve(false);
      if (!isSending && fits(frame)) {
        publish(frame, headers, reply);
        return undefined;
      }
      return new Promise((settle) => {
        waiting.push({ frame, headers, reply, settle });
        next();
      });
    },
    stop() {
      isStopped = true;
      for (const { settle } of waiting) settle(false);
      waiting = [];
    },
  };
}

/** A frame's own headers go with its first message. */
function chunkOutlet(publish: Publish, own: Headers | undefined): Outlet {
  let seq = 0;
  return {
    isStream: false,
    accepts: ['chunk'],
    send(kind, body, headers) {
      seq += 1;
      publish(body, { ...(seq === 1 && own), ...headers, 'Mcp-Frame': kind, 'Mcp-Seq': String(seq) });
    },
    end: () => publish(Empty),
  };
}

// ── Back into frames ─────────────────────────────────────────────────────────

export type JoinerOptions = {
  readonly maxBytes: number;
  readonly onFrame: (frame: Buffer) => void;
  /** Once for each series that yields no frame. */
  readonly onBroken: (why: string) => void;
};

type Series = {
  readonly count: number;
  readonly bytes: number;
  readonly digest: string;
  size: number;
  parts: Buffer[];
};

export function frameJoiner({ maxBytes, onFrame, onBroken }: JoinerOptions): (msg: Msg) => void {
  let series: Series | undefined;

  function begin(msg: Msg, count: number): Series | undefined {
    const [bytes, digest] = [Number(msg.headers?.get('Mcp-Size')), msg.headers?.get('Digest') ?? ''];
    if (!Number.isSafeInteger(bytes) || count > bytes) return give('a series of chunks without its Mcp-Size');
    if (bytes > maxBytes) return give(`a message of ${bytes} bytes; the limit is ${maxBytes}`);
    return { count, bytes, digest, size: 0, parts: [] };
  }

  function give(why: string): undefined {
    series = undefined;
    onBroken(why);
  }

  function add(msg: Msg): void {
    const [at, count] = placeOf(msg);
    if (at === 1) series = begin(msg, count);
    if (!series) return; // the rest of a series that was given up
    if (at !== series.parts.length + 1 || count !== series.count) return give('a series of chunks with a gap');
    series.parts.push(bytesOf(msg));
    series.size += msg.data.length;
    if (series.size > series.bytes) return give('more chunks than its Mcp-Size says');
    if (at < count) return;
    const { parts, digest } = series;
    series = undefined;
    const whole = Buffer.concat(parts);
    if (digestOf(whole) === digest) onFrame(whole);
    else onBroken('a series of chunks whose Digest is another');
  }

  return (msg) => {
    if (msg.headers?.get('Mcp-Frame') === 'chunk') add(msg);
    else if (msg.data.length > 0) onFrame(bytesOf(msg)); // an empty message follows a series, which its count has ended already
  };
}

const bytesOf = ({ data }: Msg): Buffer => Buffer.from(data.buffer, data.byteOffset, data.byteLength);

function placeOf(msg: Msg): [at: number, count: number] {
  const place = /^(\d{1,9})\/(\d{1,9})$/.exec(msg.headers?.get('Mcp-Chunk') ?? '');
  return place ? [Number(place[1]), Number(place[2])] : [0, 0];
}
