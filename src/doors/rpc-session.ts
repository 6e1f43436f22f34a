// One MCP session over NATS: what its client says on the session's own subject, and what goes back to the client's inbox.
// On a bus nobody says that they left: a client that is not heard of within the lease is let go, and may come back.

import { randomBytes } from 'node:crypto';
import type { Msg, NatsConnection } from 'nats';
import { type Headers, json, toHeaders } from '../bus/frames.ts';
import type { Subjects } from '../bus/subjects.ts';
import { errorObject, sentence } from '../failures.ts';
import { errorFrame } from '../protocol/compose.ts';
import { ERA_FACTS } from '../protocol/eras.ts';
import { type Frame, readFrame } from '../protocol/frame.ts';
import type { HostSession, Line, Sessions } from '../sessions/host.ts';
import { type FrameSender, frameJoiner, frameSender } from './rpc-frames.ts';

export type RpcWorld = {
  readonly nc: NatsConnection;
  readonly subjects: Subjects;
  readonly daemon: string;
  readonly sessions: Sessions;
  /** How long a client may be silent. */
  readonly leaseMs: number;
  readonly maxFrameBytes: number;
  readonly onTrouble: (error: unknown) => void;
};

export type RpcSession = ReturnType<typeof rpcSession>;
type Request = Extract<Frame, { kind: 'request' }>;

export function rpcSession(session: HostSession, world: RpcWorld) {
  const { nc, subjects, daemon, sessions, leaseMs, onTrouble } = world;
  /** Ids of requests that are not answered yet, as raw JSON. */
  const inFlight = new Set<string>();
  let sender: FrameSender | undefined;
  let leave: (() => void) | undefined;
  let isOver = false;
  let heardAt = 0;
  let sent = 0;

  /** The session is this inbox's from now on: it learns the subject to speak on, and nobody is heard on the last one. */
  function arrive(inbox: string, greeting: (status: Buffer) => Buffer, seen = 0): void {
    leave?.();
    sender?.stop();
    const outlet = frameSender(nc, publishTo(nc, inbox, onTrouble));
    const subject = subjects.session(daemon, randomBytes(16).toString('base64url'), session.principal);
    const joiner = frameJoiner({ maxBytes: world.maxFrameBytes, onFrame: receive, onBroken: refuseSeries });
    const subscription = nc.subscribe(subject, {
      callback: (error, msg) => (error ? onTrouble(error) : take(msg, joiner)),
    });
    const [detach, release] = [session.attach(send), session.hold()];
    leave = () => {
      leave = undefined;
      // What is on its way to us is still taken: the broker would not return it any more.
      if (!nc.isClosed()) subscription.drain().catch(onTrouble);
      detach();
      release();
    };
    [sender, sent, heardAt] = [outlet, 0, performance.now()];
    void outlet.send(greeting(status(seen)), {
      ...{ 'Mcp-Session-Id': session.id, 'Mcp-Session-Subject': subject, 'Mcp-Session-Lease': String(leaseMs) },
    });
  }

  /** What a client needs to find out what was lost on the way: how much we said, and what we still work on. */
  const status = (seen: number): Buffer =>
    Buffer.from(`{"seen":${seen},"sent":${sent},"inFlight":[${[...inFlight].join()}]}\n`);

  function send(frame: Buffer): void {
    sent += 1;
    void sender?.send(frame);
  }

  function take(msg: Msg, joiner: (msg: Msg) => void): void {
    if (isOver) return;
    heardAt = performance.now();
    const kind = msg.headers?.get('Mcp-Frame');
    if (kind === 'ka') beat(numberOf(msg));
    else if (kind === 'end') end();
    else joiner(msg);
  }

  function beat(seen: number): void {
    // Ended through another door or daemon: the client finds nobody here next time, and then learns that it is over.
    if (sessions.find(session.id, session.principal) !== session) return leave?.();
    void sender?.send(status(seen));
  }

  function end(): void {
    isOver = true;
    leave?.();
    session.end().catch(onTrouble);
  }

  function receive(bytes: Buffer): void {
    const frame = readFrame(bytes);
    if (frame.kind !== 'batch') return hand(frame);
    if (ERA_FACTS[session.era].batches) for (const each of frame.frames) hand(each);
    else refuse('null', -32600, `MCP ${session.era} has no batches; send each message on its own`);
  }

  function hand(frame: Frame): void {
    if (frame.kind === 'malformed') return refuse(frame.id ?? 'null', frame.code, frame.why);
    if (frame.kind !== 'request') return session.receive(frame, NO_LINE);
    if (frame.method === 'initialize')
      return refuse(frame.id, -32600, 'this session is open already; initialize another where it was opened');
    begin(frame);
  }

  function begin(frame: Request): void {
    inFlight.add(frame.id);
    const answer = (response: Buffer): void => {
      inFlight.delete(frame.id);
      send(response);
    };
    try {
      session.receive(frame, { tell: send, answer });
    } catch (error) {
      onTrouble(error);
      answer(
        errorFrame(
          frame.id,
          errorObject({ code: 'internal', delivery: 'outcome unknown', message: 'a fault in troupe' }),
        ),
      );
    }
  }

  const refuse = (id: string, code: number, message: string): void => send(errorFrame(id, json({ code, message })));
  const refuseSeries = (why: string): void => refuse('null', -32600, `the message was not taken: ${why}`);

  return {
    session,
    arrive,
    /** Lets go of a client whose lease is over. True when nothing is left to keep the session here for. */
    expire(now: number): boolean {
      if (now - heardAt > leaseMs) leave?.();
      return !leave && inFlight.size === 0;
    },
    leave: (): void => leave?.(),
  };
}

const NO_LINE: Line = { tell: () => {}, answer: () => {} };

/** The number that a client gives to a message, so that our status can say what we had seen of it. */
export function numberOf(msg: Msg): number {
  const text = msg.headers?.get('Mcp-Seq') ?? '';
  return /^\d{1,15}$/.test(text) ? Number(text) : 0;
}

export function publishTo(nc: NatsConnection, inbox: string, onTrouble: (error: unknown) => void) {
  return (body: Uint8Array, headers?: Headers): void => {
    try {
      nc.publish(inbox, body, headers ? { headers: toHeaders(headers) } : {});
    } catch (error) {
      onTrouble(sentence(error)); // closed or draining: the client asks again
    }
  };
}
