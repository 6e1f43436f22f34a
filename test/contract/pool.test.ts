// The pool of an interactive server: each process has one call that may ask at a time, the others wait together, and whoever
// is free takes the one that has waited longest.

import { expect, it } from 'vitest';
import type { Call, Outcome } from '../../src/calls/call.ts';
import { createLane, type LaneOptions } from '../../src/calls/lane.ts';
import { canAsk, type InFlight } from '../../src/calls/request.ts';
import { createRequests } from '../../src/calls/requests.ts';
import type { ServerConfig } from '../../src/config/schema.ts';
import { Instances } from '../../src/servers/instances.ts';
import { type Member, newMember } from '../../src/servers/member.ts';
import { createPools } from '../../src/servers/pools.ts';
import type { ServerState } from '../../src/servers/states.ts';
import { Suspects } from '../../src/servers/suspects.ts';
import { realWorld } from '../../src/world/world.ts';
import { eventually } from '../support/eventually.ts';

const SETTINGS = {
  share: 'all',
  timeoutMs: 5_000,
  maxTimeoutMs: 10_000,
  maxInFlight: 100,
  maxQueued: 100,
  holdMs: 1_000,
};
const GATES = { opening: 'hold', asleep: 'hold', ready: 'open', failed: 'refuse', stopped: 'refuse' } as const;
const RESULT = Buffer.from('{}');

function stage({ pool = 3, isInteractive = true, ...more }: Record<string, unknown> = {}) {
  const members = new Map<string, Member>();
  const [sent, told, outcomes]: [string[], string[], Record<string, Outcome>] = [[], [], {}];
  const requests = createRequests({
    driver: 'table',
    world: realWorld,
    onCrash: (error) => expect.unreachable(String(error)),
  });
  const config = { name: 'asks', settings: { ...SETTINGS, pool, ...more } } as unknown as ServerConfig;
  let isAsking = isInteractive as boolean;
  const saw = () => {
    isAsking = true;
    return true;
  };

  function launch(name: string, given: ServerConfig, onBehalfOf?: string, first?: Member): Member {
    const options: LaneOptions = {
      server: 'asks',
      settings: given.settings,
      requests,
      refusalOf: () => undefined,
      onWanted: () => {},
      place(request) {
        if (member.pool && canAsk(request.call)) member.pool.admit(request, member);
        else member.lane.admit(request);
      },
      onSettled({ call }, outcome) {
        call.settle(outcome);
        member.pool?.pump();
      },
    };
    const lane = createLane(options);
    const logger = { info: () => {} } as unknown as Member['logger'];
    const suspects = new Suspects(realWorld);
    const member: Member = newMember({ name, config: given, lane, logger, suspects, onBehalfOf, first });
    members.set(name, member);
    if (!first) pools.admit(member, () => createLane({ ...options, settings: member.config.settings }));
    turn(name, 'opening');
    return member;
  }
  function turn(name: string, state: ServerState & keyof typeof GATES): void {
    const member = members.get(name) as Member;
    const write = (_frame: Buffer, _id: string, call: Call) => sent.push(`${call.name} to ${name}`);
    if (state === 'opening') member.lane.attach({ write, cancel: () => {}, hasRoom: () => true });
    member.state = state;
    member.lane.setGate({ mode: GATES[state], state, why: '' });
    member.pool?.pump();
  }
  const remove = (name: string): void => {
    const member = members.get(name);
    turn(name, 'stopped');
    members.delete(name);
    member?.pool?.pump();
  };
  const instances = new Instances({ now: () => 0, members, launch, remove });
  const pools = createPools({
    ...{ instances, remove, tell: (name, { type }) => told.push(`${type} ${name}`) },
    interactive: { is: () => isAsking, saw },
  });
  const first = launch('asks', config);
  turn('asks', 'ready');

  function call(name: string, rest: Partial<Call> = {}): InFlight | undefined {
    const settle = (outcome: Outcome) => (outcomes[name] = outcome);
    const given: Call = {
      ...{ requestId: name, server: 'asks', method: 'tools/call', name, params: RESULT, principal: '_', door: 'nats' },
      ...{ isCancellable: true, settle, ...rest },
    };
    return first.lane.submit(given);
  }
  const end = (process: string): void => {
    const { lane } = members.get(process) as Member;
    lane.answer(lane.asking()[0]!.id, 'result', RESULT);
  };
  const cancel = (name: string) => ['_', 'ann'].some((principal) => requests.cancel(principal, name, 'enough'));
  const fate = (name: string) => (outcomes[name]?.ok ? 'ok' : outcomes[name]?.failure.code);
  return { members, first, sent, told, call, turn, end, cancel, fate, pools, instances, remove };
}
type Stage = ReturnType<typeof stage>;
const names = ({ members }: Stage) => [...members.keys()];

it('gives each process one call, starts as many as are needed and allowed, and keeps the rest in order', () => {
  const s = stage();
  for (const name of 'abcde') s.call(name);
  expect([s.sent, names(s)]).toEqual([['a to asks'], ['asks', 'asks~2', 'asks~3']]);
  s.turn('asks~3', 'ready');
  s.turn('asks~2', 'ready');
  expect(s.sent).toEqual(['a to asks', 'b to asks~3', 'c to asks~2']);
  expect(s.first.pool?.queued).toBe(2);
  s.end('asks~3');
  s.end('asks');
  expect(s.sent.slice(3)).toEqual(['d to asks~3', 'e to asks']);
});

it('with a pool of one makes strictly one call after the other', () => {
  const s = stage({ pool: 1 });
  for (const name of 'ab') s.call(name);
  expect([s.sent, names(s)]).toEqual([['a to asks'], ['asks']]);
  s.end('asks');
  expect(s.sent).toEqual(['a to asks', 'b to asks']);
});

it('prefers the process that a holder used last, then the first', () => {
  const s = stage();
  s.call('a');
  s.call('b', { holder: 'ben' });
  s.turn('asks~2', 'ready');
  s.end('asks');
  s.end('asks~2');
  s.call('c', { holder: 'ben' });
  s.call('d', { holder: 'cat' });
  expect(s.sent.slice(1)).toEqual(['b to asks~2', 'c to asks~2', 'd to asks']);
});

it('wakes a process that sleeps before it starts another', () => {
  const s = stage();
  for (const name of 'ab') s.call(name);
  s.turn('asks~2', 'ready');
  s.end('asks~2');
  s.turn('asks~2', 'asleep');
  s.call('c');
  expect([s.told, names(s)]).toEqual([['wanted asks~2'], ['asks', 'asks~2']]);
});

it('counts the deadline and hears a cancellation while a call waits, and sends neither', async () => {
  const s = stage({ pool: 1 });
  s.call('a');
  s.call('late', { timeoutMs: 30 });
  s.call('unwanted');
  s.cancel('unwanted');
  expect(s.fate('unwanted')).toBe('cancelled');
  await eventually(() => expect(s.fate('late')).toBe('timeout'));
  s.end('asks');
  expect([s.sent, s.first.pool?.queued]).toEqual([['a to asks'], 0]);
});

it('cancels a call at the process that it was given to', () => {
  const s = stage();
  for (const name of 'ab') s.call(name);
  s.turn('asks~2', 'ready');
  s.cancel('b');
  expect([s.fate('b'), s.members.get('asks~2')?.lane.inFlight]).toEqual(['cancelled', 0]);
});

it('refuses what is beyond maxQueued, and everything that waits when no process can take it any more', () => {
  const s = stage({ pool: 1, maxQueued: 1 });
  for (const name of 'abc') s.call(name);
  expect(s.fate('c')).toBe('busy');
  s.turn('asks', 'failed');
  expect([s.fate('b'), s.call('d'), s.fate('d')]).toEqual(['unavailable', undefined, 'unavailable']);
});

it('goes on with the others when one process cannot take calls', () => {
  const s = stage({ pool: 2 });
  for (const name of 'abc') s.call(name);
  s.turn('asks~2', 'ready');
  s.turn('asks', 'failed');
  s.end('asks~2');
  expect(s.sent).toEqual(['a to asks', 'b to asks~2', 'c to asks~2']);
});

it('sends completions past the pool', () => {
  const s = stage({ pool: 1 });
  s.call('a');
  s.first.lane.submit({ ...(s.first.lane.asking()[0] as InFlight).call, name: 'c', method: 'completion/complete' });
  expect(s.sent).toEqual(['a to asks', 'c to asks']);
});

it('takes over what was on its way when the server is first seen asking: the process is busy until all of it is done', () => {
  const s = stage({ isInteractive: false, maxInFlight: 2 });
  for (const name of 'abc') s.call(name);
  expect(s.sent).toEqual(['a to asks', 'b to asks']);
  s.first.sawAsking?.();
  expect([names(s), s.first.lane.queued]).toEqual([['asks', 'asks~2'], 0]);
  s.end('asks');
  expect(s.sent).toHaveLength(2);
  s.turn('asks~2', 'ready');
  expect(s.sent).toEqual(['a to asks', 'b to asks', 'c to asks~2']);
});

it('gives no call to a process that may still work on a stranger’s given-up one: that process is started anew', () => {
  const s = stage({ pool: 1 });
  s.call('a', { principal: 'ann' });
  s.call('b', { principal: 'ben' });
  s.cancel('a');
  expect([s.sent, s.told]).toEqual([['a to asks'], ['restart asks']]);
  s.turn('asks', 'opening');
  s.turn('asks', 'ready');
  expect(s.sent).toEqual(['a to asks', 'b to asks']);
});

it('is smaller where there is no room, and gives room to whoever has a right to a process', () => {
  const s = stage({ pool: 40 });
  for (let n = 0; n < 40; n++) s.call(`c${n}`);
  expect(names(s)).toHaveLength(17); // the first, and sixteen of one principal
  for (const name of names(s).slice(1)) s.turn(name, 'ready');
  const config = { ...s.first.config, settings: { ...s.first.config.settings, share: 'principal' } } as ServerConfig;
  Object.assign(s.first, { config });
  for (let n = 0; n < 17; n++) expect(s.instances.memberFor('asks', `p${n}`)?.name).toBe(`asks@p${n}`);
  s.first.pool?.pump();
  expect([s.members.size, s.sent.length]).toEqual([34, 17]); // one more than there may be, but all have a call
  s.end('asks~9');
  expect([s.members.size, s.members.has('asks~9')]).toEqual([33, false]);
  s.end('asks~8');
  expect([s.members.size, s.sent.length]).toEqual([33, 18]);
});

it('gives a call that waited in an outage its own patience at the process that takes it', async () => {
  const s = stage({ pool: 1, holdMs: 40, timeoutMs: 200 });
  const first = s.first.lane;
  first.setGate({ mode: 'hold', state: 'waiting', why: 'exited with code 1' });
  s.first.pool?.pump();
  s.call('a');
  first.setGate({ mode: 'open', state: 'ready', why: '' });
  s.first.pool?.pump();
  expect(s.sent).toEqual(['a to asks']);
  await eventually(() => expect(s.fate('a')).toBe('timeout'));
});

// ── Sessions that are at home in a process ───────────────────────────────────

const bound = (holder: string) => ({ holder, isBound: true });

it('keeps the calls of a bound session in the process that had its first, though another is free', () => {
  const s = stage();
  s.call('a', { holder: 'ann' });
  s.call('b', bound('ben'));
  s.turn('asks~2', 'ready');
  s.end('asks');
  s.end('asks~2');
  s.call('x', { holder: 'ann' });
  s.call('c', bound('ben'));
  s.call('y', { holder: 'cat' }); // both processes are busy, so a third is started
  s.turn('asks~3', 'ready');
  s.call('d', bound('ben')); // beside its own
  expect(s.sent.slice(2)).toEqual(['x to asks', 'c to asks~2', 'y to asks~3', 'd to asks~2']);
});

it('takes the process that served a session last for its home when it becomes bound', () => {
  const s = stage({ pool: 2 });
  s.call('a', { holder: 'ann' });
  s.call('b', { holder: 'ben' });
  s.turn('asks~2', 'ready');
  s.end('asks');
  s.end('asks~2');
  s.call('c', { holder: 'cat' });
  s.call('d', { holder: 'dan' }); // takes ben’s process
  s.end('asks');
  s.call('e', bound('ben'));
  expect([s.sent.slice(2), s.first.pool?.queued]).toEqual([['c to asks', 'd to asks~2'], 1]);
  s.end('asks~2');
  expect(s.sent.at(-1)).toBe('e to asks~2');
});

it('lets those pass whose process is free, and has nobody overtake who waits for the same one', () => {
  const s = stage({ pool: 2 });
  const [ann, ben] = ['ann', 'ben'];
  s.first.homes.give('ann', s.first);
  s.first.homes.give('ben', s.first);
  s.call('a', bound(ann));
  s.call('b', bound(ben));
  s.call('c', bound(ann)); // ann could go on for ever
  s.call('d', { holder: 'dan' });
  s.turn('asks~2', 'ready');
  expect([s.sent, s.first.pool?.queued]).toEqual([['a to asks', 'd to asks~2'], 2]);
  s.end('asks');
  expect(s.sent.at(-1)).toBe('b to asks');
  s.end('asks');
  expect(s.sent.at(-1)).toBe('c to asks');
});

it('lets a call overtake that the answer to a question of its own session may depend on', () => {
  const s = stage({ pool: 1 });
  const asking = s.call('a', bound('ann')) as InFlight;
  s.call('b', bound('ben'));
  s.first.homes.give('ben', s.first);
  const release = s.first.lane.suspend(asking); // its host is asked, and calls the server to find the answer
  s.call('c', bound('ann'));
  expect(s.sent).toEqual(['a to asks', 'c to asks']);
  release();
  s.call('d', bound('ann'));
  expect(s.sent).toHaveLength(2);
});

it('wakes the home of a waiting call, and starts it anew when it may still work for a stranger', () => {
  const s = stage({ pool: 2 });
  s.call('a', { holder: 'ann' });
  s.call('b', bound('ben'));
  s.turn('asks~2', 'ready');
  s.end('asks~2');
  s.turn('asks~2', 'asleep');
  s.end('asks');
  s.call('c', bound('ben'));
  expect([s.sent.slice(2), s.told]).toEqual([[], ['wanted asks~2']]);
  s.turn('asks~2', 'ready');
  expect(s.sent.at(-1)).toBe('c to asks~2');
  s.end('asks~2');
  s.call('x', { principal: 'ann', ...bound('ben') });
  s.cancel('x');
  s.call('d', bound('ben'));
  expect(s.told.at(-1)).toBe('restart asks~2');
});

it('moves sessions, with what they listen to, from a process that is lost to one that is not', async () => {
  const s = stage();
  const asked: string[] = [];
  const connect = (name: string) =>
    s.members.get(name)?.subscriptions.connect(async (method, uri) => void asked.push(`${method} ${uri} at ${name}`));
  await connect('asks');
  s.call('a');
  const home = s.first.pool?.homeOf('ben') as Member;
  expect(home.name).toBe('asks~2'); // the first is busy, so one more is started rather than shared
  s.turn('asks~2', 'ready');
  await connect('asks~2');
  await home.subscriptions.add('memo://a', 'session ben', Number.POSITIVE_INFINITY);
  s.end('asks');
  home.subscriptions.disconnect();
  home.lane.setGate({ mode: 'hold', state: 'waiting', why: 'exited with code 1' });
  s.first.pool?.pump();
  expect(s.first.homes.of('ben')).toBe(s.first);
  expect(asked).toEqual(['resources/subscribe memo://a at asks~2', 'resources/subscribe memo://a at asks']);
  s.call('b', bound('ben'));
  expect(s.sent.at(-1)).toBe('b to asks');
});

it('spreads the homes of sessions over the pool, and shares when it is full', () => {
  const s = stage();
  const homes = 'abcdef'.split('').map((session) => s.first.pool?.homeOf(session).name);
  expect(homes).toEqual(['asks', 'asks~2', 'asks~3', 'asks', 'asks~2', 'asks~3']);
  s.first.pool?.close();
  expect('abcdef'.split('').map((session) => s.first.homes.of(session)?.name)).toEqual(Array(6).fill('asks'));
});
