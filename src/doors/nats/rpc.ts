// The subjects of whole MCP sessions. `initialize` on `troupe.rpc…` opens one and its answer names the subject to speak on; a
// client that lost its daemon comes back with its session's id. Frames go to the client's inbox, nowhere else.

import type { Msg } from 'nats';
import { errorHeaders, type Headers, json } from '../../bus/frames.ts';
import { listeners } from '../../bus/replies.ts';
import { frameSender } from '../../bus/rpc-frames.ts';
import type { Opener, Subjects } from '../../bus/subjects.ts';
import { errorFrame, resultFrame } from '../../protocol/compose.ts';
import { errorObject, type Failure, failureOf } from '../../protocol/failures.ts';
import { type Frame, readFrame } from '../../protocol/frame.ts';
import type { HostSession, Sessions } from '../../sessions/host.ts';
import { createOffers, type Responder, UNREADABLE } from './responder.ts';
import { publishTo, type RpcSession, rpcSession, type SessionOptions, sequenceOf } from './rpc-session.ts';

export type RpcOptions = {
  readonly subjects: Subjects;
  readonly daemon: string;
  readonly sessions: Sessions;
  readonly leaseMs?: number;
  readonly maxFrameBytes?: number;
};
type Requested = Frame & { kind: 'request' };
/** Sends one frame to a client that has no session yet. */
type Send = (inbox: string, frame: Buffer, headers?: Headers) => void;

const LEASE_MS = 30_000;
const MAX_FRAME_BYTES = 64 * 2 ** 20;
const SWEEPS_PER_LEASE = 4;
const EMPTY = Buffer.from('{}');

export function serveSessions(responder: Responder, options: RpcOptions) {
  const { nc, onTrouble } = responder;
  const { subjects, daemon, sessions } = options;
  const { leaseMs = LEASE_MS, maxFrameBytes = MAX_FRAME_BYTES } = options;
  const listening = listeners(nc);
  const sessionOptions: SessionOptions = { nc, subjects, daemon, leaseMs, maxFrameBytes, listening, onTrouble };
  const attached = new Map<string, RpcSession>();
  // Sessions of a scope that is closed go on; each of them knows what it can still do.
  const offer = createOffers((scope) => responder.subscribe(subjects.rpcPatterns(scope, daemon), take));
  const sweeper = setInterval(sweep, leaseMs / SWEEPS_PER_LEASE);
  sweeper.unref();
  const send: Send = (inbox, frame, headers) =>
    void frameSender(nc, publishTo(nc, inbox, onTrouble)).send(frame, headers);

  function take(msg: Msg): void {
    if (!msg.reply) return; // a session needs an inbox
    const opener = subjects.parseRpc(msg.subject);
    if (!opener) return fail(send, msg.reply, 'null', refused('invalid', UNREADABLE));
    const id = msg.headers?.get('Mcp-Session-Id');
    if (id) return resume(id, opener, msg, msg.reply);
    const frame = readFrame(Buffer.from(msg.data.buffer, msg.data.byteOffset, msg.data.byteLength));
    if (frame.kind === 'request' && frame.method === 'initialize') void start(frame, opener, msg.reply);
    else reject(send, frame, msg.reply);
  }

  async function start(frame: Requested, { scope, caller }: Opener, inbox: string): Promise<void> {
    try {
      const opening = { principal: caller, door: 'rpc', scope, params: frame.params ?? EMPTY } as const;
      const { session, result } = await sessions.open(opening);
      attach(session, inbox, () => resultFrame(frame.id, result));
    } catch (error) {
      fail(send, inbox, frame.id, failureOf(error, onTrouble));
    }
  }

  function resume(id: string, { caller, scope }: Opener, msg: Msg, inbox: string): void {
    try {
      const session = sessions.find(id, caller);
      // A session of another door or scope cannot be taken over here: its client speaks elsewhere.
      if (session?.door === 'rpc' && session.scope === scope)
        return attach(session, inbox, (status) => status, sequenceOf(msg));
    } catch (error) {
      return fail(send, inbox, 'null', failureOf(error, onTrouble));
    }
    fail(send, inbox, 'null', refused('unknownName', 'there is no such session; initialize a new one'));
  }

  function attach(session: HostSession, inbox: string, greeting: (status: Buffer) => Buffer, seen = 0): void {
    const known = attached.get(session.id);
    // A session that was released from memory and read again is another object: the attachment of the old one is stale.
    const mine = known?.session === session ? known : rpcSession(session, sessionOptions);
    attached.set(session.id, mine);
    mine.attach(inbox, greeting, seen);
  }

  function sweep(): void {
    const now = performance.now();
    for (const [id, session] of attached) if (session.expire(now)) attached.delete(id);
  }

  return {
    /** Opens the subjects of these scopes, and closes those of all others. */
    offer,
    get count() {
      return attached.size;
    },
    async close(): Promise<void> {
      clearInterval(sweeper);
      for (const session of attached.values()) session.detach();
      listening.close();
      await offer([]);
    },
  };
}

/** What comes before a session is open, and does not open one. */
function reject(send: Send, frame: Frame, inbox: string): void {
  const id = 'id' in frame ? (frame.id ?? 'null') : 'null';
  if (frame.kind === 'malformed') return send(inbox, errorFrame(id, json({ code: frame.code, message: frame.why })));
  if (frame.kind === 'request' && frame.method === 'ping') return send(inbox, resultFrame(id, EMPTY));
  const isProbe = frame.kind === 'request' && frame.method === 'server/discover';
  const [code, message] = isProbe
    ? [-32601, 'server/discover is not known here; initialize a session']
    : [
        -32600,
        'there is no session here yet; the first message must be initialize, the next go to Mcp-Session-Subject',
      ];
  send(inbox, errorFrame(id, json({ code, message })));
}

const fail = (send: Send, inbox: string, id: string, failure: Failure): void =>
  send(inbox, errorFrame(id, errorObject(failure)), errorHeaders(failure));

const refused = (code: Failure['code'], message: string): Failure => ({ code, delivery: 'not sent', message });
