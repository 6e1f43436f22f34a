// The NATS door: each server's subjects, each message one call, each call one reply. It holds no state of a call: what it
// knows lies in the closure that answers. A server that is not configured has no subscription, so its callers hear at once.

import type { Msg, NatsConnection, Subscription } from 'nats';
import { json, maxPayload, toHeaders } from '../bus/frames.ts';
import { microService } from '../bus/micro.ts';
import { isInbox, replies } from '../bus/replies.ts';
import type { Pattern, Request, Subjects } from '../bus/subjects.ts';
import type { Call, Outcome, Signal } from '../calls/call.ts';
import type { Catalog } from '../catalog/catalog.ts';
import { type Failure, type FailureCode, failureOf, sentence, TroupeError } from '../protocol/failures.ts';
import type { Fleet } from '../servers/fleet.ts';
import { mustOffer } from '../servers/policy.ts';
import { LEASE_MS } from '../servers/subscriptions.ts';
import type { Order, Tasks } from '../tasks/task.ts';
import { listPage } from './nats-lists.ts';
import { askedOf, orderOf, uriOf, wantsStream, wishesOf } from './requests.ts';
import { type Service, serviceOf } from './service.ts';

export type NatsDoorOptions = {
  readonly nc: NatsConnection;
  readonly subjects: Subjects;
  readonly daemon: string;
  readonly fleet: Fleet;
  readonly catalog: Catalog;
  /** Calls whose outcome is kept. */
  readonly tasks: Pick<Tasks, 'create'>;
  readonly onProgress: (requestId: string, caller: string, signal: Signal) => void;
  readonly onTrouble: (error: unknown) => void;
};

export type NatsDoor = ReturnType<typeof natsDoor>;

/** Room for headers and for what the client wraps around a payload. */
const PAGE_ROOM = 4_096;
const MAX_PARSED = 4_096;
const NOTHING: Outcome = { ok: true, result: Buffer.from('{}'), isError: false };

export function natsDoor(options: NatsDoorOptions) {
  const { nc, subjects, daemon, fleet, catalog, tasks, onProgress, onTrouble } = options;
  const reply = replies(nc, { onLost: onTrouble });
  const parsed = new Map<string, Request>();
  const open = new Map<string, { subscriptions: Subscription[]; stop: () => Promise<void> }>();
  const cancels = subjects.cancelPatterns(daemon).map(({ subject }) => subscribe(subject, undefined, cancel));

  function subscribe(subject: string, queue: string | undefined, take: (msg: Msg) => void): Subscription {
    const callback = (error: Error | null, msg: Msg) => (error ? onTrouble(error) : take(msg));
    return nc.subscribe(subject, { callback, ...(queue && { queue }) });
  }

  function openServer(name: string): void {
    if (open.has(name)) return;
    const service = serviceOf(name, { subjects, daemon, fleet, catalog });
    const subscriptions = subjects
      .patterns(name, daemon)
      .map(({ subject, queue, verb }) => subscribe(subject, queue, (msg) => take(service, verb, msg)));
    const micro = microService(nc, service.description);
    open.set(name, { subscriptions, stop: micro.stop });
  }

  async function closeServer(name: string): Promise<void> {
    const found = open.get(name);
    open.delete(name);
    if (!found || nc.isClosed()) return;
    await Promise.all([...found.subscriptions.map((subscription) => subscription.drain()), found.stop()]);
  }

  /** The same few subjects come again and again. */
  function parse(subject: string): Request {
    const known = parsed.get(subject);
    if (known) return known;
    const request = subjects.parse(subject);
    if (!request) throw new TroupeError('invalid', 'the subject cannot be read; see docs/SUBJECTS.md');
    if (parsed.size >= MAX_PARSED) parsed.clear();
    parsed.set(subject, request);
    return request;
  }

  /** One message. Whatever is wrong with it, its caller gets one sentence. */
  function take(service: Service, verb: Pattern['verb'], msg: Msg): void {
    // The daemon may publish where its caller may not: it answers to inboxes, and to nothing else.
    if (msg.reply && !isInbox(msg.reply)) return;
    const startedAt = performance.now();
    const refuse = (error: unknown): void => {
      const failure: Failure = { ...failureOf(error, onTrouble), server: service.name };
      service.count(verb, startedAt, failure.message);
      send(msg, { ok: false, failure });
    };
    try {
      const request = parse(msg.subject);
      const body = reply.requestBody(msg);
      if (Buffer.isBuffer(body)) handle(service, request, msg, body, startedAt, refuse);
      else body.then((bytes) => handle(service, request, msg, bytes, startedAt, refuse)).catch(refuse);
    } catch (error) {
      refuse(error);
    }
  }

  /** What is known at once. A caller that waits for the end of a stream gets one, also when nothing was begun. */
  function send(msg: Msg, outcome: Outcome): void {
    void (wantsStream(msg) ? reply.stream(msg, () => {}).end(outcome) : reply.answer(msg, outcome));
  }

  function handle(
    service: Service,
    request: Request,
    msg: Msg,
    body: Buffer,
    startedAt: number,
    refuse: (error: unknown) => void,
  ): void {
    const answer = (result: Buffer) => {
      service.count(request.verb, startedAt);
      send(msg, { ok: true, result, isError: false });
    };
    const order = orderOf(request, msg, body);
    if (order)
      return void create(order, msg)
        .then(() => service.countCall(request, order.tool, startedAt, NOTHING))
        .catch(refuse);
    if (request.verb === 'list') return answer(listPage({ fleet, catalog }, request, body, maxPayload(nc) - PAGE_ROOM));
    if (request.verb === 'subscribe' || request.verb === 'unsubscribe')
      return void listen(request, msg, uriOf(body)).then(answer).catch(refuse);
    begin(service, request, msg, body, startedAt);
  }

  /** Told when it is on the disk; from then on it is no matter of this connection. */
  async function create(order: Order, { reply: inbox }: Msg): Promise<void> {
    const view = await tasks.create(order);
    if (inbox) nc.publish(inbox, json(view), { headers: toHeaders({ 'Troupe-Task-Id': view.taskId }) });
  }

  /** Listening is a lease, renewed by asking again: on a bus nobody says that they left. */
  async function listen({ verb, server, caller }: Request, msg: Msg, uri: string): Promise<Buffer> {
    const member = fleet.memberFor(server, caller);
    if (!member) throw new TroupeError('unknownServer', `there is no server ${server}`);
    mustOffer(member, 'resources/subscribe');
    const holder = `${caller} ${msg.headers?.get('Troupe-Subscriber') ?? ''}`;
    if (member.state === 'asleep') fleet.tell(member.name, { type: 'wanted' });
    if (verb === 'subscribe') await member.subscriptions.add(uri, holder);
    else await member.subscriptions.remove(uri, holder);
    const subject = subjects.resourceUpdated(server, uri, member.principal);
    return Buffer.from(JSON.stringify(verb === 'subscribe' ? { subject, leaseMs: LEASE_MS } : { subject }));
  }

  function begin(service: Service, request: Request, msg: Msg, body: Buffer, startedAt: number): void {
    const { requestId, isNamed, isStream, timeoutMs } = wishesOf(msg);
    const { caller, server } = request;
    if (isNamed && fleet.isInFlight(caller, requestId))
      throw new TroupeError('invalid', `a call with Troupe-Request-Id ${requestId} is in flight; use another id`);
    const asked = askedOf(request, msg, body);
    const stream = isStream
      ? reply.stream(msg, () => fleet.cancel(caller, requestId, 'the caller went away'))
      : undefined;
    const settle = (outcome: Outcome): void => {
      service.countCall(request, asked.name, startedAt, outcome);
      void (stream ? stream.end(outcome) : reply.answer(msg, outcome));
    };
    const { method, name, params } = asked;
    const call: Call = { requestId, server, method, name, params, principal: caller, door: 'nats', settle };
    if (!isNamed && !stream && timeoutMs === undefined) return submit(call);
    stream?.ack(requestId);
    const onSignal = (signal: Signal): void => {
      stream?.signal(signal);
      onProgress(requestId, caller, signal);
    };
    submit({ ...call, isCancellable: isNamed || isStream, onSignal, ...(timeoutMs && { timeoutMs }) });
  }

  function submit(call: Call): void {
    const fail = (code: FailureCode, message: string): void =>
      call.settle({ ok: false, failure: { code, delivery: 'not sent', message, server: call.server } });
    try {
      if (!fleet.submit(call))
        fail('unknownServer', `server ${call.server} was removed; troupe ps lists those there are`);
    } catch (error) {
      fail(error instanceof TroupeError ? error.code : 'internal', sentence(error));
    }
  }

  function cancel(msg: Msg): void {
    const request = subjects.parse(msg.subject);
    // Silence if we do not have it: another daemon may, and a caller's id is nobody else's business.
    if (request && fleet.cancel(request.caller, request.tail, 'the caller cancelled it') && msg.reply)
      void reply.answer(msg, NOTHING);
  }

  return {
    openServer,
    closeServer,
    async close(): Promise<void> {
      reply.close();
      if (nc.isClosed()) return;
      await Promise.all([...open.keys()].map(closeServer));
      await Promise.all(cancels.map((subscription) => subscription.drain()));
    },
  };
}
