// Sessions over a real store and a clock that only the test moves: how long they stay in memory, what their rows show of their
// use, and who makes room for whom.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Call } from '../../src/calls/call.ts';
import { createCatalog } from '../../src/catalog/catalog.ts';
import type { Config } from '../../src/config/schema.ts';
import { sessionHolder } from '../../src/servers/instances.ts';
import type { SessionPorts } from '../../src/sessions/ports.ts';
import { createScopes } from '../../src/sessions/scopes.ts';
import { createSessions, type LocalSessions } from '../../src/sessions/sessions.ts';
import { createStreams } from '../../src/sessions/streams.ts';
import { openSeal } from '../../src/store/seal.ts';
import { openStore, type SessionRow, type Store } from '../../src/store/store.ts';
import { eventually } from '../support/eventually.ts';
import { type Scratch, scratch } from '../support/scratch.ts';
import { simulatedWorld } from '../support/simulated-world.ts';

const MINUTE = 60_000;
const PARAMS = Buffer.from('{"protocolVersion":"2025-11-25","capabilities":{"roots":{}},"clientInfo":{}}');
const CALL = { kind: 'request', id: '1', method: 'tools/call', params: Buffer.from('{"name":"s__t"}') } as const;

let dir: Scratch;
let store: Store;
beforeEach(async () => {
  dir = await scratch();
  store = await openStore(dir.path);
});
afterEach(async () => {
  await store.close();
  await dir[Symbol.asyncDispose]();
});

/** One daemon on the state directory. `owned` are sessions for which its only server keeps a process, `busy` those with tasks. */
function daemon({ world = simulatedWorld(), maxSessions = 10, idleMs = 60 * MINUTE } = {}) {
  const owned = new Set<string>();
  const busy = new Set<string>();
  const released: string[] = [];
  const calls: Call[] = [];
  const droppedRoots: string[] = [];
  const onTrouble = (error: unknown) => expect.fail(String(error));
  const known = { state: 'ready', name: 's', server: 's', facts: undefined };
  const fleet = {
    expect: () => {},
    members: () => [],
    member: () => undefined,
    knownFor: (_: string, principal: string, session: string) => ({
      ...known,
      principal: owned.has(session) ? sessionHolder(session) : principal,
    }),
    release: (session: string) => released.push(session),
    submit: (call: Call) => calls.push(call) > 0,
    cancel: (_: string, requestId: string) => {
      const failure = { code: 'cancelled', delivery: 'not sent', message: 'cancelled' } as const;
      calls.find((call) => call.requestId === requestId)?.settle({ ok: false, failure });
      return true;
    },
  } as unknown as SessionPorts['fleet'];
  const config = { servers: [{ name: 's', settings: { enabled: true } }], profiles: {} } as unknown as Config;
  const catalog = createCatalog(store);
  catalog.set('s', 'tools', [{ name: 't', bytes: Buffer.from('{"name":"t"}') }]);
  const scopes = createScopes({ config: () => config, fleet, catalog });
  const seal = openSeal(dir.path);
  const streams = createStreams({ world, store, seal, daemon: 'd', isAlive: () => true, maxStreams: 2, onTrouble });
  const roots = { host: async (session: string) => void droppedRoots.push(session) };
  const tasks = { isRunningFor: (session: string) => busy.has(session) };
  const ports = { world, store, fleet, catalog, scopes, streams, roots, tasks } as unknown;
  const sessions: LocalSessions = createSessions({
    ports: ports as SessionPorts,
    maxSessions,
    idleMs,
    family: 'family',
    onTrouble,
  });
  const open = async (principal = 'p') =>
    (await sessions.open({ principal, door: 'http', scope: '', params: PARAMS })).session;
  const usedAt = async (id: string) => {
    await store.flush();
    return (store.get<SessionRow>('session', [id])?.used_at ?? 0) - world.date() + world.now();
  };
  return {
    world,
    sessions,
    owned,
    busy,
    released,
    calls,
    droppedRoots,
    open,
    usedAt,
    find: (id: string) => sessions.find(id, 'p'),
  };
}

describe('a session that nobody uses', () => {
  it('leaves the memory after five minutes, and is brought back from its row', async () => {
    const { world, sessions, open, find, released } = daemon();
    const { id } = await open();
    await world.pass(5 * MINUTE - 1);
    expect([sessions.count, released]).toEqual([1, []]);
    await world.pass(1);
    expect([sessions.count, released]).toEqual([0, [id]]);
    expect(find(id)?.id).toBe(id);
    expect(sessions.count).toBe(1);
    await world.pass(5 * MINUTE);
    expect(sessions.count).toBe(0);
  });

  it('stays for as long as its row may, if a server keeps a process for it', async () => {
    const { world, sessions, open, owned } = daemon();
    owned.add((await open()).id);
    await world.pass(60 * MINUTE - 1);
    expect(sessions.count).toBe(1);
    await world.pass(1);
    expect(sessions.count).toBe(0);
  });

  it('is forgotten when it was unused for as long as the configuration says', async () => {
    const { world, sessions, open, find } = daemon({ idleMs: 3_000 });
    const { id } = await open();
    await world.pass(3_000);
    expect(sessions.count).toBe(0);
    await world.pass(1);
    expect(find(id)).toBeUndefined();
  });
});

describe('a session that is used', () => {
  it('stays while anything of it is open, and rests anew when the last has left', async () => {
    const { world, sessions, open } = daemon();
    const session = await open();
    await world.pass(4 * MINUTE);
    const [leaveOne, leaveOther] = [session.hold(), session.hold()];
    await world.pass(120 * MINUTE);
    leaveOne();
    leaveOne();
    await world.pass(10 * MINUTE);
    expect(sessions.count).toBe(1);
    leaveOther();
    await world.pass(5 * MINUTE - 1);
    expect(sessions.count).toBe(1);
    await world.pass(1);
    expect(sessions.count).toBe(0);
  });

  it('stays while a request is in flight, though its connection has left', async () => {
    const { world, sessions, open, calls } = daemon();
    const session = await open();
    const leave = session.hold();
    session.receive(CALL, { tell: () => {}, answer: () => {} });
    leave();
    await world.pass(10 * MINUTE);
    expect([sessions.count, calls.length]).toEqual([1, 1]);
    calls[0]?.settle({ ok: true, result: Buffer.from('{}'), isError: false });
    await world.pass(5 * MINUTE);
    expect(sessions.count).toBe(0);
  });

  it('shows in its row that it is used, once a minute and not with every request', async () => {
    const { world, open, usedAt } = daemon();
    const { id, hold } = await open();
    await world.pass(30_000);
    hold()();
    expect(await usedAt(id)).toBe(0);
    await world.pass(31_000);
    hold()();
    expect(await usedAt(id)).toBe(61_000);
    hold();
    await world.pass(10 * MINUTE);
    expect(await usedAt(id)).toBeGreaterThan(9 * MINUTE);
  });

  it('shows its last use when the daemon stops', async () => {
    const { world, sessions, open, usedAt } = daemon();
    const [used, left] = [await open(), await open()];
    used.hold();
    await world.pass(1_000);
    left.hold()();
    await world.pass(1_000);
    await sessions.close();
    expect([await usedAt(used.id), await usedAt(left.id), sessions.count]).toEqual([2_000, 1_000, 0]);
  });
});

describe('a session that has ended', () => {
  it('is unknown, and whoever listens hears of it once', async () => {
    const { open, find, sessions, droppedRoots, released } = daemon();
    const session = await open();
    let heard = 0;
    session.onEnded(() => heard++);
    session.onEnded(() => heard++)();
    await session.end();
    await session.end();
    expect([heard, find(session.id), sessions.count]).toEqual([1, undefined, 0]);
    await eventually(() => expect(released).toEqual([session.id]));
    expect(droppedRoots).toEqual([session.id]);
  });

  it('leaves its processes to the tasks that it has made', async () => {
    const { open, busy, released, droppedRoots } = daemon();
    const [one, other] = [await open(), await open()];
    busy.add(one.id);
    await one.end();
    await other.end();
    await eventually(() => expect(released).toEqual([other.id]));
    expect(droppedRoots).toEqual([one.id, other.id]);
  });

  it('answers what was in flight, before it is told', async () => {
    const { open } = daemon();
    const session = await open();
    const order: string[] = [];
    session.receive(CALL, {
      tell: () => {},
      answer: (frame) => void order.push(JSON.parse(frame.toString()).error.message),
    });
    session.onEnded(() => order.push('ended'));
    await session.end();
    expect(order).toEqual(['cancelled', 'ended']);
  });

  it('has ended for the other daemon too', async () => {
    const [one, other] = [daemon(), daemon()];
    const session = await one.open();
    const found = other.find(session.id);
    let heard = 0;
    found?.onEnded(() => heard++);
    await session.end();
    await other.world.pass(1_000);
    expect([heard, other.sessions.count, other.find(session.id)]).toEqual([1, 0, undefined]);
  });
});

describe('where there is no room for one more', () => {
  it('the session unused for longest goes, not one that is used', async () => {
    const { world, open, find } = daemon({ maxSessions: 2 });
    const used = await open();
    used.hold();
    await world.pass(1);
    const unused = await open();
    await expect(open()).rejects.toThrow('2 sessions are open'); // each has only just been let in
    await world.pass(5_000);
    const last = await open();
    expect([used, unused, last].map(({ id }) => find(id)?.id)).toEqual([used.id, undefined, last.id]);
    last.hold();
    await expect(open()).rejects.toThrow('2 sessions are open');
  });

  it('one goes that is not in memory, as well', async () => {
    const { world, open, find } = daemon({ maxSessions: 1 });
    const { id } = await open();
    await world.pass(5 * MINUTE);
    await open();
    expect(find(id)).toBeUndefined();
  });
});

it('are never more than there may be, however many come at once to two daemons, and one that ends makes room', async () => {
  const world = simulatedWorld();
  const cast = [daemon({ world, maxSessions: 20 }), daemon({ world, maxSessions: 20 })];
  const outcomes = await Promise.allSettled(Array.from({ length: 2_000 }, (_, index) => cast[index % 2]!.open()));
  const opened = outcomes.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
  const refused = outcomes.flatMap((each) => (each.status === 'rejected' ? [each.reason] : []));
  expect([opened.length, refused.length]).toEqual([20, 1_980]);
  expect(new Set(refused.map(({ code, message }) => `${code}: ${message}`))).toEqual(
    new Set(['busy: 20 sessions are open; close one, or raise x-troupe.http.maxSessions']),
  );
  expect(cast[0]!.sessions.count + cast[1]!.sessions.count).toBe(20);
  await opened[0]!.end();
  await cast[0]!.open();
  await expect(cast[1]!.open()).rejects.toThrow('20 sessions are open');
});

it('are bounded over all callers too, who can call themselves what they like', async () => {
  const { open, sessions } = daemon({ maxSessions: 5 });
  const outcomes = await Promise.allSettled(Array.from({ length: 200 }, (_, index) => open(`caller-${index}`)));
  const refused = outcomes.flatMap((each) => (each.status === 'rejected' ? [each.reason.message] : []));
  expect([refused.length, sessions.count]).toEqual([180, 20]);
  expect(refused[0]).toMatch(/^too many sessions are open in all; close some/);
});

it('is not there for anybody when the disk refuses its row', async () => {
  const { open, sessions } = daemon();
  await store.close();
  await expect(open()).rejects.toThrow();
  expect(sessions.count).toBe(0);
});
