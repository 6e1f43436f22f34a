// One MCP session over NATS: what its client says on the session's own subject, and what goes back to the client's inbox.
// On a bus nobody says that they left: a client that is not heard of within the lease is let go, and may come back.

import { randomBytes } from 'node:crypto';
import type { Msg, NatsConnection } from 'nats';
import { type Headers, toHeaders } from '../bus/frames.ts';
import { type FrameSender, frameJoiner, frameSender } from '../bus/rpc-frames.ts';
import type { Subjects } from '../bus/subjects.ts';
import { sentence } from '../protocol/failures.ts';
import { readFrame } from '../protocol/frame.ts';
import type { HostSession } from '../sessions/host.ts';
import { createAnswers, ENDED } from './answers.ts';
import { refusalFrame } from './batches.ts';

export type RpcWorld = {
  readonly nc: NatsConnection;
  readonly subjects: Subjects;
  readonly daemon: string;
  /** How long a client may be silent. */
  readonly leaseMs: number;
  readonly maxFrameBytes: number;
  readonly onTrouble: (error: unknown) => void;
};

export type RpcSession = ReturnType<typeof rpcSession>;

export function rpcSession(session: HostSession, world: RpcWorld) {
  const { nc, subjects, daemon, leaseMs, onTrouble } = world;
  const answers = createAnswers({ send, onFault: onTrouble });
  const { inFlight } = answers;
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
    const leaves = [session.attach(send), session.hold(), session.onEnded(over)];
    leave = () => {
      leave = undefined;
      // What is on its way to us is still taken: the broker would not return it any more.
      if (!nc.isClosed()) subscription.drain().catch(onTrouble);
      for (const each of leaves) each();
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
    if (kind === 'ka') void sender?.send(status(numberOf(msg)));
    else if (kind === 'end') end();
    else joiner(msg);
  }

  /** Ended elsewhere: the client finds nobody here next time, and then learns that there is no such session. */
  function over(): void {
    answers.refuse(ENDED);
    leave?.();
  }

  function end(): void {
    isOver = true;
    leave?.();
    session.end().catch(onTrouble);
  }

  const receive = (bytes: Buffer): void => answers.take(session, readFrame(bytes));

  const refuseSeries = (why: string): void =>
    send(refusalFrame({ kind: 'malformed', code: -32600, why: `the message was not taken: ${why}` }));

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
