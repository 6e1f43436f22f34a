// What src/servers/states.ts says of each state of a server is what the chart of the server does in that state. The table is
// read by everybody who must know what a state means; here it is derived from the chart once more, and compared.

import { expect, it } from 'vitest';
import { type ServerEvent, type ServerSpec, serverMachine } from '../../machines/server.ts';
import { gateOf, meaningOf, type ServerState, STATES, stateOf } from '../../src/servers/states.ts';
import { everyStep, type Step } from '../support/paths.ts';

const spec: ServerSpec = {
  name: 'echo',
  isRemote: true,
  openMs: 1,
  drainMs: 1,
  closeMs: 1,
  restart: { intensity: 2, periodMs: 1, backoffMs: [1] },
};
const told = ['start', 'stop', 'restart', 'remove', 'login.done'];
const events = [
  ...[...told, 'wanted', 'connection.ready', 'connection.drained', 'connection.quiet', 'restart.forgotten'],
  ...['connection.heard', 'connection.silent', 'connection.deaf'],
].map((type) => ({ type }) as ServerEvent);
const troubles = ['refused', 'unauthorized', 'short', 'closed', 'ill', 'unreachable'].map(
  (word) => `connection.${word}`,
);
const trouble = troubles.map((type) => ({ type, why: 'trouble', everyMs: 600_000, retryMs: 0 }) as ServerEvent);

const key = ({ value, context: { next, recent, why } }: any) => JSON.stringify([value, next, recent, why !== '']);
const steps = everyStep(serverMachine, spec, [...events, ...trouble], key);
const snapshots = new Map(
  [...steps.map(({ from }) => from), ...steps.map(({ to }) => to)].map((each) => [key(each), each]),
);
const shown = (snapshot: any) => stateOf(snapshot) as ServerState;
const isTold = ({ event }: Step) => told.includes(event.type);
/** What the world may do without a person: time passes, the connection does well, a caller wants the server. */
const isOwn = (step: Step) => !isTold(step) && !trouble.some(({ type }) => type === step.event.type);
const leadsOn = (from: string, which: (step: Step) => boolean) =>
  steps.filter((step) => key(step.from) === from && which(step) && shown(step.to) !== shown(step.from));

/** Whether a server in that configuration can become ready although nobody tells it anything. */
function comesByItself(start: string): boolean {
  const seen = new Set([start]);
  for (const at of seen) {
    if (shown(snapshots.get(at)) === 'ready') return true;
    for (const step of leadsOn(at, isOwn)) seen.add(key(step.to));
    // A sub-state is a step on the way too.
    for (const step of steps) if (key(step.from) === at && isOwn(step)) seen.add(key(step.to));
  }
  return false;
}

it('has a row for every state of the chart, and no other', () => {
  const found = new Set([...snapshots.values()].map(shown));
  expect([...found].sort()).toEqual(Object.keys(STATES).sort());
});

const rows = [...snapshots].filter(([, snapshot]) => snapshot.status === 'active');

it('holds calls exactly for servers that come by themselves or when they are wanted, and sends them when they are ready', () => {
  for (const [at, snapshot] of rows) {
    const expected = shown(snapshot) === 'ready' ? 'open' : comesByItself(at) ? 'hold' : 'refuse';
    expect([at, gateOf(snapshot as never).mode]).toEqual([at, expected]);
  }
});

it('says that a server is coming, down, at rest, leaving or connected where the chart does', () => {
  for (const [at, snapshot] of rows) {
    const state = shown(snapshot);
    const { isComing, isDown, isAtRest, isLeaving, isConnected } = meaningOf(state);
    const isUp = 'connection' in snapshot.children;
    if (!isLeaving) expect([at, isComing]).toEqual([at, comesByItself(at)]);
    const moves = leadsOn(at, (step) => !isTold(step));
    expect([at, isAtRest]).toEqual([at, moves.every(({ event }) => event.type === 'wanted')]);
    expect([at, isDown]).toEqual([at, moves.length === 0]);
    // While it says goodbye a command only changes where it goes.
    const stopped = steps.find((step) => key(step.from) === at && step.event.type === 'stop');
    expect([at, isLeaving]).toEqual([at, isUp && stopped !== undefined && shown(stopped.to) === state]);
    expect([at, isConnected]).toEqual([at, isUp && hasOpened(at)]);
  }
});

/** Every way into that state leads over the word of the connection that its session is open, and none over its goodbye. */
function hasOpened(at: string): boolean {
  const state = shown(snapshots.get(at));
  const entries = steps.filter(({ from, to }) => shown(to) === state && shown(from) !== state);
  return entries.every(({ from, event }) => event.type === 'connection.ready' || shown(from) === 'ready');
}
