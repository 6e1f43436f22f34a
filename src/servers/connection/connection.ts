// The server machine's port to a real MCP server, over whichever link its configuration names. Everything that can go
// wrong with the server leaves here as an event; nothing throws inward. When the machine lets go of a connection, it dies at once.

import type { Logger } from 'pino';
import { fromCallback } from 'xstate';
import type { FromConnection, ServerSpec, ToConnection } from '../../../machines/server.ts';
import type { Call } from '../../calls/call.ts';
import type { Facts } from '../../catalog/facts.ts';
import { rpcCodeOf, sentence, TroupeError, thrownWhole } from '../../protocol/failures.ts';
import { allowance } from '../../telemetry/allowance.ts';
import { failpoint } from '../../telemetry/failpoints.ts';
import type { Member } from '../member.ts';
import { harmOf } from '../policy.ts';
import type { RemoteWorld } from '../remote/link.ts';
import { remoteLink } from '../remote/loader.ts';
import { type StdioWorld, stdioLink } from '../stdio/link.ts';
import { type Health, watchHealth } from './health.ts';
import type { Link, LinkEvents } from './link.ts';
import type { Said } from './notices.ts';
import { OwnTasks } from './own-tasks.ts';
import { type Asked, ServerSession, type SessionOptions } from './session.ts';

export type ConnectionWorld = StdioWorld &
  RemoteWorld & {
    readonly memberOf: (name: string) => Member;
    /** The session is open, and no call is sent for a while, until what hosts have told the last one is told to it again. */
    readonly onOpen: (
      member: Member,
      ask: ServerSession['ask'],
      notify: ServerSession['notify'],
    ) => Promise<unknown> | undefined;
    /** What the host declares whom this process serves alone, in words that are not ours. */
    readonly hostCapabilities?: (member: Member) => object;
    /** The server asks a question; it is answered once, or withdraws the question. */
    readonly onAsk: (member: Member, asked: Asked) => void;
    readonly onNotice: (member: Member, notice: Said, origin: string | undefined) => void;
    /** What is said of a server's trouble passes here, because a server may have put a secret into its words. */
    readonly mask?: (text: string) => string;
  };

export function serverConnection(world: ConnectionWorld) {
  return fromCallback<ToConnection, ServerSpec>(({ input, receive, sendBack }) => {
    const connection = new Connection(world, world.memberOf(input.name), sendBack as (event: FromConnection) => void);
    connection.open();
    receive(({ type }) => connection[type]());
    return () => connection.kill();
  });
}

/** How long calls wait for a server that does not answer what it is told again. */
const RESTORE_MS = 1_000;

class Connection {
  readonly #world: ConnectionWorld;
  readonly #member: Member;
  readonly #tell: (event: FromConnection) => void;
  readonly #link: Link;
  readonly #tasks: OwnTasks;
  readonly #session: ServerSession;
  readonly #health: Health;
  /** Why the calls in flight are lost when the connection is. */
  #why = 'it was stopped';
  #isKilled = false;
  readonly #tooLong = allowance(20);

  constructor(world: ConnectionWorld, member: Member, tell: (event: FromConnection) => void) {
    const { lane, config } = member;
    this.#world = world;
    this.#member = member;
    this.#tell = tell;
    this.#link =
      config.transport === 'stdio'
        ? stdioLink(world, member, config, this.#linkEvents())
        : remoteLink(world, member, config, this.#linkEvents());
    this.#tasks = new OwnTasks({
      member,
      catalog: world.catalog,
      send: (frame, id, call) => this.#send(frame, id, call),
      giveUp: (id, reason) => this.#giveUp(id, reason),
    });
    this.#session = new ServerSession(this.#sessionOptions());
    this.#health = watchHealth({
      member,
      link: this.#link,
      inquire: this.#session.inquire,
      tell,
      onSick: (reason) => this.#ended(reason, false),
    });
    lane.attach({
      write: (frame, id, call) => this.#tasks.write(frame, id, call),
      cancel: (id, why) => this.#tasks.cancel(id, why),
      hasRoom: this.#link.hasRoom,
    });
  }

  open(): void {
    this.#session
      .open()
      .catch((error) => this.#ended(`it did not open a session: ${sentence(error)}`, isRefusal(error)));
  }

  probe(): void {
    this.#health.probe();
  }

  /** Tells when no call is in flight any more. */
  drain(): void {
    this.#member.lane.whenIdle(() => this.#tell({ type: 'connection.drained' }));
  }

  /** Says goodbye to the server; the link tells when it is closed. */
  close(): void {
    this.#link.close();
  }

  kill(): void {
    const { lane, subscriptions, givenUp } = this.#member;
    this.#isKilled = true;
    givenUp.clear();
    this.#member.notify = undefined;
    this.#health.stop();
    subscriptions.disconnect();
    lane.whenIdle(undefined);
    this.#link.kill();
    this.#session.close();
    lane.detach(this.#why);
    this.#tasks.close();
  }

  #linkEvents(): LinkEvents {
    const { lane, logger } = this.#member;
    return {
      onMessage: (bytes, origin) => this.#session.receive(bytes, origin),
      onChunk: () => this.#health.pace(),
      onRoom: () => lane.pump(),
      onClosed: (reason, isFinal) => this.#ended(reason, isFinal),
      onShort: (why) => {
        this.#why = why;
        this.#tell({ type: 'connection.short', why });
      },
      onUnauthorized: (reason) => {
        const why = this.#masked(reason);
        this.#why = why;
        this.#tell({ type: 'connection.unauthorized', why });
      },
      onUnreachable: (why) => this.#health.unreachable(`it cannot be reached: ${why}`),
      onSessionLost: () => {
        logger.info('it forgot the session; a new one is opened');
        this.open();
      },
      onFailed: (id, failure) => {
        this.#tasks.failed(id);
        lane.fail(id, { ...failure, message: this.#masked(failure.message) });
        this.#health.failed(failure);
      },
      isPending: (id) => this.#tasks.isPending(id),
    };
  }

  /** Every message that is not the answer to a request of ours counts as noise. */
  #sessionOptions(): SessionOptions {
    const { lane, server, logger, config } = this.#member;
    const logDropped = droppedLog(logger);
    return {
      lane,
      server,
      openMs: config.settings.openMs,
      hostCapabilities: () => this.#world.hostCapabilities?.(this.#member) ?? {},
      maxSendBytes: () => this.#member.config.settings.maxSendBytes,
      refusalOf: (call) => harmOf(this.#member, call),
      send: (frame, method) => this.#notify(frame, method),
      reply: (frame) => this.#reply(frame),
      onNegotiated: this.#link.negotiated,
      onReady: (facts) => this.#ready(facts),
      onRefused: (reason) => this.#ended(reason, true),
      tasks: {
        answer: (id, event, body) => this.#answered(id, event, body),
        told: (task) => {
          this.#health.noise();
          return this.#tasks.told(task);
        },
        behind: (origin, taskId) => this.#tasks.behind(origin, taskId),
      },
      onNotice: (notice, origin) => {
        this.#health.noise();
        this.#world.onNotice(this.#member, notice, origin);
      },
      onAsk: (asked) => this.#world.onAsk(this.#member, asked),
      onLateProgress: (line) => {
        this.#health.noise();
        logger.debug({ source: 'protocol' }, `late progress: ${line.subarray(0, 200)}`);
      },
      onDropped: (reason, line) => {
        this.#health.noise();
        logDropped(reason, line);
      },
    };
  }

  #send(frame: Buffer, id: string, call: Call): void {
    this.#link.request(frame, id, call);
    if (call.task !== undefined) setImmediate(failpoint, 'task.sent'); // the written frame is flushed first
  }

  /** A notification has nobody who could be told that it is too long. */
  #notify(frame: Buffer, method: string): void {
    const { maxSendBytes } = this.#member.config.settings;
    if (frame.length <= maxSendBytes) return this.#link.notify(frame, method);
    if (this.#tooLong.take())
      this.#member.logger.warn(
        `${method.slice(0, 60)} has ${frame.length} bytes; x-troupe.maxSendBytes (${maxSendBytes}) is the most, so it was not sent`,
      );
  }

  #answered(id: string, event: 'result' | 'error', body: Buffer): boolean {
    if (this.#tasks.answer(id, event, body)) return true;
    this.#member.givenUp.answered(id);
    return false;
  }

  #giveUp(id: string, reason: string): void {
    if (this.#link.drop(id)) this.#session.cancel(id, reason);
  }

  #reply(frame: Buffer): void {
    this.#health.noise();
    if (!this.#link.reply(frame)) this.#ended('it asks, but does not read the answers', false);
  }

  #ready(facts: Facts): void {
    this.#member.facts = facts;
    // A new function for each session: levels and subscriptions of the last session do not hold in this one. They are made
    // again before any call that waits is let through, which may count on them.
    const ask: ServerSession['ask'] = (...asked) => this.#session.ask(...asked);
    const restored = this.#world.onOpen(this.#member, ask, this.#session.notify);
    if (!restored) return this.#opened();
    const patience = new Promise((resolve) => setTimeout(resolve, RESTORE_MS).unref());
    void Promise.race([restored, patience]).then(() => this.#opened());
  }

  #opened(): void {
    if (this.#isKilled) return;
    this.#member.notify = (method, params) => this.#link.hasRoom() && this.#session.notify(method, params);
    this.#tell({ type: 'connection.ready' });
    this.#health.start();
  }

  #masked(text: string): string {
    return this.#world.mask?.(text) ?? text;
  }

  /** Whether a call has ended the process. What others run is out of reach of such a judgement. */
  #isBlamed(): boolean {
    const { config, state, lane, suspects, givenUp } = this.#member;
    if (config.transport !== 'stdio' || state !== 'ready') return false;
    const there = lane.atServer().filter(({ call }) => call.door !== 'troupe' || call.method === 'resources/subscribe');
    return suspects.died(
      there.map(({ call }) => call),
      givenUp.recent(),
    );
  }

  #ended(reason: string, isFinal: boolean): void {
    const why = this.#masked(reason);
    this.#why = why;
    if (isFinal) return this.#tell({ type: 'connection.refused', why });
    this.#tell({ type: 'connection.closed', why, ...(this.#isBlamed() && { isBlamed: true }) });
  }
}

/** Servers of newer versions of MCP say with this error that they speak none of ours. */
const UNSUPPORTED_VERSION = -32022;

/** Whether trying again would not help. */
function isRefusal(error: unknown): boolean {
  const failure = error instanceof TroupeError ? thrownWhole(error) : undefined;
  return failure?.error !== undefined && rpcCodeOf(failure) === UNSUPPORTED_VERSION;
}

/**
 * Messages of a server that have no place in the protocol are dropped: a line of text, an answer to no request, a late one.
 * They are logged at a bounded pace for those who debug the server.
 */
function droppedLog(logger: Logger): (why: string, line: Buffer) => void {
  const pace = allowance(20);
  return (why, line) => {
    if (!pace.take()) return;
    const missing = pace.forget();
    const excerpt = line.subarray(0, 200).toString('utf8');
    logger.warn({ source: 'protocol', excerpt, ...(missing > 0 && { missing }) }, `dropped ${why}`);
  };
}
