// The MCP session with one server: it negotiates, sends only what was negotiated, and sorts what comes back.
// Nothing a server says is trusted: a bad frame is counted and dropped, an answer to nobody changes nothing.

import { randomUUID } from 'node:crypto';
import type { Answer, Call } from '../../calls/call.ts';
import type { Lane } from '../../calls/lane.ts';
import type { Facts } from '../../catalog/facts.ts';
import type { Ask } from '../../catalog/fetch.ts';
import { errorFrame, notificationFrame, resultFrame } from '../../protocol/compose.ts';
import { codecOf, type Era, eraOf, LATEST } from '../../protocol/eras.ts';
import { type Failure, rpcCodeOf, TroupeError } from '../../protocol/failures.ts';
import { type Frame, readFrame } from '../../protocol/frame.ts';
import { VERSION, VIA } from '../../protocol/version.ts';
import { parsed, readNotice, type Said } from './notices.ts';
import type { OwnTasks } from './own-tasks.ts';
import { relatedTask, withoutRelated, withRelated } from './task-report.ts';

export type SessionOptions = {
  readonly lane: Lane;
  readonly server: string;
  readonly send: (frame: Buffer, method: string) => void;
  /** An answer to what the server asked; it may ask faster than it reads. */
  readonly reply: (frame: Buffer) => void;
  /** Both sides speak this version from now on, beginning with what is sent next. */
  readonly onNegotiated: (era: Era) => void;
  readonly onReady: (facts: Facts) => void;
  /** This server cannot be talked to at all, and trying again would not help. */
  readonly onRefused: (why: string) => void;
  /** `origin` is our id of the request that the notice belongs to: the one whose task it names, or on whose own stream it came. */
  readonly onNotice: (notice: Said, origin: string | undefined) => void;
  /** The server asks us something other than `ping`, and is answered once; or the signal says that it asks no more. */
  readonly onAsk: (asked: Asked) => void;
  readonly onStray: (why: string, line: Buffer) => void;
  /** Progress of a call that is over, which is nobody's fault, or that goes backwards. */
  readonly onLate: (line: Buffer) => void;
  readonly openMs: number;
  /** The tasks of its own, where it may have any. */
  readonly upstream?: Pick<OwnTasks, 'answer' | 'told' | 'behind'>;
  /** Which daemon we are: one that is asked to serve itself knows itself by it. */
  readonly via?: string | undefined;
};

export type Asked = {
  readonly method: string;
  readonly params: Buffer;
  readonly origin: string | undefined;
  readonly signal: AbortSignal;
  /** Aborted when the connection that it came over is gone, also long after the answer. */
  readonly closed: AbortSignal;
  readonly answer: (answer: Answer) => void;
  readonly notify: (method: string, params: Buffer) => void;
};

export type Session = ReturnType<typeof createSession>;

const EMPTY = Buffer.from('{}');
/** What a host behind us may be able to answer; where none can, somebody else may. */
const CAPABILITIES = {
  elicitation: { form: {}, url: {} },
  sampling: { tools: {} },
  roots: { listChanged: true },
  tasks: { list: {}, cancel: {}, requests: { sampling: { createMessage: {} }, elicitation: { create: {} } } },
};
/** A server with so many open questions asks nobody any more. */
const MAX_ASKS = 1_000;
const TOO_MANY = Buffer.from(JSON.stringify({ code: -32603, message: 'too many questions are open' }));

export function createSession(options: SessionOptions) {
  const { lane, server, send, reply, onNegotiated, onReady, onRefused, onNotice, onAsk, onStray, onLate } = options;
  const { upstream = { answer: lane.answer.bind(lane), told: () => false, behind: (origin) => origin } } = options;
  const asks = new Map<string, AbortController>();
  const closing = new AbortController();
  const ask = asker(lane, server);
  let era: Era | undefined;

  /** Also a second time, when the server has forgotten the first session: what it had asked is forgotten with it. */
  async function open(): Promise<void> {
    close();
    const clientInfo = { name: 'troupe', version: VERSION };
    const _meta = { [VIA]: options.via };
    const params = { protocolVersion: LATEST, capabilities: CAPABILITIES, clientInfo, _meta };
    const answer = await ask('initialize', params, options.openMs);
    const facts = factsOf(answer);
    if (typeof facts === 'string') return onRefused(facts);
    era = facts.era;
    onNegotiated(era);
    send(notificationFrame('notifications/initialized'), 'notifications/initialized');
    onReady(facts);
  }

  function receive(line: Buffer, origin?: string): void {
    take(readFrame(line), line, origin);
  }

  function take(frame: Frame, line: Buffer, origin: string | undefined): void {
    switch (frame.kind) {
      case 'result':
      case 'error': {
        const body = frame.kind === 'result' ? frame.result : frame.error;
        if (!upstream.answer(frame.id, frame.kind, body)) onStray('an answer to nobody', line);
        return;
      }
      case 'notification':
        return notified(frame.method, frame.params ?? EMPTY, line, origin);
      case 'request':
        return asked(frame.id, frame.method, frame.params ?? EMPTY, origin);
      case 'batch':
        if (era && !codecOf(era).allowsBatches) return onStray(`a batch, which ${era} does not have`, line);
        for (const part of frame.frames) take(part, line, origin);
        return;
      case 'malformed':
        onStray(frame.why, line);
        if (frame.id !== undefined)
          reply(errorFrame(frame.id, Buffer.from(JSON.stringify({ code: frame.code, message: frame.why }))));
        return;
    }
  }

  function notified(method: string, params: Buffer, line: Buffer, origin: string | undefined): void {
    const task = relatedTask(params);
    const notice = readNotice(method, withoutRelated(params));
    if (typeof notice === 'string') return onStray(notice, line);
    if (notice.type === 'withdrawn') return withdraw(notice.id);
    if (notice.type === 'task') return upstream.told(notice.task) ? undefined : onStray('the status of no task', line);
    if (notice.type !== 'progress') return onNotice(notice, upstream.behind(origin, task));
    if (!lane.progress(notice.token, notice.progress)) onLate(line);
  }

  /** Nobody there waits for an answer any more. */
  function close(): void {
    for (const id of asks.keys()) withdraw(id);
  }

  function withdraw(id: string): void {
    const question = asks.get(id);
    asks.delete(id);
    question?.abort();
  }

  function asked(id: string, method: string, params: Buffer, origin: string | undefined): void {
    if (method === 'ping') return reply(resultFrame(id, EMPTY));
    if (asks.size >= MAX_ASKS || asks.has(id)) return reply(errorFrame(id, TOO_MANY));
    const controller = new AbortController();
    asks.set(id, controller);
    const task = method.startsWith('tasks/') ? undefined : relatedTask(params);
    const answer = (given: Answer): void => {
      if (asks.get(id) !== controller) return; // withdrawn, and perhaps the id given to another question
      asks.delete(id);
      reply(given.ok ? resultFrame(id, withRelated(given.result, task)) : errorFrame(id, given.error));
    };
    onAsk({
      method,
      params: withoutRelated(params),
      origin: upstream.behind(origin, task),
      signal: controller.signal,
      closed: closing.signal,
      answer,
      notify,
    });
  }

  const notify = (method: string, params?: Buffer): void => send(notificationFrame(method, params), method);

  return {
    open,
    receive,
    ask,
    notify,
    /** For good: nobody comes back to what was asked here. */
    close(): void {
      close();
      closing.abort();
    },
    cancel(id: string, reason: string): void {
      const params = Buffer.from(JSON.stringify({ requestId: Number(id), reason }));
      send(notificationFrame('notifications/cancelled', params), 'notifications/cancelled');
    },
  };
}

type Initialized = { protocolVersion?: unknown; capabilities?: unknown; serverInfo?: unknown; instructions?: unknown };

function factsOf(answer: Buffer): Facts | string {
  const { protocolVersion, capabilities, serverInfo, instructions } = parsed(answer) as Initialized;
  const era = typeof protocolVersion === 'string' ? eraOf(protocolVersion) : undefined;
  if (!era)
    return `it speaks MCP ${JSON.stringify(protocolVersion)?.slice(0, 40)}, which troupe does not know; update troupe or the server`;
  const info = (serverInfo && typeof serverInfo === 'object' ? serverInfo : {}) as {
    name?: unknown;
    version?: unknown;
  };
  return {
    era,
    capabilities: codecOf(era).serverCapabilities(
      (capabilities && typeof capabilities === 'object' ? capabilities : {}) as Facts['capabilities'],
    ),
    name: String(info.name ?? ''),
    version: String(info.version ?? ''),
    info: { name: '', version: '', ...info },
    ...(typeof instructions === 'string' && { instructions }),
  };
}

/**
 * Requests of our own to a server: the handshake, lists, pings, subscriptions. They run the same chart as a caller's, and
 * end in the result's bytes or in a TroupeError with the server's own words.
 */
function asker(lane: Lane, server: string): Ask {
  return (method, params, timeoutMs) =>
    new Promise((resolve, reject) => {
      const call: Call = {
        requestId: randomUUID(),
        server,
        method,
        name: '',
        params: Buffer.from(JSON.stringify(params)),
        principal: '_',
        door: 'troupe',
        ...(timeoutMs !== undefined && { timeoutMs }),
        settle: (outcome) => (outcome.ok ? resolve(outcome.result) : reject(asError(method, outcome.failure))),
      };
      lane.ask(call);
    });
}

function asError(method: string, failure: Failure): TroupeError {
  if (!failure.error) return new TroupeError(failure.code, failure.message);
  const text = failure.error.toString('utf8').slice(0, 300);
  return new TroupeError('rejected', `${method} was answered with error ${rpcCodeOf(failure)}: ${text}`);
}
