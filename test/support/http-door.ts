// A listening HTTP door with sessions played by hand: `echo` is answered at once, every other request waits until the test
// speaks on its line. Streams are kept in memory, and committed a turn later as a disk would.

import { randomBytes } from 'node:crypto';
import { EventEmitter } from 'node:events';
import { connect } from 'node:net';
import { pino } from 'pino';
import { type Dispatcher, request } from 'undici';
import type { HttpSettings } from '../../src/config/schema.ts';
import { peersOf } from '../../src/doors/http/peers.ts';
import { type HttpOptions, openHttp } from '../../src/doors/http/server.ts';
import { resultFrame } from '../../src/protocol/compose.ts';
import type { Era } from '../../src/protocol/eras.ts';
import { eraOf } from '../../src/protocol/eras.ts';
import { TroupeError } from '../../src/protocol/failures.ts';
import type { Frame } from '../../src/protocol/frame.ts';
import { member, stringOf } from '../../src/protocol/json.ts';
import type { HostSession, Line, Sessions, Streams } from '../../src/sessions/host.ts';
import { realWorld } from '../../src/world/world.ts';

export const BOTH = 'application/json, text/event-stream';
export const SETTINGS: HttpSettings = {
  ...{
    enabled: true,
    tokens: {},
    requireToken: false,
    origins: [],
    hosts: [],
    maxBodyBytes: 64 * 1024,
    maxSessions: 8,
  },
  ...{ maxStreams: 4, sessionIdleMs: 60_000, keepAliveMs: 60_000 },
};

type Asked = { readonly session: string; readonly frame: Frame; readonly line: Line };

export function handmadeSessions(maxSessions = SETTINGS.maxSessions) {
  const all = new Map<string, HostSession>();
  const sends = new Map<string, (frame: Buffer) => void>();
  const [received, waiting, held] = [[] as Asked[], [] as Asked[], { count: 0 }];
  /** What the door has said of whoever waits for an answer: `gone 7`. */
  const callers: string[] = [];
  const [ended, store] = [new EventEmitter().setMaxListeners(0), { isBroken: false }];
  const read = () => {
    if (store.isBroken)
      throw new TroupeError('unavailable', 'The database /secret/troupe.db is corrupt: move it away.');
  };
  const kept = memoryStreams();

  const sessions: Sessions = {
    async open({ principal, door, scope, params }) {
      const version = stringOf(member(params, 'protocolVersion') ?? Buffer.from('null'));
      if (version === undefined) throw new TroupeError('invalid', 'initialize needs a protocolVersion');
      if (all.size >= maxSessions) throw new TroupeError('busy', 'there are too many sessions');
      const id = randomBytes(16).toString('hex');
      const session: HostSession = {
        ...{ id, principal, door, scope, era: eraOf(version) ?? ('2025-11-25' as Era) },
        receive(frame, line) {
          received.push({ session: id, frame, line });
          if ('method' in frame && frame.method === 'throws') throw new Error('a bug at /secret/place');
          if (frame.kind !== 'request') return;
          if (frame.method === 'echo') line.answer(resultFrame(frame.id, frame.params ?? Buffer.from('{}')));
          else waiting.push({ session: id, frame, line });
        },
        attach(send) {
          sends.set(id, send);
          return () => sends.delete(id);
        },
        hold() {
          held.count += 1;
          return () => {
            held.count -= 1;
          };
        },
        callerIs: (where, request) => void callers.push(`${where} ${request}`),
        onEnded(listener) {
          ended.once(id, listener);
          return () => ended.off(id, listener);
        },
        async end() {
          read();
          if (all.delete(id)) ended.emit(id);
        },
      };
      all.set(id, session);
      return { session, result: Buffer.from(JSON.stringify({ protocolVersion: session.era, capabilities: {} })) };
    },
    find(id, principal) {
      read();
      return all.get(id)?.principal === principal ? all.get(id) : undefined;
    },
    hasScope: (scope) => ['', 'files', '@small'].includes(scope),
    streams: kept.streams,
    get count() {
      return all.size;
    },
    close: async () => {},
  };
  return { sessions, received, waiting, held, callers, sends, store, ...kept };
}

type Event = { readonly frame: Buffer; readonly isLast: boolean };
type Follower = { stream: string; after: number; onEvent: (event: any) => unknown; onEnd: () => void };

function memoryStreams() {
  const events = new Map<string, Event[]>();
  const owners = new Map<string, string>();
  const followers = new Set<Follower>();
  const disk = { isBroken: false, isUnreadable: false, read: 0 };
  const standingOf = (session: string) => `standing-${session}`;

  function pump(follower: Follower): void {
    const rows = events.get(follower.stream) ?? [];
    if (follower.after > 0 && rows[follower.after - 1]?.isLast) return finish(follower); // nothing is left of it
    while (followers.has(follower) && follower.after < rows.length) {
      const { frame, isLast } = rows[follower.after] as Event;
      disk.read += 1;
      const id = `${follower.stream}.${follower.after + 1}`;
      if (follower.onEvent({ id, frame: frame.subarray(0, -1) }) === false) return void followers.delete(follower);
      follower.after += 1;
      if (isLast && followers.has(follower)) return finish(follower);
    }
  }
  function finish(follower: Follower): void {
    followers.delete(follower);
    follower.onEnd();
  }
  function append(stream: string, frame: Buffer, isLast: boolean): Promise<void> {
    return new Promise((resolve) =>
      setImmediate(() => {
        events.set(stream, [...(events.get(stream) ?? []), { frame, isLast }]);
        for (const follower of followers) if (follower.stream === stream) pump(follower);
        resolve();
      }),
    );
  }
  const streams: Streams = {
    async open(session) {
      await new Promise((resolve) => setImmediate(resolve));
      if (disk.isBroken) throw new TroupeError('unavailable', 'the disk is full');
      const id = randomBytes(8).toString('hex');
      owners.set(id, session);
      return { id, primer: `${id}.0`, append: (frame, isLast) => append(id, frame, isLast) };
    },
    standing: (session) => ({ stream: standingOf(session), after: 0 }),
    locate(session, eventId) {
      const [, stream = '', after = ''] = /^([\w-]+)\.(\d+)$/.exec(eventId) ?? [];
      const isTheirs = owners.get(stream) === session || stream === standingOf(session);
      return isTheirs ? { stream, after: Number(after) } : undefined;
    },
    follow({ stream, after }, onEvent, onEnd) {
      if (disk.isUnreadable) throw new TroupeError('unavailable', 'The database /secret/troupe.db is corrupt.');
      const follower = { stream, after, onEvent, onEnd };
      followers.add(follower);
      pump(follower);
      return () => followers.delete(follower);
    },
  };
  const tell = (session: string, frame: Buffer) => append(standingOf(session), frame, false);
  return { streams, followers, disk, tell };
}

export type DoorOptions = Partial<Omit<HttpOptions, 'settings'>> & { readonly settings?: Partial<HttpSettings> };

export async function door({ settings = {}, ...options }: DoorOptions = {}) {
  const played = handmadeSessions(settings.maxSessions);
  const opened = await openHttp({
    world: realWorld,
    ...{ address: { host: '127.0.0.1', port: 0 }, sessions: played.sessions, logger: pino({ level: 'silent' }) },
    standingOf: peersOf({ owner: process.geteuid?.() ?? 0, serversSockets: async () => new Set() }) ?? (() => 'owner'),
    ...options,
    timing: { drainMs: 100, ...options.timing },
    settings: { ...SETTINGS, ...settings },
  });
  const port = Number(new URL(opened.url).port);

  async function ask(method: string, path: string, headers: Record<string, string> = {}, body?: string | object) {
    const text = typeof body === 'object' ? JSON.stringify(body) : body;
    const answer = await request(`${opened.url}${path}`, {
      ...{ method: method as Dispatcher.HttpMethod, headers, reset: true, body: text ?? null },
    });
    const said = await answer.body.text();
    return {
      status: answer.statusCode,
      headers: answer.headers as Record<string, string>,
      text: said,
      json: jsonOf(said),
    };
  }
  const post = (body: string | object, headers: Record<string, string> = {}, path = '/mcp') =>
    ask('POST', path, { 'content-type': 'application/json', accept: BOTH, ...headers }, body);

  return {
    ...{ ...opened, ...played, port, ask, post },
    /** A session's id, ready to be sent as a header. */
    async enter(version = '2025-11-25', headers: Record<string, string> = {}, path = '/mcp') {
      const params = { protocolVersion: version, capabilities: {}, clientInfo: { name: 't', version: '1' } };
      const { headers: said } = await post({ jsonrpc: '2.0', id: 0, method: 'initialize', params }, headers, path);
      return { 'mcp-session-id': said['mcp-session-id'] as string };
    },
    /** What comes back for these very bytes, until the other side closes. */
    raw: (bytes: string | Buffer) => rawTo(port, bytes),
    async [Symbol.asyncDispose]() {
      await opened.close();
    },
  };
}

export type Door = Awaited<ReturnType<typeof door>>;

/** What the other side says until it closes; more can be sent later. */
export function rawTo(port: number, bytes: string | Buffer, more?: Promise<string>): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes));
    void more?.then((text) => socket.write(text));
    let said = '';
    socket.on('data', (chunk) => {
      said += chunk;
    });
    socket.on('error', () => {}); // a reset is an end too
    socket.on('close', () => resolve(said));
  });
}

/** An open response of events: what has come of it so far. */
export async function listenTo(url: string, options: Partial<Dispatcher.RequestOptions> = {}) {
  const abort = new AbortController();
  const { statusCode, headers, body } = await request(url, { reset: true, signal: abort.signal, ...options } as any);
  let [text, isOver] = ['', false];
  body.on('data', (chunk) => {
    text += chunk;
  });
  body.on('error', () => {}); // we left
  body.on('close', () => {
    isOver = true;
  });
  return {
    ...{ status: statusCode, headers: headers as Record<string, string> },
    get text() {
      return text;
    },
    get isOver() {
      return isOver;
    },
    get events() {
      return text.split('\n\n').slice(0, -1).map(eventOf);
    },
    leave: () => abort.abort(),
  };
}

function eventOf(block: string): Record<string, string> {
  const fields = block.split('\n').map((line) => /^([^:]*): ?(.*)$/.exec(line) ?? []);
  return Object.fromEntries(fields.map(([, key, value]) => [key || 'comment', value ?? '']));
}

function jsonOf(text: string): any {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // not every answer is JSON
  }
}

/** The body of an answer: JSON, or, when the door took longer than its patience, the last message of a stream. */
export function jsonIn(text: string): any {
  const last = text.split('\n').findLast((line) => /^data: ?\{/.test(line));
  const json = text.startsWith('{') || text.startsWith('[') ? text : last?.replace(/^data: ?/, '');
  return json === undefined ? undefined : JSON.parse(json);
}
