// The link to a server over HTTP+SSE, as of 2024-11-05: one GET brings everything the server says, beginning with the place
// that takes our messages. There is one stream only, so nothing it brings belongs to a request; with it the session ends.

import type { Link, LinkEvents } from '../link.ts';
import { type Address, pathWithin } from './address.ts';
import { type Client, ignore, type Sent } from './client.ts';
import { readEvents } from './events.ts';
import { collect, type Head, type Reader } from './exchange.ts';
import { refusalIn, type Say } from './failures.ts';
import { createOutstanding } from './outstanding.ts';
import { createSidePosts } from './side.ts';

export type SseOptions = {
  readonly client: Client;
  readonly address: Address;
  readonly events: LinkEvents;
  readonly say: Say;
  readonly maxBytes: number;
  readonly maxPosts: number;
  readonly onDebug: (text: string) => void;
  /** It gave no such stream. */
  readonly onRefused: (why: string) => void;
};

type Sending = { readonly frame: Buffer; sent: Sent | undefined };

export function sseLink(options: SseOptions): Link {
  const { client, address, events, say } = options;
  const side = createSidePosts(options);
  const sendings = createOutstanding<Sending>(options.maxPosts, events.onRoom);
  let endpoint: string | undefined;
  let isOver = false;

  const stream = client.send({
    ...{ method: 'GET', headers: { accept: 'text/event-stream' } },
    onHead: answered,
    onTrouble({ kind, why }) {
      if (kind === 'unauthorized') events.onUnauthorized(why);
      else options.onRefused(`${address.where}: ${why}`);
    },
  });

  function answered({ status, headers }: Head): Reader {
    if (status === 200 && String(headers['content-type']).startsWith('text/event-stream')) return reader();
    return ignore(stream, () => options.onRefused(`it answered the GET of its events with HTTP ${status}`));
  }

  function reader(): Reader {
    const parser = readEvents({
      maxBytes: options.maxBytes,
      onRetry: () => {}, // the session is gone with its stream, so there is nothing to come back to
      onEvent(type, data) {
        if (type === 'endpoint' && endpoint === undefined) located(String(data ?? ''));
        else if (type === 'message' && data && !isOver) events.onMessage(data);
      },
      onTooLong: () => over('it sent a frame of more than x-troupe.maxFrameBytes'),
    });
    return {
      onChunk(chunk) {
        parser.push(chunk);
        events.onChunk();
      },
      onEnd: () => over('it ended the stream of its events'),
      onBroken: (why) => over(`the stream of its events broke: ${why}`),
    };
  }

  function located(pointer: string): void {
    endpoint = pathWithin(address, pointer);
    if (endpoint === undefined) return over('it wants our messages at another origin, and we do not send them there');
    for (const [id, sending] of sendings.entries()) post(id, sending);
    events.onRoom();
  }

  function over(why: string): void {
    if (isOver) return;
    isOver = true;
    stream.abort();
    events.onClosed(why, false);
  }

  function post(id: string, sending: Sending): void {
    const path = endpoint ?? address.path;
    const fail = (failure: ReturnType<Say['lost']>): void => {
      sendings.remove(id);
      events.onFailed(id, failure);
    };
    const sent: Sent = client.send({
      ...{ method: 'POST', path, headers: { 'content-type': 'application/json' }, body: sending.frame.subarray(0, -1) },
      onHead: ({ status }) =>
        collect(
          options.maxBytes,
          () => sent.abort(),
          (body) => {
            if (status >= 300) fail(say.status(status, refusalIn(body)));
            else sendings.remove(id); // taken; its answer comes on the stream
          },
        ),
      onTrouble(trouble) {
        fail(say.trouble(trouble));
        if (trouble.kind === 'unauthorized') events.onUnauthorized(trouble.why);
      },
    });
    sending.sent = sent;
  }

  function sideways(frame: Buffer): void {
    if (endpoint !== undefined && !isOver) side.send({ frame, headers: {}, path: endpoint });
  }

  return {
    request(frame, id) {
      const sending = sendings.add(id, { frame, sent: undefined });
      if (endpoint !== undefined) post(id, sending);
    },
    notify: sideways,
    reply(frame) {
      sideways(frame);
      return side.hasRoom();
    },
    drop(id) {
      const known = sendings.get(id);
      if (!known) return true; // it was taken long ago
      known.sent?.abort();
      sendings.remove(id);
      return known.sent?.wasSent === true;
    },
    negotiated: () => {},
    hasRoom: () => endpoint !== undefined && sendings.hasRoom(),
    pause: client.pause,
    resume: client.resume,
    close: () => void setImmediate(over, 'it was closed'),
    kill() {
      isOver = true;
      client.destroy();
    },
  };
}
