// What every subject of the NATS door has in common: who is answered at all, how a reply, a page or a refusal goes out, and
// how the door is closed without dropping what it has taken.

import { setTimeout as wait } from 'node:timers/promises';
import { Empty, type Msg, type NatsConnection } from 'nats';
import { maxPayload, toHeaders } from '../../bus/frames.ts';
import { replies } from '../../bus/replies.ts';
import { isInbox, MAX_NAME, type Subjects, type Tree } from '../../bus/subjects.ts';
import type { Outcome } from '../../calls/call.ts';
import { type FailureCode, failureOf, TroupeError } from '../../protocol/failures.ts';
import { wantsStream } from './requests.ts';

export type ResponderOptions = {
  readonly nc: NatsConnection;
  readonly onTrouble: (error: unknown) => void;
  readonly keepAliveMs?: number;
};
export type Responder = ReturnType<typeof createResponder>;

/** Gives up subscriptions. Resolves when the broker brings nothing more; what it had sent has been taken. */
export type Close = () => Promise<void>;

/** Keeps open what is wanted by name, and closes the rest. */
export function createOffers(open: (name: string) => Close) {
  const closers = new Map<string, Close>();
  return async (wanted: readonly string[]): Promise<void> => {
    for (const name of wanted) if (!closers.has(name)) closers.set(name, open(name));
    const unwanted = [...closers].filter(([name]) => !wanted.includes(name));
    for (const [name] of unwanted) closers.delete(name);
    await Promise.all(unwanted.map(([, close]) => close()));
  };
}

/** A part of a list. `next` is the cursor of what follows, when there is more. */
export type Page = { readonly page: Buffer; readonly next?: string };

/** Requests about things that only the daemons of one state directory know, such as its tasks. */
export type FamilyService<Request extends { readonly id: string }> = {
  readonly patterns: readonly Tree[];
  readonly parse: (subject: string) => Request | undefined;
  /** Resolves with what to send; with nothing when the reply was sent already, or there is none to send. */
  readonly serve: (request: Request, msg: Msg) => Promise<Outcome | Page | undefined>;
  /** The failures after which another state directory may still know the id. */
  readonly elsewhere: readonly FailureCode[];
  /** Whether another one has answered, or will. */
  readonly isElsewhere?: (request: Request, msg: Msg) => Promise<boolean>;
  /** The sentence for an id that nobody knows. */
  readonly unknown: (request: Request) => string;
};

/** Where such a service is offered. */
export type FamilyOptions<Ports> = {
  readonly subjects: Subjects;
  readonly daemon: string;
  /** Daemons of one state directory know the same questions and tasks, and one of them serves a message. */
  readonly family: string;
  readonly ports: Ports;
};

/** A daemon that does not know an id leaves the first word to those that may know it. */
export const SILENCE_MS = 500;
/** Another daemon, or a disk, may take its time with what came through this one. */
const CLOSE_MS = 4 * SILENCE_MS;

export const UNREADABLE = `the subject cannot be read, or a name in it has more than ${MAX_NAME} characters; see docs/SUBJECTS.md`;

/** The outcome that is a JSON result of ours. */
export const succeeded = (result: Buffer): Outcome => ({ ok: true, result, isError: false });

/** The daemon may publish where its caller may not: it answers to inboxes, and to nothing else. */
function subscribeTo(
  nc: NatsConnection,
  patterns: readonly Tree[],
  take: (msg: Msg) => void,
  onTrouble: (error: unknown) => void,
): Close {
  const callback = (error: Error | null, msg: Msg) => {
    if (error) onTrouble(error);
    else if (!msg.reply || isInbox(msg.reply)) take(msg);
  };
  const open = patterns.map(({ subject, queue }) => nc.subscribe(subject, { callback, ...(queue && { queue }) }));
  return async () => {
    if (!nc.isClosed()) await Promise.all(open.map((subscription) => subscription.drain()));
  };
}

export function createResponder({ nc, onTrouble, keepAliveMs }: ResponderOptions) {
  const reply = replies(nc, { onLost: onTrouble, ...(keepAliveMs && { keepAliveMs }) });
  const services: Close[] = [];
  const busy = new Set<Promise<void>>();
  const closers = new Set<() => void>();
  let isClosed = false;

  const subscribe = (patterns: readonly Tree[], take: (msg: Msg) => void): Close =>
    subscribeTo(nc, patterns, take, onTrouble);

  /** A caller that waits for the end of a stream gets one, whatever it asked. */
  const send = (msg: Msg, outcome: Outcome): Promise<void> | undefined =>
    wantsStream(msg) ? reply.stream(msg, () => {}).end(outcome) : reply.answer(msg, outcome);

  function sendPage(msg: Msg, { page, next }: Page): Promise<void> | undefined {
    if (next === undefined || !msg.reply) return send(msg, succeeded(page));
    const frame = wantsStream(msg) ? { 'Mcp-Frame': 'result', 'Mcp-Seq': '1' } : {};
    nc.publish(msg.reply, page, { headers: toHeaders({ ...frame, 'Troupe-Next': next }) });
    if (wantsStream(msg)) nc.publish(msg.reply, Empty);
    return undefined;
  }

  async function respond<Request extends { readonly id: string }>(
    service: FamilyService<Request>,
    msg: Msg,
  ): Promise<void> {
    const arrivedAt = performance.now();
    const request = service.parse(msg.subject);
    try {
      if (!request) throw new TroupeError('invalid', UNREADABLE);
      const answer = await service.serve(request, msg);
      if (answer) await ('page' in answer ? sendPage(msg, answer) : send(msg, answer));
    } catch (error) {
      const failure = failureOf(error, onTrouble);
      if (!request?.id || !service.elsewhere.includes(failure.code)) return send(msg, { ok: false, failure });
      if (await service.isElsewhere?.(request, msg)) return;
      await wait(Math.max(0, SILENCE_MS - (performance.now() - arrivedAt)));
      const message = failure.code === 'unknownName' ? service.unknown(request) : failure.message;
      await send(msg, { ok: false, failure: { ...failure, message } });
    }
  }

  return {
    nc,
    onTrouble,
    reply,
    subscribe,
    send,
    /** How much fits into one message beside its headers. */
    room: (headers: number): number => maxPayload(nc) - headers,
    /** Serves a service's subjects until the door is closed. */
    serve<Request extends { readonly id: string }>(service: FamilyService<Request>): void {
      const take = (msg: Msg): void => {
        const served = respond(service, msg).catch(onTrouble); // the connection went away under the reply
        busy.add(served);
        void served.finally(() => busy.delete(served));
      };
      services.push(subscribe(service.patterns, take));
    },
    /** Calls back when the door closes, or at once if it has; the listener may leave before. */
    onClose(listener: () => void): () => void {
      closers.add(listener);
      if (isClosed) listener();
      return () => closers.delete(listener);
    },
    async close(): Promise<void> {
      isClosed = true;
      reply.close();
      for (const listener of closers) listener();
      await Promise.all(services.map((stop) => stop()));
      if (nc.isClosed()) return;
      await Promise.race([Promise.all(busy), wait(CLOSE_MS, undefined, { ref: false })]);
    },
  };
}
