// What a door sends back: one reply to a plain request, frames to a caller that asked for a stream, errors with headers.
// Replies go only to inboxes: a caller could name any subject, and the daemon may publish where that caller may not.

import { createInbox, Empty, type Msg, type NatsConnection, type Subscription } from 'nats';
import type { Outcome, Signal } from '../calls/call.ts';
import { realWorld, type World } from '../world/world.ts';
import { blobs } from './blobs.ts';
import { isToldElsewhere } from './bounds.ts';
import {
  accepted,
  chunkBytes,
  type FrameKind,
  HEADER_ROOM,
  type Headers,
  json,
  maxPayload,
  type Outlet,
  sendOutcome,
  toHeaders,
} from './frames.ts';
import { isInbox } from './subjects.ts';

export type ReplyOptions = {
  readonly keepAliveMs?: number;
  /** How much `Troupe-Object` may bring in. */
  readonly maxRequestBytes?: number;
  /** A reply that could not be sent because the connection is closed. */
  readonly onLost?: (error: unknown) => void;
  readonly world?: World;
};

export type ReplyStream = {
  ack(requestId: string): void;
  signal(signal: Signal): void;
  /** Resolves when the broker has had its say on whether the caller still listens: if not, `onGone` has been called. */
  confirm(): Promise<void>;
  /** Ends the stream; nothing is sent after it. */
  end(outcome: Outcome): Promise<void> | undefined;
};

export type Replies = {
  /** Undefined when the reply is sent already, a promise when it is large. Never throws or rejects. */
  answer(msg: Msg, outcome: Outcome): Promise<void> | undefined;
  /** `onGone` is called once if the caller no longer listens; the stream is silent from then on. */
  stream(msg: Msg, onGone: () => void): ReplyStream;
  /** The body of a request; that of a large one lies in the object store. */
  requestBody(msg: Msg): Buffer | Promise<Buffer>;
  close(): void;
};

export function replies(nc: NatsConnection, options: ReplyOptions = {}): Replies {
  const { keepAliveMs = 15_000, maxRequestBytes = 64 * 2 ** 20, onLost = () => {}, world = realWorld } = options;
  const bus = { nc, blobs: blobs(nc, () => chunkBytes(nc)) };
  const listening = listeners(nc);

  const publish = (msg: Msg, body: Uint8Array, headers?: Headers, reply?: string): void => {
    if (!msg.reply || !isInbox(msg.reply)) return;
    try {
      if (!headers) nc.publish(msg.reply, body);
      else nc.publish(msg.reply, body, { headers: toHeaders(headers), ...(reply && { reply }) });
    } catch (error) {
      // Closed or draining: the caller's own time-out tells it. What the bounds refuse was counted where they are kept.
      if (!isToldElsewhere(error)) onLost(error);
    }
  };
  const guarded = (sending: Promise<void> | undefined): Promise<void> | undefined => sending?.catch(onLost);

  return {
    answer(msg, outcome) {
      // The hot path: a result that fits goes out as it came in, without a header.
      if (outcome.ok && !outcome.isError && outcome.result.length <= maxPayload(nc)) {
        publish(msg, outcome.result);
        return undefined;
      }
      return guarded(sendOutcome(bus, plainOutlet(msg, publish), outcome));
    },
    stream(msg, onGone) {
      const outlet = streamOutlet(msg, publish);
      const stop = (): void => {
        stopKeepAlive();
        listening.remove(token);
      };
      const token = listening.add(() => {
        stop();
        outlet.isOpen = false;
        onGone();
      });
      // Not empty, for that would be the end. The reply subject makes the broker say when the caller no longer listens.
      const keepAlive = (): void => outlet.send('ka', Buffer.from('{}'), {}, listening.subject(token));
      const stopKeepAlive = world.every(keepAliveMs, keepAlive);
      return {
        ack: (requestId) => outlet.send('ack', json({ requestId })),
        signal: (signal) => outlet.send(signal.type, signalBody(signal, maxPayload(nc))),
        confirm() {
          keepAlive();
          return nc.flush(); // the broker answers in order: what it says of the frame comes before the end of the flush
        },
        end(outcome) {
          stop();
          return guarded(sendOutcome(bus, outlet, outcome));
        },
      };
    },
    requestBody(msg) {
      // One that is there and names nothing is refused: without its arguments the call would be another one.
      if (msg.headers?.has('Troupe-Object')) return bus.blobs.get(msg.headers.get('Troupe-Object'), maxRequestBytes);
      return Buffer.from(msg.data.buffer, msg.data.byteOffset, msg.data.byteLength);
    },
    close: listening.close,
  };
}

type Publish = (msg: Msg, body: Uint8Array, headers?: Headers, reply?: string) => void;

function plainOutlet(msg: Msg, publish: Publish): Outlet {
  let seq = 0;
  return {
    isStream: false,
    accepts: accepted(msg),
    send: (kind, body, headers) =>
      publish(msg, body, kind === 'chunk' ? { ...headers, 'Mcp-Frame': kind, 'Mcp-Seq': String(++seq) } : headers),
    end: () => publish(msg, Empty),
  };
}

function streamOutlet(msg: Msg, publish: Publish) {
  let seq = 0;
  const outlet = {
    isOpen: true,
    isStream: true,
    accepts: accepted(msg),
    send(kind: FrameKind, body: Uint8Array, headers: Headers = {}, reply?: string) {
      if (outlet.isOpen) publish(msg, body, { 'Mcp-Frame': kind, 'Mcp-Seq': String(++seq), ...headers }, reply);
    },
    end() {
      if (outlet.isOpen) publish(msg, Empty);
      outlet.isOpen = false;
    },
  };
  return outlet;
}

function signalBody(signal: Signal, limit: number): Buffer {
  if (signal.type !== 'log') {
    const { type: _, ...about } = signal;
    const body = json(about);
    // A frame that is not sent would be missed by its number: rather the number of a progress without its words.
    return body.length + HEADER_ROOM <= limit ? body : json({ ...about, message: undefined });
  }
  if (signal.params.length + HEADER_ROOM <= limit) return signal.params;
  const data = `a log message of ${signal.params.length} bytes, too large for the bus`;
  return json({ level: signal.level, logger: 'troupe', data });
}

export type Listeners = ReturnType<typeof listeners>;

/** One inbox for all who listen: the broker answers 503 there when a frame for one of them has no subscriber. */
export function listeners(nc: NatsConnection) {
  const inbox = createInbox();
  const gone = new Map<string, () => void>();
  let next = 0;
  let subscription: Subscription | undefined;
  const onMessage = (_: unknown, msg: Msg): void => {
    if (msg.headers?.code === 503) gone.get(msg.subject.slice(inbox.length + 1))?.();
  };
  return {
    add(onGone: () => void): string {
      if (!subscription && !nc.isDraining() && !nc.isClosed())
        subscription = nc.subscribe(`${inbox}.*`, { callback: onMessage });
      const token = String(next++);
      gone.set(token, onGone);
      return token;
    },
    remove: (token: string): void => void gone.delete(token),
    subject: (token: string): string => `${inbox}.${token}`,
    close: (): void => subscription?.unsubscribe(),
  };
}
