// A server's lane keeps its promise under both drivers: whatever happens to a call, it is sent at most once and its
// caller is answered exactly once, with what is known of its fate.

import { afterEach, describe, expect, it } from 'vitest';
import type { Call, Outcome, Signal } from '../../src/calls/call.ts';
import { createLane, type LaneSettings } from '../../src/calls/lane.ts';
import type { InFlight } from '../../src/calls/request.ts';
import { createRequests } from '../../src/calls/requests.ts';
import type { Failure } from '../../src/protocol/failures.ts';
import { realWorld } from '../../src/world/world.ts';
import { eventually } from '../support/eventually.ts';

const SETTINGS: LaneSettings = {
  timeoutMs: 5_000,
  maxTimeoutMs: 10_000,
  maxInFlight: 100,
  maxQueued: 100,
  holdMs: 1_000,
};
const OPEN = { mode: 'open', state: 'ready', why: '' } as const;
const HOLD = { mode: 'hold', state: 'opening', why: '' } as const;
const RESTARTING = { mode: 'hold', state: 'waiting', why: 'exited with code 1', remedy: 'try again' } as const;
const REFUSE = { mode: 'refuse', state: 'failed', why: 'exited with code 1' } as const;

type Stage = ReturnType<typeof stage>;
const crashes: unknown[] = [];
afterEach(() => expect(crashes.splice(0)).toEqual([]));

function stage(driver: 'table' | 'actor', more: Partial<LaneSettings> = {}, maxBytes = 1_000_000) {
  const written: any[] = [];
  const cancelled: string[] = [];
  const settled: { name: string; outcome: Outcome }[] = [];
  const world = { hasRoom: true, wanted: 0, refusal: undefined as Failure | undefined, answers: [] as string[] };
  const lane = createLane({
    server: 'alpha',
    settings: { ...SETTINGS, ...more },
    requests: createRequests({ driver, world: realWorld, onCrash: (error) => crashes.push(error), maxBytes }),
    refusalOf: () => world.refusal,
    onSettled: ({ call }, outcome) => {
      settled.push({ name: call.name, outcome });
      call.settle(outcome);
    },
    onWanted: () => world.wanted++,
  });
  lane.attach({
    write: (frame) => written.push(JSON.parse(frame.toString())),
    cancel: (id, why) => cancelled.push(`${id}: ${why}`),
    hasRoom: () => world.hasRoom,
  });
  lane.setGate(OPEN);
  const callOf = (name: string, rest: Partial<Call>): Call => ({
    ...{ requestId: name, server: 'alpha', method: 'tools/call', name, principal: '_', door: 'nats' },
    params: Buffer.from(`{"name":"${name}","big":9007199254740993}`),
    settle: () => world.answers.push(name),
    ...rest,
  });
  const submit = (name: string, rest: Partial<Call> = {}) => lane.submit(callOf(name, rest)) as InFlight;
  return { lane, written, cancelled, settled, world, submit, callOf };
}

/** The one outcome of a call, in a few words; fails when there is none, or a second. */
function fate({ settled, world }: Stage, name: string): string {
  const outcomes = settled.filter((each) => each.name === name).map(({ outcome }) => outcome);
  expect(outcomes).toHaveLength(1);
  expect(world.answers.filter((answered) => answered === name)).toHaveLength(1);
  const [outcome] = outcomes;
  if (!outcome?.ok) return `${outcome?.failure.code}, ${outcome?.failure.delivery}`;
  return `${outcome.isError ? 'tool error' : 'ok'}: ${outcome.result}`;
}
const sentenceOf = ({ settled }: Stage, name: string): string => {
  const outcome = settled.find((each) => each.name === name)?.outcome;
  return outcome && !outcome.ok ? outcome.failure.message : '';
};

describe.each(['table', 'actor'] as const)('a lane driven by the %s', (driver) => {
  it('sends a call at once under its own id and progress token, with every other byte as it was', () => {
    const raw: string[] = [];
    const s = stage(driver);
    s.lane.attach({ write: (frame) => raw.push(frame.toString()), cancel: () => {}, hasRoom: () => true });
    const request = s.submit('a');
    expect(raw).toEqual([
      `{"jsonrpc":"2.0","id":${request.id},"method":"tools/call","params":{"_meta":{"progressToken":${request.id}},"name":"a","big":9007199254740993}}\n`,
    ]);
    expect([s.lane.inFlight, s.lane.queued]).toEqual([1, 0]);
    expect(s.submit('b').id).not.toBe(request.id);
  });

  it('answers with the first answer and ignores every later one', () => {
    const s = stage(driver);
    const { id } = s.submit('a');
    expect(s.lane.answer(id, 'result', Buffer.from('{"content":[]}'))).toBe(true);
    expect(s.lane.answer(id, 'result', Buffer.from('{"second":1}'))).toBe(false);
    expect(s.lane.answer(id, 'error', Buffer.from('{"code":1}'))).toBe(false);
    expect(s.lane.answer('999', 'result', Buffer.from('{}'))).toBe(false);
    expect(fate(s, 'a')).toBe('ok: {"content":[]}');
    expect(s.lane.inFlight).toBe(0);
  });

  it('keeps the server’s own error, and tells a tool’s error from a result that only mentions one', () => {
    const s = stage(driver);
    s.lane.answer(s.submit('a').id, 'error', Buffer.from('{"code":-7, "message":"no"}'));
    s.lane.answer(s.submit('b').id, 'result', Buffer.from('{"isError" : true}'));
    s.lane.answer(s.submit('c').id, 'result', Buffer.from('{"content":[{"isError":true}]}'));
    expect(fate(s, 'a')).toBe('rejected, failed');
    const outcome = s.settled[0]?.outcome as any;
    expect(String(outcome.failure.error)).toBe('{"code":-7, "message":"no"}');
    expect(fate(s, 'b')).toBe('tool error: {"isError" : true}');
    expect(fate(s, 'c')).toMatch(/^ok: /);
  });

  it('keeps at most maxInFlight at the server and sends the next, in order, as answers come', () => {
    const s = stage(driver, { maxInFlight: 2 });
    const requests = ['a', 'b', 'c', 'd'].map((name) => s.submit(name));
    expect(s.written.map(({ params }) => params.name)).toEqual(['a', 'b']);
    expect([s.lane.inFlight, s.lane.queued]).toEqual([2, 2]);
    s.lane.answer(requests[1]!.id, 'result', Buffer.from('{}'));
    s.lane.answer(requests[0]!.id, 'result', Buffer.from('{}'));
    expect(s.written.map(({ params }) => params.name)).toEqual(['a', 'b', 'c', 'd']);
    s.lane.retune({ ...SETTINGS, maxInFlight: 3 });
    s.submit('e');
    expect(s.written).toHaveLength(5);
  });

  it('waits while the server does not read, and goes on when it does', () => {
    const s = stage(driver);
    s.world.hasRoom = false;
    s.submit('a');
    expect(s.written).toEqual([]);
    s.world.hasRoom = true;
    s.lane.pump();
    expect(s.written).toHaveLength(1);
  });

  it('refuses what would make the queue longer than maxQueued, and nothing that can be sent at once', () => {
    const s = stage(driver, { maxInFlight: 1, maxQueued: 1 });
    for (const name of ['a', 'b', 'c']) s.submit(name);
    expect(fate(s, 'c')).toBe('busy, not sent');
    expect(sentenceOf(s, 'c')).toContain('maxQueued');
    const none = stage(driver, { maxInFlight: 1, maxQueued: 0 });
    none.submit('a');
    none.submit('b');
    expect(none.written).toHaveLength(1);
    expect(fate(none, 'b')).toBe('busy, not sent');
  });

  it('refuses a large call while so many bytes wait for their answers, but no small one, nor the only one', () => {
    const s = stage(driver, { maxInFlight: 1 }, 300_000);
    const params = Buffer.from(`{"text":"${'x'.repeat(200_000)}"}`);
    s.submit('only', { params: Buffer.from(`{"text":"${'x'.repeat(400_000)}"}`) });
    s.submit('large', { params });
    s.submit('small');
    expect(fate(s, 'large')).toBe('busy, not sent');
    expect(sentenceOf(s, 'large')).toMatch(/^calls of \d+ bytes wait for their answers; send this one again/);
    expect([s.settled.length, s.lane.queued]).toEqual([1, 1]);
    s.lane.answer('1', 'result', Buffer.from('{}'));
    s.submit('again', { params });
    expect([s.settled.length, s.lane.queued]).toEqual([2, 1]);
  });

  it('ends a call at its deadline: unsent in the queue, unknown and cancelled at the server once sent', async () => {
    const s = stage(driver, { maxInFlight: 1 });
    const sent = s.submit('a', { timeoutMs: 40 });
    s.submit('b', { timeoutMs: 30 });
    await eventually(() => s.settled.length === 2);
    expect(fate(s, 'a')).toBe('timeout, outcome unknown');
    expect(fate(s, 'b')).toBe('timeout, not sent');
    expect(sentenceOf(s, 'a')).toMatch(/alpha \(ready\) did not answer a within 40 ms; .* its outcome is unknown/);
    expect(s.cancelled).toEqual([`${sent.id}: `]);
    expect(s.lane.answer(sent.id, 'result', Buffer.from('{}'))).toBe(false);
    expect(fate(s, 'a')).toBe('timeout, outcome unknown');
    expect([s.lane.inFlight, s.lane.queued]).toEqual([0, 0]);
  });

  it('lets progress move the deadline, up to maxTimeoutMs and no further', async () => {
    const s = stage(driver, { timeoutMs: 300, maxTimeoutMs: 900 });
    const startedAt = performance.now();
    const { id } = s.submit('a');
    let progress = 0;
    await eventually(() => {
      s.lane.progress(id, { progress: ++progress });
      return s.settled.length === 1;
    });
    expect(fate(s, 'a')).toBe('timeout, outcome unknown');
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(900);
    expect(sentenceOf(s, 'a')).toContain('within 900 ms');
    expect(stage(driver, { maxTimeoutMs: 70 }).submit('b', { timeoutMs: 9_000 }).timeoutMs).toBe(70);
  });

  it('relays progress only as it increases, the newest before the answer, and none after', () => {
    const s = stage(driver);
    const heard: (Signal | string)[] = [];
    const { id } = s.submit('a', { onSignal: (signal) => heard.push(signal), settle: () => heard.push('answered') });
    const reports = [1, 3, 2, 3, Number.NaN, 4, 5].map((progress) => s.lane.progress(id, { progress, total: 5 }));
    expect(reports).toEqual([true, true, false, false, false, true, true]);
    s.lane.answer(id, 'result', Buffer.from('{}'));
    expect(s.lane.progress(id, { progress: 6 })).toBe(false);
    const report = (progress: number) => ({ type: 'progress', progress, total: 5 });
    expect(heard).toEqual([report(1), report(3), report(4), report(5), 'answered']);
  });

  it('never tells a server that initialize is cancelled, which MCP forbids', () => {
    const s = stage(driver);
    s.lane.cancel(s.submit('a', { method: 'initialize' }), 'it takes too long');
    expect(fate(s, 'a')).toBe('cancelled, outcome unknown');
    expect(s.cancelled).toEqual([]);
  });

  it('cancels what waits without a word to the server, and tells the server of what it works on', () => {
    const s = stage(driver, { maxInFlight: 1 });
    const [sent, queued] = [s.submit('a'), s.submit('b')];
    s.lane.cancel(queued, 'no longer needed');
    expect(fate(s, 'b')).toBe('cancelled, not sent');
    expect([s.cancelled, s.lane.queued]).toEqual([[], 0]);
    s.lane.cancel(sent, 'no longer needed');
    s.lane.cancel(sent, 'again');
    expect(s.cancelled).toEqual([`${sent.id}: no longer needed`]);
    expect(fate(s, 'a')).toBe('cancelled, outcome unknown');
    expect(s.lane.answer(sent.id, 'result', Buffer.from('{}'))).toBe(false);
    s.submit('c');
    expect(s.written.map(({ params }) => params.name)).toEqual(['a', 'c']);
  });

  it('says of a lost server’s calls that their outcome is unknown, and sends none of them again', async () => {
    const s = stage(driver, { maxInFlight: 1 });
    s.submit('a');
    s.submit('b');
    s.lane.setGate(HOLD);
    s.lane.detach('killed by SIGKILL');
    await Promise.resolve(); // the gate may still learn what has become of the server
    expect(fate(s, 'a')).toBe('lost, outcome unknown');
    expect(sentenceOf(s, 'a')).toContain('alpha went away: killed by SIGKILL');
    s.lane.attach({ write: (frame) => s.written.push(JSON.parse(`${frame}`)), cancel: () => {}, hasRoom: () => true });
    s.lane.setGate(OPEN);
    expect(s.written.map(({ params }) => params.name)).toEqual(['a', 'b']);
  });

  it('refuses at a closed gate with the server’s state and why, also what already waited', () => {
    const s = stage(driver, { maxInFlight: 1 });
    s.submit('a');
    s.submit('b');
    s.lane.setGate(REFUSE);
    s.submit('c');
    for (const name of ['b', 'c']) {
      expect(fate(s, name)).toBe('unavailable, not sent');
      expect(sentenceOf(s, name)).toContain('exited with code 1');
    }
    expect(sentenceOf(s, 'c')).toContain('alpha is failed');
    expect(s.written).toHaveLength(1);
  });

  it('holds calls for a server that is coming, says that it is wanted, and sends them when it is there', () => {
    const s = stage(driver);
    s.lane.setGate(HOLD);
    s.submit('a');
    expect([s.world.wanted, s.lane.queued, s.written.length]).toEqual([1, 1, 0]);
    s.lane.setGate({ ...HOLD, state: 'asleep' }); // it went to sleep with somebody waiting
    expect(s.world.wanted).toBe(2);
    s.lane.setGate(OPEN);
    expect([s.lane.queued, s.written.length, s.world.wanted]).toEqual([0, 1, 2]);
  });

  it('holds unsent calls for a server that restarts, and refuses them with its trouble when that takes too long', async () => {
    const s = stage(driver, { maxInFlight: 1, holdMs: 50 });
    s.submit('a');
    s.submit('b');
    s.lane.setGate(RESTARTING);
    s.submit('c');
    expect([s.lane.queued, s.world.wanted]).toEqual([2, 1]); // a call wants it; those that wait anyway do not
    await eventually(() => s.settled.length === 2);
    for (const name of ['b', 'c']) {
      expect(fate(s, name)).toBe('unavailable, not sent');
      expect(sentenceOf(s, name)).toBe('server alpha is waiting: exited with code 1; try again');
    }
    s.submit('d');
    s.lane.setGate({ ...RESTARTING, state: 'opening' });
    s.lane.detach('exited with code 1');
    s.lane.attach({ write: (frame) => s.written.push(JSON.parse(`${frame}`)), cancel: () => {}, hasRoom: () => true });
    await Promise.resolve();
    s.lane.setGate(OPEN);
    expect(s.written.map(({ params }) => params.name)).toEqual(['a', 'd']);
    const [sent] = s.lane.asking();
    expect((sent as InFlight).deadline - (sent as InFlight).startedAt).toBeCloseTo(SETTINGS.timeoutMs); // its own time counts again
  });

  it('refuses at once while a server restarts, where calls are not to be held', () => {
    const s = stage(driver, { holdMs: 0 });
    s.lane.setGate(RESTARTING);
    s.submit('a');
    expect(fate(s, 'a')).toBe('unavailable, not sent');
  });

  it('asks whether a call may be sent only when it is about to be, and hands out no request that has ended', () => {
    const s = stage(driver, { maxQueued: 10_000 });
    s.lane.setGate(HOLD);
    s.submit('a');
    s.world.refusal = { code: 'unsupported', delivery: 'not sent', message: 'it has no tools' };
    s.lane.setGate(OPEN);
    expect(fate(s, 'a')).toBe('unsupported, not sent');
    expect(s.submit('b')).toBeUndefined();
    expect([fate(s, 'b'), s.written.length]).toEqual(['unsupported, not sent', 0]);
    s.lane.setGate(HOLD);
    const many = driver === 'table' ? 10_000 : 500; // an actor costs a millisecond
    for (let at = 0; at < many; at++) s.submit(`n${at}`);
    s.lane.setGate(OPEN); // ten thousand refusals in one go are a loop, not a stack
    expect(s.settled).toHaveLength(many + 2);
  });
});
