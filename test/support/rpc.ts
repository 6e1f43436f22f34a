// A door for MCP sessions over a real nats-server, with sessions written by hand: what the door hands on and brings back
// can be seen frame by frame. `sessions` can be given to a second door, as the next life of a daemon would find them.

import { randomBytes } from 'node:crypto';
import { EventEmitter } from 'node:events';
import { headers, type Msg, type NatsConnection } from 'nats';
import { subjects } from '../../src/bus/subjects.ts';
import { createResponder } from '../../src/doors/nats/responder.ts';
import { serveSessions } from '../../src/doors/nats/rpc.ts';
import { errorFrame, notificationFrame, resultFrame } from '../../src/protocol/compose.ts';
import { eraOf, LATEST } from '../../src/protocol/eras.ts';
import { TroupeError } from '../../src/protocol/failures.ts';
import { member, stringOf } from '../../src/protocol/json.ts';
import type { HostSession, Line, Opening, Sessions, Streams } from '../../src/sessions/host.ts';
import type { TestServer } from './nats.ts';

export type HandSession = HostSession & {
  readonly methods: string[];
  /** Lines of the method `hold`, by the raw id of the request. */
  readonly held: Map<string, Line>;
  readonly attached: Set<(frame: Buffer) => void>;
  /** What the door has said of whoever waits for an answer: `gone 7`. */
  readonly callers: string[];
  holders: number;
};

/** `echo` gives its params back, `big {bytes}` as much as that, `steps` three messages first; `hold` waits in `held`. */
export function handSessions() {
  const all = new Map<string, HandSession>();
  const ended = new EventEmitter();

  function make({ principal, door, scope, params }: Opening): HandSession {
    const id = randomBytes(16).toString('base64url');
    const era = eraOf(stringOf(member(params, 'protocolVersion') ?? Buffer.alloc(0)) ?? '') ?? LATEST;
    const session: HandSession = {
      ...{
        id,
        principal,
        door,
        scope,
        era,
        methods: [],
        held: new Map(),
        attached: new Set(),
        callers: [],
        holders: 0,
      },
      receive(frame, line) {
        session.methods.push('method' in frame ? frame.method : frame.kind);
        if (frame.kind === 'notification' && frame.method === 'throws') throw new Error('a bug');
        if (frame.kind === 'request') perform(session, frame.id, frame.method, frame.params ?? Buffer.from('{}'), line);
      },
      attach(send) {
        session.attached.add(send);
        return () => session.attached.delete(send);
      },
      hold() {
        session.holders += 1;
        return () => {
          session.holders -= 1;
        };
      },
      callerIs: (where, request) => void session.callers.push(`${where} ${request}`),
      onEnded(listener) {
        ended.once(id, listener);
        return () => ended.off(id, listener);
      },
      async end() {
        if (all.delete(id)) ended.emit(id);
      },
    };
    return session;
  }

  const sessions: Sessions = {
    async open(opening) {
      if (opening.scope === 'full') throw new TroupeError('busy', 'too many sessions');
      if (opening.scope === 'broken')
        throw new TroupeError('unavailable', 'The database /secret/troupe.db is corrupt.');
      const session = make(opening);
      all.set(session.id, session);
      const serverInfo = { name: 'by-hand', version: '1' };
      const result = { protocolVersion: session.era, capabilities: { tools: {}, logging: {} }, serverInfo };
      return { session, result: Buffer.from(JSON.stringify(result)) };
    },
    find(id, principal) {
      const found = all.get(id);
      return found?.principal === principal ? found : undefined;
    },
    hasScope: () => true,
    streams: {} as Streams,
    get count() {
      return all.size;
    },
    close: async () => {},
  };
  return { sessions, all, only: () => [...all.values()][0] as HandSession };
}

function perform(session: HandSession, id: string, method: string, params: Buffer, line: Line): void {
  if (method === 'hold') return void session.held.set(id, line);
  if (method === 'throws') throw new Error('a bug');
  if (method === 'steps')
    for (const progress of [1, 2, 3])
      line.tell(notificationFrame('notifications/progress', Buffer.from(JSON.stringify({ progress }))));
  if (method === 'big') {
    const bytes = Number(member(params, 'bytes'));
    return line.answer(resultFrame(id, Buffer.from(JSON.stringify({ text: 'x'.repeat(bytes) }))));
  }
  if (method === 'ping') return line.answer(resultFrame(id, Buffer.from('{}')));
  if (!['echo', 'steps'].includes(method))
    return line.answer(errorFrame(id, Buffer.from('{"code":-32601,"message":"no"}')));
  line.answer(resultFrame(id, params));
}

export async function openDoor(
  nats: TestServer,
  sessions: Sessions,
  options: { leaseMs?: number; maxFrameBytes?: number } = {},
) {
  const nc = await nats.connect();
  const trouble: unknown[] = [];
  const responder = createResponder({ nc, onTrouble: (error) => trouble.push(error) });
  const door = serveSessions(responder, { subjects: subjects('troupe'), daemon: 'host-1', sessions, ...options });
  void door.offer(['', 'echo', 'full', 'broken']);
  await nc.flush();
  return { offer: door.offer, close: door.close, count: () => door.count, nc, trouble };
}

/** A client made of nothing but NATS. */
export async function rawClient(
  nc: NatsConnection,
  opener: string,
  inbox = `_INBOX.${randomBytes(8).toString('hex')}`,
) {
  const got: Msg[] = [];
  nc.subscribe(inbox, { callback: (_, msg) => void got.push(msg) });
  const frames = () => got.filter(({ data }) => data.length > 0).map((msg) => msg.json<Record<string, unknown>>());
  const publish = (to: string, body: string | object, entries: Record<string, string> = {}) => {
    const all = headers();
    for (const [key, value] of Object.entries(entries)) all.set(key, value);
    nc.publish(to, typeof body === 'string' ? body : JSON.stringify({ jsonrpc: '2.0', ...body }), {
      reply: inbox,
      ...(Object.keys(entries).length > 0 && { headers: all }),
    });
  };
  return {
    ...{ nc, inbox, got, frames },
    ask: (body: string | object, entries?: Record<string, string>) => publish(opener, body, entries),
    /** The session's own subject, as the newest greeting names it. */
    subject: () =>
      [...got]
        .reverse()
        .map(({ headers: all }) => all?.get('Mcp-Session-Subject'))
        .find(Boolean) ?? '',
    id: () => got.map(({ headers: all }) => all?.get('Mcp-Session-Id')).find(Boolean) ?? '',
    say(body: string | object, entries?: Record<string, string>) {
      publish(this.subject(), body, entries);
    },
    open: (protocolVersion = '2025-11-25') =>
      publish(opener, { id: 0, method: 'initialize', params: { protocolVersion } }),
  };
}
