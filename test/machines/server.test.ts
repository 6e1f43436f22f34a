// The life of one server: every configuration it can reach, whatever the connection does and whoever commands it.
// The stories with a clock are in server-stories.test.ts.

import { describe, expect, it } from 'vitest';
import { initialTransition } from 'xstate';
import { type ServerEvent, type ServerSpec, serverMachine } from '../../machines/server.ts';
import { begun, everyStep, plain, reactions, type Step, stateOf, statesOf, timers, told } from '../support/paths.ts';

const spec: ServerSpec = {
  name: 'echo',
  isRemote: true,
  openMs: 1_000,
  drainMs: 2_000,
  closeMs: 3_000,
  restart: { intensity: 2, periodMs: 30_000, backoffMs: [100, 400] },
};
const commands: ServerEvent[] = [
  { type: 'start' },
  { type: 'stop' },
  { type: 'restart' },
  { type: 'remove' },
  { type: 'wanted' },
  { type: 'login.done' },
];
const facts: ServerEvent[] = [
  { type: 'connection.ready' },
  { type: 'connection.drained' },
  { type: 'connection.quiet' },
  { type: 'connection.heard' },
  { type: 'connection.silent' },
  { type: 'connection.ill', why: 'HTTP 500', everyMs: 200_000, retryMs: 0 },
  { type: 'connection.deaf' },
  { type: 'connection.unreachable', why: 'no way' },
  { type: 'connection.refused', why: 'no such command' },
  { type: 'connection.unauthorized', why: 'no token' },
  { type: 'connection.short', why: 'no descriptors' },
  { type: 'connection.closed', why: 'exit 1' },
  { type: 'connection.closed', why: 'exit 1', isBlamed: true },
  { type: 'restart.forgotten' },
];

// `restarts` only grows, and nothing depends on it; of `why`, only whether there is one.
const key = ({ value, context: { next, recent, shortages, why, restMs } }: any) => [
  ...[value, next, recent, shortages, why !== '', restMs],
];
const steps = everyStep(serverMachine, spec, [...commands, ...facts], key);

const isCommand = ({ event }: Step) => commands.some(({ type }) => type === event.type);
const isShort = ({ event }: Step) => event.type === 'connection.short';
const isLeaving = (state: string) => state === 'up.draining' || state === 'up.closing';
const isUp = (state: string) => state.startsWith('up.');
const about = ({ from, event, to }: Step) => `${stateOf(from)} + ${event.type} → ${stateOf(to)}`;
const check = (which: (step: Step) => boolean, invariant: (step: Step, about: string) => void) => {
  const chosen = steps.filter(which);
  expect(chosen.length).toBeGreaterThan(0);
  for (const step of chosen) invariant(step, about(step));
};

describe('in every reachable configuration', () => {
  it('begins stopped, unblamed, with nothing counted', () => {
    const [first] = initialTransition(serverMachine, spec);
    expect(stateOf(first)).toBe('stopped');
    expect(first.context).toEqual({ spec, next: 'stopped', restarts: 0, recent: 0, shortages: 0, why: '', restMs: 0 });
  });

  it('moves as this table says, and ignores everything else', () => {
    const destinations = 'asleep | gone | stopped | up.opening';
    const over = {
      ...{ 'connection.closed': destinations, 'connection.refused': destinations },
      ...{ 'connection.unauthorized': destinations, 'connection.short': destinations },
    };
    const fails = { 'connection.closed': 'failed | waiting.resting', 'connection fails': 'failed | waiting.resting' };
    const refused = {
      ...{ 'connection.refused': 'failed', 'connection.unauthorized': 'needsLogin' },
      'connection.short': 'waiting.resting',
    };
    const serving = {
      ...{ stop: 'up.draining', restart: 'up.draining', remove: 'up.draining', 'connection.quiet': 'up.draining' },
      ...{ ...fails, ...refused },
    };
    expect(reactions(steps)).toEqual({
      stopped: { start: 'up.opening', restart: 'up.opening', remove: 'gone' },
      asleep: { start: 'up.opening', restart: 'up.opening', wanted: 'up.opening', stop: 'stopped', remove: 'gone' },
      'up.opening': {
        ...{ stop: 'up.closing', restart: 'up.closing', remove: 'up.closing' },
        ...{ 'connection.ready': 'up.ready.heard', 'after open': 'failed | waiting.resting', ...fails, ...refused },
      },
      'up.ready.heard': {
        ...{ ...serving, 'connection.silent': 'up.ready.probed', 'connection.unreachable': 'up.ready.probed' },
      },
      'up.ready.probed': {
        ...{ ...serving, 'connection.heard': 'up.ready.heard', 'connection.ill': 'up.ready.ill' },
        'connection.deaf': 'up.ready.unasked',
      },
      'up.ready.ill': {
        ...{ ...serving, 'connection.heard': 'up.ready.heard', 'connection.unreachable': 'up.ready.probed' },
        'after rest': 'up.ready.probed',
      },
      'up.ready.unasked': { ...serving, 'connection.unreachable': 'failed | waiting.resting' },
      'up.draining': {
        ...{ 'connection.drained': 'up.closing', 'after drain': 'up.closing', 'connection fails': destinations },
        ...over,
      },
      'up.closing': { 'after close': destinations, 'connection fails': destinations, ...over },
      'waiting.resting': {
        ...{ start: 'up.opening', restart: 'up.opening', 'after backoff': 'up.opening' },
        ...{ stop: 'stopped', remove: 'gone', wanted: 'waiting.hurried' },
      },
      'waiting.hurried': {
        ...{ start: 'up.opening', restart: 'up.opening', 'after backoff': 'up.opening', 'after hurry': 'up.opening' },
        ...{ stop: 'stopped', remove: 'gone' },
      },
      failed: { start: 'up.opening', restart: 'up.opening', stop: 'stopped', remove: 'gone' },
      needsLogin: {
        ...{ start: 'up.opening', restart: 'up.opening', 'login.done': 'up.opening' },
        ...{ stop: 'stopped', remove: 'gone' },
      },
    });
    expect(statesOf(steps)).toHaveLength(14);
  });

  it('has a connection exactly while it is up, and a new one each time it comes up', () => {
    check(
      () => true,
      (step, name) => {
        const { from, to } = step;
        expect(Object.keys(to.children), name).toEqual(isUp(stateOf(to)) ? ['connection'] : []);
        const comesUp = stateOf(to) === 'up.opening' && stateOf(from) !== 'up.opening';
        expect(begun(step), name).toEqual(comesUp ? ['connection'] : []);
        if (!comesUp && isUp(stateOf(to))) expect(to.children.connection === from.children.connection, name).toBe(true);
      },
    );
    check(
      (step) => begun(step).length > 0,
      ({ effects }) => expect(effects.find(({ type }) => type === 'xstate.spawnChild')?.params.input).toBe(spec),
    );
  });

  it('asks the connection to probe, to drain and to close as it enters those states, and never otherwise', () => {
    const asks: Record<string, string[]> = {
      'up.ready.probed': ['connection:probe'],
      'up.draining': ['connection:drain'],
      'up.closing': ['connection:close'],
    };
    check(
      () => true,
      (step, name) => {
        const enters = stateOf(step.to) !== stateOf(step.from);
        expect(told(step), name).toEqual((enters && asks[stateOf(step.to)]) || []);
      },
    );
  });

  it('sets each timer from its spec', () => {
    const waits: Record<string, Record<string, number>> = {
      'up.opening': { 'after open': 1_000 },
      'up.draining': { 'after drain': 2_000 },
      'up.closing': { 'after close': 3_000 },
      'waiting.hurried': { 'after hurry': 100 },
    };
    check(
      ({ from, to }) => stateOf(from) !== stateOf(to),
      (step, name) => {
        const { recent, restMs, shortages } = step.to.context;
        const isCounted = step.event.isBlamed !== true;
        const backoff = { 'after backoff': recent < 2 ? 100 : 400 };
        const waiting = isShort(step)
          ? { 'after backoff': [250, 500, 1_000, 2_000][shortages - 1] }
          : { ...backoff, ...(isCounted && { 'restart.forgotten': 30_000 }) };
        const ill = { 'after rest': restMs };
        const own: Record<string, object> = { ...waits, 'waiting.resting': waiting, 'up.ready.ill': ill };
        expect(timers(step), name).toEqual(own[stateOf(step.to)] ?? {});
      },
    );
  });

  it('while it leaves, obeys commands only in where it goes', () => {
    check(
      (step) => isLeaving(stateOf(step.from)) && isCommand(step),
      ({ from, event, to, effects }, name) => {
        const wanted = from.context.next === 'asleep' ? 'up' : from.context.next;
        const goes =
          { start: 'up', restart: 'up', stop: 'stopped', remove: 'gone', wanted }[event.type] ?? from.context.next;
        expect(to.value, name).toEqual(from.value);
        expect(to.context, name).toEqual({ ...from.context, next: goes });
        expect(effects, name).toEqual([]);
      },
    );
  });

  it('while it leaves, gets where it was told to go, whatever the connection does', () => {
    check(
      (step) => isLeaving(stateOf(step.from)) && !isCommand(step),
      ({ from, to }, name) => {
        const { next } = from.context;
        const arrived = next === 'up' ? 'up.opening' : next;
        expect([arrived, 'up.closing', stateOf(from)], name).toContain(stateOf(to));
        expect(to.context.next, name).toBe(next);
        expect(to.context.why, name).toBe(from.context.why);
      },
    );
  });

  it('remembers where a command, or silence, sends it', () => {
    check(
      ({ from, to }) => !isLeaving(stateOf(from)) && isLeaving(stateOf(to)),
      ({ event, to }, name) => {
        const goes = { stop: 'stopped', restart: 'up', remove: 'gone', 'connection.quiet': 'asleep' }[event.type];
        expect(to.context.next, name).toBe(goes);
      },
    );
  });

  it('does not count a restart that a call is to blame for, and waits for it however many there were', () => {
    check(
      ({ from, event }) => event.isBlamed === true && isUp(stateOf(from)) && !isLeaving(stateOf(from)),
      ({ from, to }, name) => {
        expect(stateOf(to), name).toBe('waiting.resting');
        expect(to.context.recent, name).toBe(from.context.recent);
        expect(to.context.restarts, name).toBe(from.context.restarts + 1);
      },
    );
  });

  it('fails only when refused or after its last restart, and waits for a restart that it counts', () => {
    check(
      ({ from, to }) => stateOf(to) === 'failed' && stateOf(from) !== 'failed',
      ({ from, event }, name) =>
        event.type === 'connection.refused' || expect(from.context.recent, name).toBe(spec.restart.intensity),
    );
    check(
      (step) => {
        const isNew = stateOf(step.to) === 'waiting.resting' && stateOf(step.from) !== 'waiting.resting';
        return isNew && !isShort(step) && step.event.isBlamed !== true;
      },
      ({ from, to }, name) => {
        expect(from.context.recent, name).toBeLessThan(spec.restart.intensity);
        expect(to.context.recent, name).toBe(from.context.recent + 1);
        expect(to.context.restarts, name).toBe(from.context.restarts + 1);
      },
    );
  });

  it('counts restarts nowhere else, and forgets them one by one, or all when somebody helps a failed one', () => {
    check(
      (step) => stateOf(step.to) !== 'waiting.resting' || isShort(step),
      ({ from, event, to }, name) => {
        const helped = stateOf(from) === 'failed' && ['start', 'stop', 'restart'].includes(event.type);
        // An attempt that a caller wanted is none of the server's own.
        const isForgotten = ['restart.forgotten', 'after hurry'].includes(plain(event.type));
        const forgotten = isForgotten ? Math.max(0, from.context.recent - 1) : from.context.recent;
        expect(to.context.recent, name).toBe(helped ? 0 : forgotten);
        expect(to.context.restarts, name).toBe(from.context.restarts);
      },
    );
  });

  it('leaves one that is ill alone for longer each time, up to ten minutes, until it is heard of', () => {
    const rests = new Set<number>();
    check(
      ({ to }) => stateOf(to) === 'up.ready.ill',
      ({ from, event, to }, name) => {
        const longer = Math.min(Math.max(200_000, 2 * from.context.restMs), 600_000);
        const isNews = stateOf(from) === 'up.ready.probed' && event.type === 'connection.ill';
        expect(to.context.restMs, name).toBe(isNews ? longer : from.context.restMs);
        rests.add(to.context.restMs);
      },
    );
    expect([...rests].sort()).toEqual([200_000, 400_000, 600_000]);
    check(
      ({ to }) => !['up.ready.ill', 'up.ready.probed'].includes(stateOf(to)),
      ({ to }, name) => expect(to.context.restMs, name).toBe(0),
    );
  });

  it('says why it is down or ill until it is ready and heard of again, or somebody helped', () => {
    const said: Record<string, string> = {
      'connection.closed': 'exit 1',
      'connection.short': 'no descriptors',
      'connection.refused': 'no such command',
      'connection.unauthorized': 'no token; run troupe login echo',
      'connection fails': 'it broke',
      'connection.unreachable': 'no way',
      'after open': 'did not open in time',
    };
    const isReady = (state: string) => state.startsWith('up.ready');
    check(
      () => true,
      ({ from, event, to }, name) => {
        const isNews = isUp(stateOf(from)) && !isLeaving(stateOf(from)) && !isUp(stateOf(to));
        const helped = stateOf(from) === 'failed' && stateOf(to) !== 'failed' && stateOf(to) !== 'gone';
        const entered = stateOf(from) !== stateOf(to);
        const isWell = entered && ['up.ready.heard', 'up.ready.unasked'].includes(stateOf(to));
        const forgiven = helped || isWell || (isReady(stateOf(from)) && isLeaving(stateOf(to)));
        const isIll = entered && event.type === 'connection.ill';
        const expected = isNews ? said[plain(event.type)] : isIll ? 'HTTP 500' : forgiven ? '' : from.context.why;
        expect(to.context.why, name).toBe(expected);
      },
    );
  });
});
