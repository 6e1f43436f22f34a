// The link to a server over Streamable HTTP: each message is a POST, each request is answered on its own response, and what
// belongs to no request comes on a standing GET. When the server has forgotten the session, a new one takes its place:
// who was refused is sent again, once, on the new one; who was already being answered is told that nobody knows.

import type { Call } from '../../calls/call.ts';
import type { Era } from '../../protocol/eras.ts';
import type { Link, LinkEvents } from '../link.ts';
import { type Client, ignore, type Sent } from './client.ts';
import type { Head } from './exchange.ts';
import { type Refusal, type Say, saysSessionGone } from './failures.ts';
import { createOutstanding } from './outstanding.ts';
import { type Post, postRequest } from './post.ts';
import { createSidePosts } from './side.ts';
import { createStream, type Stream } from './stream.ts';

export type HttpOptions = {
  readonly client: Client;
  readonly events: LinkEvents;
  readonly say: Say;
  readonly maxBytes: number;
  readonly maxPosts: number;
  /** How long the DELETE of the session may take. */
  readonly goodbyeMs: number;
  /** What the headers of a request say of its body. */
  readonly headersOf: (call: Call) => Record<string, string>;
  readonly onDebug: (text: string) => void;
  /** It answered the first `initialize` as a server of 2024-11-05 does; `giveUp` if it is none. */
  readonly onLegacy: (request: Request, giveUp: () => void) => void;
};
export type Request = { readonly frame: Buffer; readonly id: string; readonly call: Call };

/** Without a post it waits for the session. */
type Sending = Request & { epoch: number; isSecond: boolean; post: Post | undefined };

/** How long those who were not refused may still be answered after the session was forgotten. */
const LAST_WORDS_MS = 5_000;
const SESSION_ID = /^[\x21-\x7e]{1,1024}$/;

export function httpLink(options: HttpOptions): Link {
  const { client, events, say, maxBytes, onDebug } = options;
  const sendings = createOutstanding<Sending>(options.maxPosts, events.onRoom);
  const side = createSidePosts({ client, events, onDebug });
  let phase: 'opening' | 'open' | 'over' = 'opening';
  let isFirst = true;
  let isProven = false;
  let epoch = 0;
  let session: string | undefined;
  let era: Era | undefined;
  let standing: Stream | undefined;
  let timer: NodeJS.Timeout | undefined;

  const common = (): Record<string, string> => ({
    ...(session !== undefined && { 'mcp-session-id': session }),
    ...(era !== undefined && { 'mcp-protocol-version': era }),
  });

  function start(sending: Sending): void {
    const { id, frame, call } = sending;
    const isInitialize = call.method === 'initialize';
    const under = common();
    sending.epoch = epoch;
    sending.post = postRequest(
      { client, events, say, maxBytes },
      {
        ...{ id, frame, headers: { ...under, ...options.headersOf(call) }, streamHeaders: () => under },
        onHead: isInitialize ? begin : prove,
        isTaken: (status, refusal) => (isInitialize ? isLegacy : isGone)(sending, status, refusal),
        onDone: () => sendings.remove(id),
      },
    );
  }

  function begin({ status, headers }: Head): void {
    const given = headers['mcp-session-id'];
    if (status < 300) session = typeof given === 'string' && SESSION_ID.test(given) ? given : undefined;
  }

  function prove({ status }: Head): void {
    if (status < 300) isProven = true;
  }

  function isLegacy(sending: Sending, status: number, refusal: Refusal | undefined): boolean {
    if (!isFirst || ![400, 404, 405].includes(status)) return false;
    sendings.remove(sending.id);
    options.onLegacy(sending, () => events.onFailed(sending.id, say.status(status, refusal)));
    return true;
  }

  function isGone(sending: Sending, status: number, refusal: Refusal | undefined): boolean {
    const isStale = sending.epoch !== epoch;
    if (sending.isSecond || !(isStale || session) || !saysSessionGone(status, refusal, sending.id)) return false;
    sending.isSecond = true;
    sending.post = undefined;
    lose(sending.epoch);
    if (phase === 'open') start(sending);
    return true;
  }

  /** Whoever notices first opens the new session; the others find it opening, or open. */
  function lose(lost: number): void {
    if (lost !== epoch || phase !== 'open') return;
    if (!isProven) return events.onClosed('it forgets its sessions at once', false);
    epoch++;
    phase = 'opening';
    isProven = false;
    session = undefined;
    era = undefined;
    standing?.stop();
    for (const [, { post }] of sendings.entries()) if (post?.isAnswering) post.fail(FORGOTTEN);
    timer = setTimeout(endOlder, LAST_WORDS_MS, epoch);
    events.onSessionLost();
  }

  function endOlder(than: number): void {
    for (const [, { post, epoch: mine }] of sendings.entries()) if (mine < than) post?.fail(FORGOTTEN);
  }

  function opened(): void {
    if (phase !== 'opening') return;
    phase = 'open';
    isFirst = false;
    for (const [, sending] of sendings.entries()) if (!sending.post) start(sending);
    standing = createStream({
      ...{ client, maxBytes, headers: common, isStanding: true, isWanted: () => phase === 'open' },
      ...{ onMessage: (data) => events.onMessage(data), onChunk: events.onChunk, onUnreachable: events.onUnreachable },
      onOver: (why) => onDebug(`it has no standing stream: ${why}`),
      onTooLong: () => events.onClosed('it sent a frame of more than x-troupe.maxFrameBytes', false),
    });
    standing.open();
    events.onRoom();
  }

  function sideways(frame: Buffer, headers: Record<string, string>, onDone: () => void = () => {}): void {
    const mine = epoch;
    const hadSession = session !== undefined;
    side.send({
      ...{ frame, headers: { ...common(), ...headers }, onDone },
      onRefused: (status, refusal) => {
        if (hadSession && saysSessionGone(status, refusal)) lose(mine);
      },
    });
  }

  return {
    request(frame, id, call) {
      const sending = sendings.add(id, { frame, id, call, epoch, isSecond: false, post: undefined });
      if (phase === 'open' || call.method === 'initialize') start(sending);
    },
    /** Before the session is open there is nobody to be told of anything but that. */
    notify(frame, method) {
      const isOpening = method === 'notifications/initialized';
      if (isOpening || phase === 'open') sideways(frame, { 'mcp-method': method }, isOpening ? opened : undefined);
    },
    reply(frame) {
      if (phase === 'open') sideways(frame, {});
      return side.hasRoom();
    },
    drop(id) {
      const post = sendings.get(id)?.post;
      post?.abort();
      sendings.remove(id);
      return post?.wasSent === true;
    },
    negotiated(next) {
      era = next;
    },
    hasRoom: () => phase === 'open' && sendings.hasRoom(),
    pause: client.pause,
    resume: client.resume,
    close() {
      const headers = common();
      const hadSession = session !== undefined && phase !== 'over';
      phase = 'over';
      standing?.stop();
      const done = (): void => events.onClosed('it was closed', false);
      timer = setTimeout(done, hadSession ? options.goodbyeMs : 0);
      if (!hadSession) return;
      const sent: Sent = client.send({
        ...{ method: 'DELETE', headers, onTrouble: done },
        onHead: () => ignore({ abort: () => sent.abort() }, done),
      });
    },
    kill() {
      phase = 'over';
      clearTimeout(timer);
      standing?.stop();
      for (const [, { post }] of sendings.entries()) post?.abort();
      client.destroy();
    },
  };
}

const FORGOTTEN = 'it forgot the session';
