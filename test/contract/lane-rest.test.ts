// What a lane tells of itself: whether it is idle, which call the server must be working on; and that requests of our
// own pass a gate that callers wait at, but never go to a server that is not there.

import { describe, expect, it } from 'vitest';
import type { Call, Outcome, Signal } from '../../src/calls/call.ts';
import { createLane } from '../../src/calls/lane.ts';
import type { InFlight } from '../../src/calls/request.ts';
import { createRequests } from '../../src/calls/requests.ts';
import { requestBehind } from '../../src/servers/attribution.ts';
import { realWorld, type World } from '../../src/world/world.ts';
import { eventually } from '../support/eventually.ts';
import { simulatedWorld } from '../support/simulated-world.ts';

const SETTINGS = { timeoutMs: 5_000, maxTimeoutMs: 10_000, maxInFlight: 1, maxQueued: 10, holdMs: 1_000 };

function stage(driver: 'table' | 'actor', world: World = realWorld) {
  const written: any[] = [];
  const outcomes: Outcome[] = [];
  const lane = createLane({
    server: 'alpha',
    settings: SETTINGS,
    requests: createRequests({ driver, world, onCrash: (error) => expect.unreachable(String(error)) }),
    refusalOf: () => undefined,
    onSettled: ({ call }, outcome) => call.settle(outcome),
    onWanted: () => {},
  });
  const attach = () =>
    lane.attach({ write: (frame) => written.push(JSON.parse(`${frame}`)), cancel: () => {}, hasRoom: () => true });
  const call = (name: string, door: Call['door'] = 'nats'): Call => ({
    ...{ requestId: name, server: 'alpha', method: door === 'troupe' ? 'ping' : 'tools/call', name, door },
    ...{ params: Buffer.from('{}'), principal: '_', settle: (outcome) => outcomes.push(outcome) },
  });
  const submit = (name: string) => lane.submit(call(name)) as InFlight;
  const open = () => lane.setGate({ mode: 'open', state: 'ready', why: '' });
  return { lane, written, outcomes, attach, call, submit, open };
}

describe.each(['table', 'actor'] as const)('a lane driven by the %s', (driver) => {
  it('names the call the server works on only while there is exactly one', () => {
    const s = stage(driver);
    s.attach();
    s.open();
    expect(requestBehind(s.lane, undefined)).toBeUndefined();
    const { id } = s.submit('a');
    s.submit('b');
    expect(requestBehind(s.lane, undefined)?.call.name).toBe('a'); // b still waits here
    s.lane.retune({ ...SETTINGS, maxInFlight: 2 });
    expect(requestBehind(s.lane, undefined)).toBeUndefined();
    s.lane.answer(id, 'result', Buffer.from('{}'));
    expect(requestBehind(s.lane, undefined)?.call.name).toBe('b');
  });

  it('relays a flood of progress as its beginning and, before the answer, its newest', () => {
    const s = stage(driver);
    s.attach();
    s.open();
    const heard: number[] = [];
    const onSignal = (signal: Signal) => void (signal.type === 'progress' && heard.push(signal.progress));
    const { id } = s.lane.submit({ ...s.call('a'), onSignal }) as InFlight;
    for (let progress = 1; progress <= 1_000; progress++) s.lane.progress(id, { progress });
    expect(heard.length).toBeLessThan(100);
    s.lane.answer(id, 'result', Buffer.from('{}'));
    expect(heard.at(-1)).toBe(1_000);
  });

  it('relays a burst of progress whole, also in the first moment of a daemon', () => {
    const s = stage(driver, simulatedWorld());
    s.attach();
    s.open();
    const heard: number[] = [];
    const onSignal = (signal: Signal) => void (signal.type === 'progress' && heard.push(signal.progress));
    const { id } = s.lane.submit({ ...s.call('a'), onSignal }) as InFlight;
    const burst = Array.from({ length: 30 }, (_, nth) => nth + 1);
    for (const progress of burst) s.lane.progress(id, { progress });
    expect(heard).toEqual(burst);
  });

  it('tells when the last call at the server is done, at once if there is none', () => {
    const s = stage(driver);
    s.attach();
    s.open();
    let idle = 0;
    s.lane.whenIdle(() => idle++);
    expect(idle).toBe(1);
    const { id } = s.submit('a');
    expect(idle).toBe(1);
    s.lane.answer(id, 'result', Buffer.from('{}'));
    expect(idle).toBe(2);
    s.lane.whenIdle(undefined);
    s.lane.answer(s.submit('b').id, 'result', Buffer.from('{}'));
    expect(idle).toBe(2);
  });

  it('keeps a call on which somebody is asked as long as it may last at all, until the last has answered', () => {
    const s = stage(driver);
    s.attach();
    s.open();
    const request = s.submit('a');
    const patience = request.deadline;
    const [first, second] = [s.lane.suspend(request), s.lane.suspend(request)];
    first();
    first(); // answered and withdrawn in one: it counts once
    expect(request.deadline).toBe(request.latestDeadline);
    s.lane.progress(request.id, { progress: 1 });
    expect(request.deadline).toBe(request.latestDeadline);
    second();
    expect(request.deadline).toBeLessThan(request.latestDeadline);
    expect(request.deadline).toBeGreaterThanOrEqual(patience);
    s.lane.answer(request.id, 'result', Buffer.from('{}'));
    s.lane.suspend(request)(); // too late to matter
    expect(s.outcomes).toHaveLength(1);
  });

  it('counts as idle from the last caller’s answer on; requests of our own do not keep a server awake', async () => {
    const s = stage(driver);
    s.attach();
    s.open();
    const { id } = s.submit('a');
    expect(s.lane.idleMs).toBe(0);
    s.lane.answer(id, 'result', Buffer.from('{}'));
    await eventually(() => s.lane.idleMs > 50);
    s.lane.ask(s.call('ping', 'troupe'));
    expect(s.lane.idleMs).toBe(0);
    s.lane.answer(String(s.written.at(-1).id), 'result', Buffer.from('{}'));
    expect(s.lane.idleMs).toBeGreaterThan(50);
  });

  it('sends requests of our own through a gate that holds callers back, without a progress token for a ping', () => {
    const s = stage(driver);
    s.attach();
    s.lane.setGate({ mode: 'hold', state: 'opening', why: '' });
    s.submit('a');
    s.lane.ask(s.call('ping', 'troupe'));
    expect(s.written).toEqual([{ jsonrpc: '2.0', id: s.written[0]?.id, method: 'ping', params: {} }]);
    expect([s.lane.inFlight, s.lane.queued]).toEqual([0, 1]); // ours is at the server, but is nobody's call
  });

  it('answers a request of our own at once when there is no server, and keeps no place for it', () => {
    const s = stage(driver);
    s.lane.ask(s.call('tools', 'troupe'));
    expect(s.outcomes).toMatchObject([{ ok: false, failure: { code: 'unavailable', delivery: 'not sent' } }]);
    s.attach();
    s.open();
    s.submit('a');
    expect(s.written).toHaveLength(1);
  });
});
