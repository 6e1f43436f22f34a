// The subjects of servers: each message one call, each call one reply. A server that is not configured has no subscription, so
// its callers hear "no responders" at once. This is the hot path: a message without headers becomes one record of the
// exchange, one call and the closure that answers it.

import type { Msg } from 'nats';
import { json, toHeaders } from '../../bus/frames.ts';
import { microService } from '../../bus/micro.ts';
import type { ReplyStream } from '../../bus/replies.ts';
import type { Request, Subjects, Verb } from '../../bus/subjects.ts';
import { type Call, NEVER_TOLD, type Outcome, type Signal } from '../../calls/call.ts';
import { OPERATIONS, type Ports } from '../../operations/operations.ts';
import { type Failure, type FailureCode, failureOf, sentence, TroupeError } from '../../protocol/failures.ts';
import type { Order } from '../../tasks/task.ts';
import { askedOf, callerOf, cursorOf, extrasOf, orderOf, subscriberOf, uriOf } from './requests.ts';
import { type Close, createOffers, type Responder, succeeded, UNREADABLE } from './responder.ts';
import { type Service, serviceOf } from './service.ts';

export type CallSubjects = {
  readonly subjects: Subjects;
  readonly daemon: string;
  readonly ports: Pick<Ports, 'fleet' | 'catalog' | 'tasks'>;
  readonly onProgress: (requestId: string, caller: string, signal: Signal) => void;
};
type Serving = CallSubjects & { readonly responder: Responder; readonly parsed: Map<string, Request> };

/** A message that is being answered. */
type Exchange = {
  readonly serving: Serving;
  readonly service: Service;
  readonly verb: Verb;
  readonly msg: Msg;
  readonly startedAt: number;
};

/** Room for headers and for what the client wraps around a payload. */
const PAGE_ROOM = 4_096;
const MAX_PARSED = 4_096;
const NOTHING = succeeded(Buffer.from('{}'));

export function serveCalls(responder: Responder, options: CallSubjects) {
  const { subjects, daemon, ports } = options;
  const serving: Serving = { ...options, responder, parsed: new Map() };
  const closeCancels = responder.subscribe(subjects.cancelPatterns(daemon), (msg) => cancel(serving, msg));

  function open(name: string): Close {
    const service = serviceOf(name, { subjects, daemon, fleet: ports.fleet, catalog: ports.catalog });
    const closers = subjects
      .patterns(name, daemon)
      .map((pattern) => responder.subscribe([pattern], (msg) => take(serving, service, pattern.verb, msg)));
    const micro = microService(responder.nc, service.description);
    return async () => void (await Promise.all([...closers.map((close) => close()), micro.stop()]));
  }

  const offer = createOffers(open);
  return {
    /** Opens the subjects of these servers, and closes those of all others. */
    offer,
    close: async (): Promise<void> => void (await Promise.all([offer([]), closeCancels()])),
  };
}

/** Whatever is wrong with a message, its caller gets one sentence. */
function take(serving: Serving, service: Service, verb: Verb, msg: Msg): void {
  const exchange: Exchange = { serving, service, verb, msg, startedAt: performance.now() };
  try {
    const request = parse(serving, msg.subject);
    const body = serving.responder.reply.requestBody(msg);
    if (Buffer.isBuffer(body)) handle(exchange, request, body);
    else body.then((bytes) => handle(exchange, request, bytes)).catch((error) => refuse(exchange, error));
  } catch (error) {
    refuse(exchange, error);
  }
}

/** The same few subjects come again and again. */
function parse({ parsed, subjects }: Serving, subject: string): Request {
  const known = parsed.get(subject);
  if (known) return known;
  const request = subjects.parse(subject);
  if (!request) throw new TroupeError('invalid', UNREADABLE);
  if (parsed.size >= MAX_PARSED) parsed.clear();
  parsed.set(subject, request);
  return request;
}

function handle(exchange: Exchange, request: Request, body: Buffer): void {
  const { msg, verb } = exchange;
  const order = msg.headers && orderOf(request, msg, body);
  if (order) return void create(exchange, order).catch((error) => refuse(exchange, error));
  const later = (result: Promise<Buffer>): void =>
    void result.then((bytes) => answer(exchange, bytes)).catch((error) => refuse(exchange, error));
  if (verb === 'list') return later(list(exchange, request, body));
  if (verb === 'subscribe' || verb === 'unsubscribe') return later(listen(exchange, request, verb, uriOf(body)));
  begin(exchange, request, body);
}

function answer({ serving, service, verb, msg, startedAt }: Exchange, result: Buffer): void {
  service.count(verb, startedAt);
  void serving.responder.send(msg, succeeded(result));
}

function refuse({ serving, service, verb, msg, startedAt }: Exchange, error: unknown): void {
  const { responder } = serving;
  const failure: Failure = { ...failureOf(error, responder.onTrouble), server: service.name };
  service.count(verb, startedAt, failure.message);
  void responder.send(msg, { ok: false, failure });
}

/** The caller is told when the task is on the disk; from then on the task does not depend on this connection. */
async function create({ serving, service, verb, msg, startedAt }: Exchange, order: Order): Promise<void> {
  const { nc } = serving.responder;
  const view = await OPERATIONS.taskCreate.run(serving.ports, order, callerOf({ caller: order.principal }));
  if (msg.reply) nc.publish(msg.reply, json(view), { headers: toHeaders({ 'Troupe-Task-Id': view.taskId }) });
  service.countCall(verb, order.tool, startedAt, NOTHING);
}

function list({ serving: { ports, responder } }: Exchange, request: Request, body: Buffer): Promise<Buffer> {
  const { server, tail: kind } = request;
  const page = { server, kind, cursor: cursorOf(body), maxBytes: responder.room(PAGE_ROOM) };
  return OPERATIONS.listPage.run(ports, page, callerOf(request));
}

async function listen(
  { serving: { ports, subjects }, msg }: Exchange,
  request: Request,
  verb: 'subscribe' | 'unsubscribe',
  uri: string,
): Promise<Buffer> {
  const { server } = request;
  const wanted = { server, uri, subscriber: subscriberOf(msg) };
  const { principal, ...lease } = await OPERATIONS[verb].run(ports, wanted, callerOf(request));
  return json({ subject: subjects.resourceUpdated(server, uri, principal), ...lease });
}

function begin(exchange: Exchange, request: Request, body: Buffer): void {
  const { serving, msg } = exchange;
  const { fleet } = serving.ports;
  const { caller, server } = request;
  const { requestId, isNamed, isStream, timeoutMs } = extrasOf(msg);
  if (isNamed && fleet.isInFlight(caller, requestId))
    throw new TroupeError('invalid', `a call with Troupe-Request-Id ${requestId} is in flight; use another id`);
  const { method, name, params } = askedOf(request, msg, body);
  const { reply } = serving.responder;
  const stream = isStream
    ? reply.stream(msg, () => fleet.cancel(caller, requestId, 'the caller went away'))
    : undefined;
  const settle = (outcome: Outcome): void => {
    exchange.service.countCall(exchange.verb, name, exchange.startedAt, outcome);
    void (stream ? stream.end(outcome) : reply.answer(msg, outcome));
  };
  const isTold = stream ? undefined : NEVER_TOLD;
  const call: Call = { requestId, server, method, name, params, principal: caller, door: 'nats', isTold, settle };
  if (!isNamed && !stream && timeoutMs === undefined) return submit(serving, call);
  stream?.ack(requestId);
  const onSignal = (signal: Signal): void => {
    stream?.signal(signal);
    serving.onProgress(requestId, caller, signal);
  };
  const isAbsent = stream && (() => untilConfirmed(stream, () => fleet.callerIs('back', caller, requestId)));
  const further = { isCancellable: isNamed || isStream, onSignal, isAbsent, ...(timeoutMs && { timeoutMs }) };
  submit(serving, Object.assign(call, further));
}

/**
 * A stream that nobody reads is noticed by its next sign of life only. So its caller counts as absent until the broker has said
 * whether it listens; without a bus nobody does.
 */
function untilConfirmed(stream: ReplyStream, onConfirmed: () => void): true {
  void stream.confirm().then(onConfirmed, () => {});
  return true;
}

function submit({ ports: { fleet } }: Serving, call: Call): void {
  try {
    if (!fleet.submit(call))
      fail(call, 'unknownServer', `server ${call.server} was removed; troupe ps lists those there are`);
  } catch (error) {
    fail(call, error instanceof TroupeError ? error.code : 'internal', sentence(error));
  }
}

const fail = (call: Call, code: FailureCode, message: string): void =>
  call.settle({ ok: false, failure: { code, delivery: 'not sent', message, server: call.server } });

/** Silence for an id that is not in flight here: another daemon may have it, and another caller's id is no concern of this one. */
function cancel({ subjects, ports, responder }: Serving, msg: Msg): void {
  const request = subjects.parse(msg.subject);
  if (request && OPERATIONS.cancel.run(ports, { requestId: request.tail }, callerOf(request)) && msg.reply)
    void responder.reply.answer(msg, NOTHING);
}
