// A call that must be recorded before it is sent: it is asked for once, sent only after a yes, and answered once whatever
// happens in between.

import { expect, it } from 'vitest';
import type { Call, Outcome } from '../../src/calls/call.ts';
import { createLane } from '../../src/calls/lane.ts';
import { createRequests } from '../../src/calls/requests.ts';
import { realWorld } from '../../src/world/world.ts';

const SETTINGS = { timeoutMs: 5_000, maxTimeoutMs: 10_000, maxInFlight: 2, maxQueued: 10, holdMs: 1_000 };
const OPEN = { mode: 'open', state: 'ready', why: '' } as const;
const HOLD = { mode: 'hold', state: 'opening', why: '' } as const;
const WAITING = { mode: 'refuse', state: 'waiting', why: 'exited with code 1' } as const;

function stage() {
  const written: string[] = [];
  const ends = new Map<string, Outcome[]>();
  const lane = createLane({
    server: 'alpha',
    settings: SETTINGS,
    requests: createRequests({ driver: 'table', world: realWorld, onCrash: (error) => crashes.push(error) }),
    refusalOf: () => undefined,
    onWanted: () => {},
    onSettled: ({ call }, outcome) => call.settle(outcome),
  });
  const crashes: unknown[] = [];
  lane.attach({
    ...{ cancel: () => {}, hasRoom: () => true },
    write: (frame) => written.push(JSON.parse(frame.toString()).params.name),
  });
  lane.setGate(OPEN);
  /** Submits it, and gives the way to grant or refuse what it reserves. */
  function submit(name: string, reserves = true) {
    let asked = 0;
    let decide = (_: boolean | Error): void => {};
    const reserve = () => {
      asked++;
      return new Promise<boolean>((resolve, reject) => {
        decide = (how) => (how instanceof Error ? reject(how) : resolve(how));
      });
    };
    const call: Call = {
      ...{ requestId: name, server: 'alpha', method: 'tools/call', name, principal: '_', door: 'nats' },
      ...{ params: Buffer.from(`{"name":"${name}"}`), ...(reserves && { reserve }) },
      settle: (outcome) => ends.set(name, [...(ends.get(name) ?? []), outcome]),
    };
    const request = lane.submit(call);
    return { request, asked: () => asked, decide: (how: boolean | Error) => settled(decide(how)) };
  }
  const fate = (name: string) =>
    (ends.get(name) ?? []).map((end) => (end.ok ? 'ok' : `${end.failure.code}, ${end.failure.delivery}`));
  return { lane, written, submit, fate, crashes };
}
const settled = (_?: unknown) => new Promise((resolve) => setImmediate(resolve));

it('is sent after a yes, and not before', async () => {
  const s = stage();
  const a = s.submit('a');
  await settled();
  expect([a.request !== undefined, a.asked(), s.written]).toEqual([true, 1, []]);
  await a.decide(true);
  expect([a.asked(), s.written, s.fate('a')]).toEqual([1, ['a'], []]);
  s.lane.answer('1', 'result', Buffer.from('{}'));
  expect(s.fate('a')).toEqual(['ok']);
});

it('is not sent after a no, and ends as one that was not sent', async () => {
  const s = stage();
  await s.submit('a').decide(false);
  expect([s.written, s.fate('a')]).toEqual([[], ['cancelled, not sent']]);
});

it('is not sent when nobody can say whether it may be, and the fault is told', async () => {
  const s = stage();
  await s.submit('a').decide(new Error('a bug'));
  expect([s.written, s.fate('a')]).toEqual([[], ['cancelled, not sent']]);
  expect(s.crashes).toHaveLength(1);
});

it('that is cancelled meanwhile is not sent after a late yes', async () => {
  const s = stage();
  const a = s.submit('a');
  if (a.request) s.lane.cancel(a.request, 'no more');
  await a.decide(true);
  expect([s.written, s.fate('a')]).toEqual([[], ['cancelled, not sent']]);
});

it('is asked for only when it is its turn', async () => {
  const s = stage();
  s.lane.setGate(HOLD);
  const a = s.submit('a');
  expect(a.asked()).toBe(0);
  s.lane.setGate(OPEN);
  expect(a.asked()).toBe(1);
  await a.decide(true);
  expect(s.written).toEqual(['a']);
});

it('takes a place at the server while it is asked for', () => {
  const s = stage();
  const [a, b, c] = [s.submit('a'), s.submit('b'), s.submit('c')];
  expect([a.asked(), b.asked(), c.asked()]).toEqual([1, 1, 0]);
  expect([s.lane.room, s.lane.mayBeAsked(), s.lane.asking()]).toEqual([0, true, []]);
});

it('whose server goes away meanwhile waits for it, and is not asked for again', async () => {
  const s = stage();
  const a = s.submit('a');
  s.lane.setGate(HOLD);
  await a.decide(true);
  expect(s.written).toEqual([]);
  s.lane.setGate(OPEN);
  await settled();
  expect([a.asked(), s.written]).toEqual([1, ['a']]);
});

it('whose server takes no calls any more is told so, as one that was not sent', async () => {
  const s = stage();
  const a = s.submit('a');
  s.lane.setGate(WAITING);
  await a.decide(true);
  expect([s.written, s.fate('a')]).toEqual([[], ['unavailable, not sent']]);
});

it('goes to the server before those that came after it, and they follow', async () => {
  const s = stage();
  const all = ['a', 'b', 'c', 'd', 'e'].map((name) => s.submit(name));
  await all[1]?.decide(true);
  await all[0]?.decide(true);
  expect([s.written, all.map((each) => each.asked())]).toEqual([
    ['b', 'a'],
    [1, 1, 0, 0, 0],
  ]);
  s.lane.answer('2', 'result', Buffer.from('{}'));
  await all[2]?.decide(true);
  expect(s.written).toEqual(['b', 'a', 'c']);
});

it('that somebody is asked about keeps its turn, and is no candidate before it is sent', async () => {
  const s = stage();
  const a = s.submit('a');
  const goOn = s.lane.pause();
  const b = s.submit('b');
  await a.decide(true);
  expect([s.written, s.lane.asking()]).toEqual([[], []]);
  goOn();
  await b.decide(true);
  expect(s.written).toEqual(['a', 'b']);
});

it('does not hold up a plain call', () => {
  const s = stage();
  s.submit('a');
  s.submit('plain', false);
  expect(s.written).toEqual(['plain']);
});
