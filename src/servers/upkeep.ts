// The work for a server beside its calls: when a session opens its lists are read, its log level set and its subscriptions
// made again; and its notifications are told to the hosts and callers whom they concern.

import type { Logger } from 'pino';
import { offers } from '../catalog/facts.ts';
import type { Ask } from '../catalog/fetch.ts';
import { sentence } from '../protocol/failures.ts';
import { type Level, mostVerbose } from '../protocol/signals.ts';
import { allowance } from '../telemetry/allowance.ts';
import { type Audience, audienceOf, requestBehind } from './attribution.ts';
import type { Said } from './connection/notices.ts';
import type { Lists } from './lists.ts';
import type { Member } from './member.ts';

/** Where news of servers goes. */
export type News = {
  log(member: Member, level: string, params: Buffer, audience: Audience): void;
  updated(member: Member, uri: string, params: Buffer): void;
  /** A notification that MCP does not have. */
  foreign(member: Member, method: string, params: Buffer, audience: Audience): void;
  /** A person has done what the server wanted done at an address. */
  elicited(member: Member, elicitationId: string, params: Buffer): void;
};

const LOGS_PER_SECOND = 200;

export type UpkeepOptions = {
  readonly lists: Lists;
  readonly news: News;
  /** The log levels that the hosts of this server want to hear. */
  readonly levelsFor: (member: Member) => readonly Level[];
};

/** The session that is open with a server, and the log level that it was set to. */
type Opened = { readonly ask: Ask; level: Level | undefined };

export class Upkeep {
  readonly #options: UpkeepOptions;
  readonly #sessions = new WeakMap<Member, Opened>();
  readonly #updates = new WeakMap<Member, Updates>();
  readonly #logPaces = new WeakMap<Member, ReturnType<typeof allowance>>();

  constructor(options: UpkeepOptions) {
    this.#options = options;
  }

  /** Resolves when the server has answered what hosts want of it; undefined where they want nothing. */
  readonly opened = (member: Member, ask: Ask): Promise<unknown> | undefined => {
    const { facts, subscriptions } = member;
    const isWanted = !subscriptions.isEmpty || this.#options.levelsFor(member).length > 0;
    this.#sessions.set(member, { ask, level: undefined });
    const told = [this.#setLevel(member)];
    if (facts && offers(facts, 'resources/subscribe'))
      told.push(
        attempt(
          member,
          subscriptions.connect(async (method, uri) => void (await ask(method, { uri }))),
        ),
      );
    if (!member.first) queueMicrotask(() => void this.#options.lists.opened(member, ask)); // calls that wait go first
    return isWanted ? Promise.all(told) : undefined;
  };

  /** The log level and the tools that a server may show are settings; a server that sleeps learns of them when it wakes. */
  readonly retuned = (member: Member): void => {
    this.relevel(member);
    if (member.state === 'ready') this.#options.lists.changed(member, 'tools');
  };

  readonly relevel = (member: Member): void => {
    for (const each of member.pool?.processes() ?? [member]) if (each.state === 'ready') void this.#setLevel(each);
  };

  readonly said = (member: Member, notice: Said, origin: string | undefined): void => {
    const { lists, news } = this.#options;
    switch (notice.type) {
      case 'listChanged':
        return member.first ? undefined : lists.changed(member, notice.capability);
      case 'elicited':
        return news.elicited(member, notice.elicitationId, notice.params);
      case 'updated':
        return this.#updatesOf(member).take(notice.uri, notice.params);
      case 'log':
        return this.#logged(member, notice.level, notice.params, origin);
      case 'foreign':
        return this.#passed(member, notice.method, notice.params, origin);
    }
  };

  /** The server is set to the most verbose level that any host wants; hosts that want less are spared the rest. */
  #setLevel(member: Member): Promise<void> | undefined {
    const session = this.#sessions.get(member);
    if (!session || !member.facts || !offers(member.facts, 'logging/setLevel')) return undefined;
    const level = mostVerbose([member.config.settings.logLevel, ...this.#options.levelsFor(member)]);
    if (session.level === level) return undefined;
    session.level = level;
    return attempt(member, session.ask('logging/setLevel', { level }));
  }

  #updatesOf(member: Member): Updates {
    const { news } = this.#options;
    const known = this.#updates.get(member) ?? createUpdates((uri, params) => news.updated(member, uri, params));
    this.#updates.set(member, known);
    return known;
  }

  /** To whom a log line would go: what it is about nobody here knows. */
  #passed(member: Member, method: string, params: Buffer, origin: string | undefined): void {
    if (!this.#paceOf(member).take()) return;
    const audience = audienceOf(member, origin);
    const session = requestBehind(member.lane, origin)?.call.holder;
    member.logger.debug({ source: 'protocol' }, `passes ${method}`);
    if (audience.to !== 'caller') this.#options.news.foreign(member, method, params, audience);
    else if (session !== undefined) this.#options.news.foreign(member, method, params, { to: 'session', session });
  }

  #paceOf(member: Member): ReturnType<typeof allowance> {
    const pace = this.#logPaces.get(member) ?? allowance(LOGS_PER_SECOND);
    this.#logPaces.set(member, pace);
    return pace;
  }

  #logged(member: Member, level: string, params: Buffer, origin: string | undefined): void {
    const pace = this.#paceOf(member);
    if (!pace.take()) return;
    const missing = pace.forget();
    const audience = audienceOf(member, origin);
    if (audience.to === 'caller') requestBehind(member.lane, origin)?.call.onSignal?.({ type: 'log', level, params });
    writeLog(member.logger, level, params, missing);
    this.#options.news.log(member, level, params, audience);
  }
}

function attempt({ logger }: Member, work: Promise<unknown>): Promise<void> {
  return work.then(
    () => {},
    (error) => logger.warn(sentence(error)),
  );
}

const PINO_LEVEL: Record<string, 'debug' | 'info' | 'warn' | 'error'> = {
  debug: 'debug',
  info: 'info',
  notice: 'info',
  warning: 'warn',
  error: 'error',
  critical: 'error',
  alert: 'error',
  emergency: 'error',
};
const LOG_CHARACTERS = 4_096;

function writeLog(logger: Logger, level: string, params: Buffer, missing: number): void {
  const { data, logger: name } = JSON.parse(params.toString());
  const text = (typeof data === 'string' ? data : (JSON.stringify(data) ?? '')).slice(0, LOG_CHARACTERS);
  const fields = {
    source: 'mcp',
    ...(typeof name === 'string' && { name: name.slice(0, 128) }),
    ...(missing > 0 && { missing }),
  };
  logger[PINO_LEVEL[level] ?? 'info'](fields, text);
}

type Updates = ReturnType<typeof createUpdates>;

const INTERVAL_MS = 50;
/** Resources that are told of within one interval; updates of further ones are dropped. */
const MAX_AT_ONCE = 1_000;

/**
 * Updates of resources at a pace that their readers can take: the first at once, then the newest of each interval. A server
 * may tell of one resource ten thousand times a second; whoever reads it again gets the newest anyway.
 */
export function createUpdates(tell: (uri: string, params: Buffer) => void) {
  const waiting = new Map<string, Buffer | undefined>();

  function due(uri: string): void {
    const newest = waiting.get(uri);
    waiting.delete(uri);
    if (newest) take(uri, newest);
  }

  function take(uri: string, params: Buffer): void {
    if (waiting.has(uri)) return void waiting.set(uri, params);
    if (waiting.size >= MAX_AT_ONCE) return;
    waiting.set(uri, undefined);
    setTimeout(due, INTERVAL_MS, uri).unref();
    tell(uri, params);
  }

  return { take };
}
