// The door for whole MCP sessions over NATS. `initialize` on `troupe.rpc…` opens one and its answer names the subject to
// speak on; a client that lost its daemon comes back with its session's id. Frames go to the client's inbox, nowhere else.

import type { Msg, NatsConnection, Subscription } from 'nats';
import { type Headers, json } from '../bus/frames.ts';
import { isInbox } from '../bus/replies.ts';
import { frameSender } from '../bus/rpc-frames.ts';
import type { Opener, Subjects } from '../bus/subjects.ts';
import { errorFrame, resultFrame } from '../protocol/compose.ts';
import { errorObject, type Failure, failureOf, natsCode, rpcCodeOf } from '../protocol/failures.ts';
import { type Frame, readFrame } from '../protocol/frame.ts';
import type { HostSession, Scope, Sessions } from '../sessions/host.ts';
import { numberOf, publishTo, type RpcSession, type RpcWorld, rpcSession } from './rpc-session.ts';

export type RpcDoorOptions = {
  readonly nc: NatsConnection;
  readonly subjects: Subjects;
  readonly daemon: string;
  readonly sessions: Sessions;
  readonly leaseMs?: number;
  readonly maxFrameBytes?: number;
  readonly onTrouble: (error: unknown) => void;
};
export type RpcDoor = ReturnType<typeof rpcDoor>;

const LEASE_MS = 30_000;
const MAX_FRAME_BYTES = 64 * 2 ** 20;
const SWEEPS_PER_LEASE = 4;
const EMPTY = Buffer.from('{}');

/** Opens the subject of all servers; those of one server or profile are opened and closed as they come and go. */
export function rpcDoor(options: RpcDoorOptions) {
  const { nc, subjects, daemon, sessions, onTrouble } = options;
  const world: RpcWorld = {
    ...options,
    leaseMs: options.leaseMs ?? LEASE_MS,
    maxFrameBytes: options.maxFrameBytes ?? MAX_FRAME_BYTES,
  };
  const here = new Map<string, RpcSession>();
  const open = new Map<Scope, Subscription[]>();
  const sweeper = setInterval(sweep, world.leaseMs / SWEEPS_PER_LEASE);
  sweeper.unref();
  openScope('');

  function openScope(scope: Scope): void {
    if (open.has(scope)) return;
    const callback = (error: Error | null, msg: Msg) => (error ? onTrouble(error) : take(msg));
    const patterns = subjects.rpcPatterns(scope, daemon);
    open.set(
      scope,
      patterns.map(({ subject, queue }) => nc.subscribe(subject, { callback, ...(queue && { queue }) })),
    );
  }

  /** Sessions that are open go on; what they can still do is theirs to say. */
  async function closeScope(scope: Scope): Promise<void> {
    const subscriptions = open.get(scope) ?? [];
    open.delete(scope);
    if (!nc.isClosed()) await Promise.all(subscriptions.map((subscription) => subscription.drain()));
  }

  function take(msg: Msg): void {
    // The daemon may publish where its caller may not: it answers to inboxes, and to nothing else.
    if (!msg.reply || !isInbox(msg.reply)) return;
    const opener = subjects.parseRpc(msg.subject);
    if (!opener)
      return answer(msg.reply, 'null', failed('invalid', 'the subject cannot be read; see docs/SUBJECTS.md'));
    const id = msg.headers?.get('Mcp-Session-Id');
    if (id) return resume(id, opener, msg, msg.reply);
    const frame = readFrame(Buffer.from(msg.data.buffer, msg.data.byteOffset, msg.data.byteLength));
    if (frame.kind === 'request' && frame.method === 'initialize') void start(frame, opener, msg.reply);
    else reject(frame, msg.reply);
  }

  async function start(frame: Frame & { kind: 'request' }, opener: Opener, inbox: string): Promise<void> {
    const { scope, caller: principal } = opener;
    try {
      const { session, result } = await sessions.open({ principal, door: 'rpc', scope, params: frame.params ?? EMPTY });
      arrive(session, inbox, () => resultFrame(frame.id, result));
    } catch (error) {
      answer(inbox, frame.id, failureOf(error, onTrouble));
    }
  }

  function resume(id: string, { caller, scope }: Opener, msg: Msg, inbox: string): void {
    let session: HostSession | undefined;
    try {
      session = sessions.find(id, caller);
    } catch (error) {
      return answer(inbox, 'null', failureOf(error, onTrouble));
    }
    // A session of another door has its client there, and one of another scope was not opened on this subject.
    if (session?.door === 'rpc' && session.scope === scope)
      return arrive(session, inbox, (status) => status, numberOf(msg));
    answer(inbox, 'null', failed('unknownName', 'there is no such session; initialize a new one'));
  }

  function arrive(session: HostSession, inbox: string, greeting: (status: Buffer) => Buffer, seen = 0): void {
    const known = here.get(session.id);
    // One that nobody used was released meanwhile, and is another object now.
    const mine = known?.session === session ? known : rpcSession(session, world);
    here.set(session.id, mine);
    mine.arrive(inbox, greeting, seen);
  }

  function reject(frame: Frame, inbox: string): void {
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

  const answer = (inbox: string, id: string, failure: Failure): void =>
    send(inbox, errorFrame(id, errorObject(failure)), {
      'Nats-Service-Error-Code': String(natsCode(failure)),
      'Nats-Service-Error': failure.message.replace(/\s+/g, ' ').trim().slice(0, 200),
      'Mcp-Error-Code': String(rpcCodeOf(failure)),
    });
  const send = (inbox: string, frame: Buffer, headers?: Headers): void =>
    void frameSender(nc, publishTo(nc, inbox, onTrouble)).send(frame, headers);

  function sweep(): void {
    const now = performance.now();
    for (const [id, session] of here) if (session.expire(now)) here.delete(id);
  }

  return {
    openScope,
    closeScope,
    get count() {
      return here.size;
    },
    async close(): Promise<void> {
      clearInterval(sweeper);
      for (const session of here.values()) session.leave();
      await Promise.all([...open.keys()].map(closeScope));
    },
  };
}

const failed = (code: Failure['code'], message: string): Failure => ({ code, delivery: 'not sent', message });
