// What is done for a server beside its calls: when a session opens its lists are read, its log level set and its
// subscriptions made again; and what it says unasked is told to those whom it concerns.

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
  /** What somebody agreed to do at an address is done. */
  elicited(member: Member, elicitationId: string, params: Buffer): void;
};

const LOGS_PER_SECOND = 200;

export type UpkeepOptions = {
  readonly lists: Lists;
  readonly news: News;
  /** What the hosts of this server want to hear of. */
  readonly levelsFor: (member: Member) => readonly Level[];
};

export function createUpkeep({ lists, news, levelsFor }: UpkeepOptions) {
  const paces = new WeakMap<Member, ReturnType<typeof allowance>>();
  const asks = new WeakMap<Member, Ask>();
  const updates = new WeakMap<Member, Updates>();
  const levels = new WeakMap<Ask, Level | undefined>(); // of a connection: the next one begins anew

  const attempt = ({ logger }: Member, work: Promise<unknown>) => work.catch((error) => logger.warn(sentence(error)));

  /** The server is set to the most verbose level that any host wants; the others are spared the rest on its way to them. */
  function setLevel(member: Member, ask: Ask): void {
    if (!member.facts || !offers(member.facts, 'logging/setLevel')) return;
    const level = mostVerbose([member.config.settings.logLevel, ...levelsFor(member.first ?? member)]);
    if (levels.get(ask) === level) return;
    levels.set(ask, level);
    void attempt(member, ask('logging/setLevel', { level }));
  }

  async function opened(member: Member, ask: Ask): Promise<void> {
    const { facts, subscriptions } = member;
    asks.set(member, ask);
    setLevel(member, ask);
    if (facts && offers(facts, 'resources/subscribe'))
      void attempt(
        member,
        subscriptions.connect(async (method, uri) => void (await ask(method, { uri }))),
      );
    if (!member.first) await lists.opened(member, ask);
  }

  /** Its level and the tools it may show are settings; one that sleeps learns of them when it wakes. */
  function retuned(member: Member): void {
    relevel(member);
    if (member.state === 'ready') lists.changed(member, 'tools');
  }

  function relevel(member: Member): void {
    for (const each of member.pool?.processes() ?? [member]) {
      const ask = asks.get(each);
      if (ask && each.state === 'ready') setLevel(each, ask);
    }
  }

  function said(member: Member, notice: Said, origin: string | undefined): void {
    switch (notice.type) {
      case 'listChanged':
        return member.first ? undefined : lists.changed(member, notice.kind);
      case 'elicited':
        return news.elicited(member, notice.elicitationId, notice.params);
      case 'updated':
        return member.first ? undefined : updatesOf(member).take(notice.uri, notice.params);
      case 'log':
        return logged(member, notice.level, notice.params, origin);
    }
  }

  function updatesOf(member: Member): Updates {
    const known = updates.get(member) ?? createUpdates((uri, params) => news.updated(member, uri, params));
    updates.set(member, known);
    return known;
  }

  function logged(member: Member, level: string, params: Buffer, origin: string | undefined): void {
    const pace = paces.get(member) ?? allowance(LOGS_PER_SECOND);
    paces.set(member, pace);
    if (!pace.take()) return;
    const missing = pace.forget();
    const audience = audienceOf(member, origin);
    if (audience.to === 'caller') requestBehind(member.lane, origin)?.call.onSignal?.({ type: 'log', level, params });
    writeLog(member.logger, level, params, missing);
    news.log(member.first ?? member, level, params, audience);
  }

  return { opened: (member: Member, ask: Ask) => void opened(member, ask), retuned, relevel, said };
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
/** Resources that are told of within one interval; what is beyond is dropped. */
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
