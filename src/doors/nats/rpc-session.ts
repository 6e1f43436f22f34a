// One MCP session over NATS: what its client says on the session's own subject, and what goes back to the client's inbox.
// On a bus no client says that it left: one that is not heard of within the lease is let go, and may come back.

import { randomBytes } from 'node:crypto';
import type { Msg, NatsConnection } from 'nats';
import { isToldElsewhere } from '../../bus/bounds.ts';
import { type Headers, toHeaders } from '../../bus/frames.ts';
import type { Listeners } from '../../bus/replies.ts';
import { type FrameSender, frameJoiner, frameSender } from '../../bus/rpc-frames.ts';
import type { Subjects } from '../../bus/subjects.ts';
import { sentence } from '../../protocol/failures.ts';
import { readFrame } from '../../protocol/frame.ts';
import type { HostSession } from '../../sessions/host.ts';
import { createAnswers, ENDED } from '../answers.ts';
import { refusalFrame } from '../batches.ts';

export type SessionOptions = {
  readonly nc: NatsConnection;
  readonly subjects: Subjects;
  readonly daemon: string;
  /** How long a client may be silent. */
  readonly leaseMs: number;
  readonly maxFrameBytes: number;
  /** Tells that a frame found nobody. */
  readonly listening: Listeners;
  readonly onTrouble: (error: unknown) => void;
};

export type RpcSession = ReturnType<typeof rpcSession>;

export function rpcSession(session: HostSession, options: SessionOptions) {
  const { nc, subjects, daemon, leaseMs, listening, onTrouble } = options;
  const answers = createAnswers({ send, onFault: onTrouble, isAbsent });
  const { inFlight } = answers;
  let sender: FrameSender | undefined;
  /** Lets go of the client; undefined while there is none. */
  let detach: (() => void) | undefined;
  let isOver = false;
  let heardAt = 0;
  let sent = 0;
  /** The broker found nobody at the client's inbox, and the client has not been heard of since. */
  let isUnread = false;
  let token = '';

  /** The session is this inbox's from now on: its client learns the subject to speak on, and the last subject falls silent. */
  function attach(inbox: string, greeting: (status: Buffer) => Buffer, seen = 0): void {
    detach?.();
    sender?.stop();
    const outlet = frameSender(nc, publishTo(nc, inbox, onTrouble));
    const subject = subjects.session(daemon, randomBytes(16).toString('base64url'), session.principal);
    const joiner = frameJoiner({
      maxBytes: options.maxFrameBytes,
      onFrame: (bytes) => answers.take(session, readFrame(bytes)),
      onBroken: (why) => send(brokenFrame(why)),
    });
    const subscription = nc.subscribe(subject, {
      callback: (error, msg) => (error ? onTrouble(error) : take(msg, joiner)),
    });
    const leaves = [session.attach(send), session.hold(), session.onEnded(over)];
    token = listening.add(() => {
      isUnread = true;
    });
    const own = token;
    detach = () => {
      detach = undefined;
      listening.remove(own);
      // Messages that are on their way are still taken: the broker would not return them any more.
      if (!nc.isClosed()) subscription.drain().catch(onTrouble);
      for (const each of leaves) each();
    };
    sender = outlet;
    sent = 0;
    heard();
    void outlet.send(greeting(status(seen)), {
      'Mcp-Session-Id': session.id,
      'Mcp-Session-Subject': subject,
      'Mcp-Session-Lease': String(leaseMs),
    });
  }

  /** By this a client finds out what was lost on the way: how much it was sent, and which requests are worked on. */
  const status = (seen: number): Buffer =>
    Buffer.from(`{"seen":${seen},"sent":${sent},"inFlight":[${[...inFlight].join()}]}\n`);

  function send(frame: Buffer): void {
    sent += 1;
    void sender?.send(frame);
  }

  function heard(): void {
    heardAt = performance.now();
    if (isUnread) back();
  }

  function back(): void {
    isUnread = false;
    for (const id of inFlight) session.callerIs('back', id);
  }

  /**
   * A client that has left without a word is known by its lease only. So it counts as absent until the broker has said whether
   * anybody receives a status; if nobody does, until it is heard of again.
   */
  function isAbsent(): true {
    const asked = Promise.resolve(sender?.send(status(0), {}, listening.subject(token))).then(() => nc.flush());
    void asked.then(
      () => isUnread || back(),
      () => {}, // without a bus nobody hears anything
    );
    return true;
  }

  function take(msg: Msg, joiner: (msg: Msg) => void): void {
    if (isOver) return;
    heard();
    const kind = msg.headers?.get('Mcp-Frame');
    if (kind === 'ka') void sender?.send(status(sequenceOf(msg)));
    else if (kind === 'end') end();
    else joiner(msg);
  }

  /** The session was ended elsewhere: the client's next message is returned, and coming back it learns that the session is over. */
  function over(): void {
    answers.refuse(ENDED);
    detach?.();
  }

  function end(): void {
    isOver = true;
    detach?.();
    session.end().catch(onTrouble);
  }

  return {
    session,
    attach,
    /** Lets go of a client whose lease is over: it will not hear what it waits for. True when there is neither a client nor a request in flight. */
    expire(now: number): boolean {
      if (detach && now - heardAt > leaseMs) {
        for (const id of inFlight) session.callerIs('gone', id);
        detach();
      }
      return !detach && inFlight.size === 0;
    },
    detach: (): void => detach?.(),
  };
}

const brokenFrame = (why: string): Buffer =>
  refusalFrame({ kind: 'malformed', code: -32600, why: `the message was not taken: ${why}` });

/** The number that a client gives to a message, so that a status can say which messages were seen. */
export function sequenceOf(msg: Msg): number {
  const text = msg.headers?.get('Mcp-Seq') ?? '';
  return /^\d{1,15}$/.test(text) ? Number(text) : 0;
}

export function publishTo(nc: NatsConnection, inbox: string, onTrouble: (error: unknown) => void) {
  return (body: Uint8Array, headers?: Headers, reply?: string): void => {
    try {
      nc.publish(inbox, body, { ...(headers && { headers: toHeaders(headers) }), ...(reply && { reply }) });
    } catch (error) {
      if (!isToldElsewhere(error)) onTrouble(sentence(error)); // closed or draining: the client asks again
    }
  };
}
