// The MCP session with one server: it negotiates, sends only what was negotiated, and sorts what comes back.
// Nothing a server says is trusted: a malformed frame is dropped, an answer to no open request changes nothing.

import { randomUUID } from 'node:crypto';
import type { Answer, Call, Outcome } from '../../calls/call.ts';
import type { Lane } from '../../calls/lane.ts';
import type { Facts } from '../../catalog/facts.ts';
import type { Ask } from '../../catalog/fetch.ts';
import { errorFrame, notificationFrame, resultFrame } from '../../protocol/compose.ts';
import { codecOf, type Era, eraOf, LATEST } from '../../protocol/eras.ts';
import { type Failure, failing, rpcCodeOf, type TroupeError } from '../../protocol/failures.ts';
import { type Frame, readFrame } from '../../protocol/frame.ts';
import { NAME, VERSION } from '../../protocol/version.ts';
import { parsed, readNotice, type Said } from './notices.ts';
import type { OwnTasks } from './own-tasks.ts';
import { relatedTask, withoutRelated, withRelated } from './task-report.ts';

export type SessionOptions = {
  readonly lane: Lane;
  readonly server: string;
  readonly send: (frame: Buffer, method: string) => void;
  /** Sends our answer to a request of the server, which may ask faster than it reads. */
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
  /** A message that has no place in the protocol is dropped. */
  readonly onDropped: (why: string, line: Buffer) => void;
  /** Progress of a call that has ended, which is no fault of the server, or progress that goes backwards. */
  readonly onLateProgress: (line: Buffer) => void;
  readonly openMs: number;
  /** Where one host alone is served: what it declares that troupe has no word for. */
  readonly hostCapabilities?: () => object;
  /** A longer answer to a question is not sent; an error is, in its place. */
  readonly maxSendBytes: () => number;
  /** Why a request of our own must not be sent: much of it may be a caller's. */
  readonly refusalOf?: (call: Call) => Failure | undefined;
  /** The tasks of the server's own; without them every answer is that of a call. */
  readonly tasks?: Pick<OwnTasks, 'answer' | 'told' | 'behind'>;
};

/** A request of the server. */
export type Asked = {
  readonly method: string;
  readonly params: Buffer;
  readonly origin: string | undefined;
  readonly signal: AbortSignal;
  /** Aborted when the connection that the request came over is gone, also long after the answer. */
  readonly closed: AbortSignal;
  readonly answer: (answer: Answer) => void;
  readonly notify: (method: string, params: Buffer) => void;
};

const EMPTY = Buffer.from('{}');
/** The requests of a server that some host behind us may be able to answer; where none can, a model or a person may. */
const CAPABILITIES = {
  elicitation: { form: {}, url: {} },
  sampling: { tools: {} },
  roots: { listChanged: true },
  tasks: { list: {}, cancel: {}, requests: { sampling: { createMessage: {} }, elicitation: { create: {} } } },
};
/** Further questions of a server that has so many open are refused. */
const MAX_ASKS = 1_000;
const TOO_MANY = Buffer.from(JSON.stringify({ code: -32603, message: 'too many questions are open' }));

const TOO_LARGE = Buffer.from(
  JSON.stringify({ code: -32603, message: 'the answer is larger than x-troupe.maxSendBytes of this server allows' }),
);

export class ServerSession {
  /** Sends a request of our own. */
  readonly ask: Ask;
  /** The same, for whoever judges how it ends. */
  readonly inquire: Inquire;
  readonly #options: SessionOptions;
  readonly #tasks: NonNullable<SessionOptions['tasks']>;
  /** The open questions of the server, by its ids. */
  readonly #questions = new Map<string, AbortController>();
  readonly #closing = new AbortController();
  #era: Era | undefined;

  constructor(options: SessionOptions) {
    const { lane } = options;
    this.#options = options;
    this.#tasks = options.tasks ?? {
      answer: (id, event, body) => lane.answer(id, event, body),
      told: () => false,
      behind: (origin) => origin,
    };
    this.inquire = inquirer(options);
    this.ask = (method, params, timeoutMs) =>
      new Promise((resolve, reject) => {
        this.inquire(method, params, timeoutMs, (outcome) =>
          outcome.ok ? resolve(outcome.result) : reject(asError(method, outcome.failure)),
        );
      });
  }

  /** Also a second time, when the server has forgotten the first session and with it the questions that it had asked. */
  async open(): Promise<void> {
    const { openMs, send, onNegotiated, onReady, onRefused } = this.#options;
    this.#withdrawAll();
    const answer = await this.ask(
      'initialize',
      {
        protocolVersion: LATEST,
        capabilities: { ...this.#options.hostCapabilities?.(), ...CAPABILITIES },
        clientInfo: { name: NAME, version: VERSION },
      },
      openMs,
    );
    const facts = factsOf(answer);
    if (typeof facts === 'string') return onRefused(facts);
    this.#era = facts.era;
    onNegotiated(facts.era);
    send(notificationFrame('notifications/initialized'), 'notifications/initialized');
    onReady(facts);
  }

  receive(line: Buffer, origin?: string): void {
    this.#take(readFrame(line), line, origin);
  }

  readonly notify = (method: string, params?: Buffer): void =>
    this.#options.send(notificationFrame(method, params), method);

  cancel(id: string, reason: string): void {
    this.notify('notifications/cancelled', Buffer.from(JSON.stringify({ requestId: Number(id), reason })));
  }

  /** For good: no question that was asked here can still be answered. */
  close(): void {
    this.#withdrawAll();
    this.#closing.abort();
  }

  #take(frame: Frame, line: Buffer, origin: string | undefined): void {
    const { reply, onDropped } = this.#options;
    switch (frame.kind) {
      case 'result':
      case 'error': {
        const body = frame.kind === 'result' ? frame.result : frame.error;
        if (!this.#tasks.answer(frame.id, frame.kind, body)) onDropped('an answer to nobody', line);
        return;
      }
      case 'notification':
        return this.#notified(frame.method, frame.params ?? EMPTY, line, origin);
      case 'request':
        return this.#asked(frame.id, frame.method, frame.params ?? EMPTY, origin);
      case 'batch':
        if (this.#era && !codecOf(this.#era).allowsBatches)
          return onDropped(`a batch, which ${this.#era} does not have`, line);
        for (const part of frame.frames) this.#take(part, line, origin);
        return;
      case 'malformed':
        onDropped(frame.why, line);
        if (frame.id !== undefined)
          reply(errorFrame(frame.id, Buffer.from(JSON.stringify({ code: frame.code, message: frame.why }))));
        return;
    }
  }

  #notified(method: string, params: Buffer, line: Buffer, origin: string | undefined): void {
    const { lane, onNotice, onDropped, onLateProgress } = this.#options;
    const task = relatedTask(params);
    const notice = readNotice(method, withoutRelated(params));
    if (typeof notice === 'string') onDropped(notice, line);
    else if (notice.type === 'withdrawn') this.#withdraw(notice.id);
    else if (notice.type === 'task') {
      if (!this.#tasks.told(notice.task)) onDropped('the status of no task', line);
    } else if (notice.type === 'progress') {
      if (!lane.progress(notice.token, notice.progress)) onLateProgress(line);
    } else onNotice(notice, this.#tasks.behind(origin, task));
  }

  #asked(id: string, method: string, params: Buffer, origin: string | undefined): void {
    const { reply, onAsk, maxSendBytes } = this.#options;
    if (method === 'ping') return reply(resultFrame(id, EMPTY));
    if (this.#questions.size >= MAX_ASKS || this.#questions.has(id)) return reply(errorFrame(id, TOO_MANY));
    const question = new AbortController();
    this.#questions.set(id, question);
    const task = method.startsWith('tasks/') ? undefined : relatedTask(params);
    const answer = (given: Answer): void => {
      if (this.#questions.get(id) !== question) return; // withdrawn, and perhaps the id given to another question
      this.#questions.delete(id);
      const frame = given.ok ? resultFrame(id, withRelated(given.result, task)) : errorFrame(id, given.error);
      reply(frame.length <= maxSendBytes() ? frame : errorFrame(id, TOO_LARGE));
    };
    onAsk({
      method,
      params: withoutRelated(params),
      origin: this.#tasks.behind(origin, task),
      signal: question.signal,
      closed: this.#closing.signal,
      answer,
      notify: this.notify,
    });
  }

  #withdrawAll(): void {
    for (const id of this.#questions.keys()) this.#withdraw(id);
  }

  #withdraw(id: string): void {
    const question = this.#questions.get(id);
    this.#questions.delete(id);
    question?.abort();
  }
}

type Initialized = { protocolVersion?: unknown; capabilities?: unknown; serverInfo?: unknown; instructions?: unknown };

/** What a server says of itself beyond our words is kept for as long as it is open, so its size is bounded. */
const MAX_OTHERS = 65_536;

function factsOf(answer: Buffer): Facts | string {
  const { protocolVersion, capabilities, serverInfo, instructions, ...others } = parsed(answer) as Initialized;
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
    ...(JSON.stringify(others).length <= MAX_OTHERS && { others }),
  };
}

export type Inquire = (
  method: string,
  params: object,
  timeoutMs: number | undefined,
  settle: (outcome: Outcome) => void,
) => void;

/** Requests of our own to a server: the handshake, lists, pings, subscriptions. They run the same chart as a caller's. */
function inquirer({ lane, server, refusalOf }: SessionOptions): Inquire {
  return (method, params, timeoutMs, settle) => {
    const call: Call = {
      requestId: randomUUID(),
      server,
      method,
      name: '',
      params: Buffer.from(JSON.stringify(params)),
      principal: '_',
      door: 'troupe',
      ...(timeoutMs !== undefined && { timeoutMs }),
      settle,
    };
    const failure = refusalOf?.(call);
    if (failure) settle({ ok: false, failure });
    else lane.ask(call);
  };
}

/** An error with the server's own words, where it has said any. */
function asError(method: string, failure: Failure): TroupeError {
  if (!failure.error) return failing(failure);
  const text = failure.error.toString('utf8').slice(0, 300);
  return failing(failure, `${method} was answered with error ${rpcCodeOf(failure)}: ${text}`);
}
