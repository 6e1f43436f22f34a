// One request as an HTTP POST: its answer comes as JSON or on a stream of its own, and what else that stream brings belongs
// to it. Whatever happens, the request is settled once, or its refusal is left to whoever knows the session.

import type { LinkEvents } from '../link.ts';
import type { Client, Sent } from './client.ts';
import { collect, type Head, type Reader, TOO_LONG } from './exchange.ts';
import { type Refusal, refusalIn, type Say } from './failures.ts';
import { createStream, type Stream } from './stream.ts';

export type PostWorld = {
  readonly client: Client;
  readonly events: LinkEvents;
  readonly say: Say;
  readonly maxBytes: number;
};
export type PostOptions = {
  readonly id: string;
  readonly frame: Buffer;
  readonly headers: Record<string, string>;
  /** Of the GETs that take its stream up again. */
  readonly streamHeaders: () => Record<string, string>;
  readonly onHead: (head: Head) => void;
  /** True when this refusal is somebody else's to deal with. */
  readonly isTaken: (status: number, refusal: Refusal | undefined) => boolean;
  /** Nothing more is to be done for it. */
  readonly onDone: () => void;
};
export type Post = { abort(): void; fail(why: string): void; readonly wasSent: boolean; readonly isAnswering: boolean };

/** A stream should end with its answer; one that does not is not kept for long. */
const LINGER_MS = 1_000;
const MAX_REFUSAL_BYTES = 1024 * 1024;

export function postRequest({ client, events, say, maxBytes }: PostWorld, options: PostOptions): Post {
  const { id, frame, headers, onDone } = options;
  let stream: Stream | undefined;
  let linger: NodeJS.Timeout | undefined;
  const sent: Sent = client.send({
    method: 'POST',
    headers: { ...headers, accept: 'application/json, text/event-stream', 'content-type': 'application/json' },
    body: frame.subarray(0, -1), // without the newline that ends a frame elsewhere
    onHead: answered,
    onTrouble(trouble) {
      fail(say.trouble(trouble));
      if (trouble.kind === 'unauthorized') events.onUnauthorized(trouble.why);
    },
  });

  function answered(head: Head): Reader {
    const { status } = head;
    const type = String(head.headers['content-type'] ?? '');
    options.onHead(head);
    if (status >= 300) return collect(MAX_REFUSAL_BYTES, sent.abort, (body) => refused(status, refusalIn(body)));
    if (type.startsWith('text/event-stream')) return streamed();
    if (type.startsWith('application/json')) return collect(maxBytes, sent.abort, read);
    return collect(MAX_REFUSAL_BYTES, sent.abort, () =>
      fail(say.unreadable(`HTTP ${status} with ${type ? `a body of ${type.slice(0, 60)}` : 'no body'}`)),
    );
  }

  function read(body: Buffer, why?: string): void {
    if (why !== undefined) return fail(why === TOO_LONG ? say.tooLarge(why) : say.lost(why));
    events.onMessage(body, id);
    events.onChunk();
    if (events.isPending(id)) fail(say.unreadable('the body of its response is no answer to the request'));
    else onDone();
  }

  function streamed(): Reader {
    stream = createStream({
      ...{ client, maxBytes, headers: options.streamHeaders, onChunk: events.onChunk, isStanding: false },
      isWanted: () => events.isPending(id),
      onMessage(data) {
        events.onMessage(data, id);
        if (events.isPending(id) || linger) return;
        linger = setTimeout(abort, LINGER_MS);
        linger.unref();
        onDone();
      },
      onOver: (why) => fail(say.lost(why)),
      onTooLong() {
        sent.abort();
        fail(say.tooLarge(TOO_LONG));
      },
      onUnreachable: () => {}, // the next attempt may succeed, and the call has a deadline
    });
    const { onChunk, onEnd, onBroken } = stream.reader();
    const ended = (next: () => void): void => {
      clearTimeout(linger);
      next();
    };
    return { onChunk, onEnd: () => ended(onEnd), onBroken: (why) => ended(() => onBroken(why)) };
  }

  function refused(status: number, refusal: Refusal | undefined): void {
    if (!options.isTaken(status, refusal)) fail(say.status(status, refusal));
  }

  function fail(failure: ReturnType<Say['lost']>): void {
    events.onFailed(id, failure);
    onDone();
  }

  function abort(): void {
    clearTimeout(linger);
    stream?.stop();
    sent.abort();
  }

  return {
    abort,
    fail(why) {
      abort();
      fail(say.lost(why));
    },
    get wasSent() {
      return sent.wasSent;
    },
    get isAnswering() {
      return stream !== undefined;
    },
  };
}
