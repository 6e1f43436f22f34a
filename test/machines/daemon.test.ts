// The daemon's life: its parts come up in order, and go down in reverse from wherever it stood, whatever fails.
// First every configuration, then every way to fail, with real actors.

import { describe, expect, it } from 'vitest';
import { createActor, fromPromise, initialTransition, SimulatedClock, toPromise, waitFor } from 'xstate';
import { type DaemonEvent, daemonMachine } from '../../machines/daemon.ts';
import { begun, everyStep, reactions, stateOf, statesOf, timers } from '../support/paths.ts';

const parts = ['Store', 'Bus', 'Plugins', 'Servers', 'Doors'] as const;
const opened = parts.map((part) => `open${part}`);
const closed = parts.map((part) => `close${part}`).reverse();
const spec = { closeMs: 5_000 };
const samples: DaemonEvent[] = [{ type: 'stop' }, { type: 'abort' }, { type: 'crashed', why: 'a bug' }];

describe('in every reachable configuration', () => {
  const steps = everyStep(daemonMachine, spec, samples);
  const names = parts.map((part) => part.toLowerCase());

  it('begins with the store, unblamed', () => {
    const [first, effects] = initialTransition(daemonMachine, spec);
    expect([stateOf(first), first.context]).toEqual(['starting.store', { spec, why: '' }]);
    expect(effects.map(({ params }: any) => params.src)).toEqual(['openStore']);
  });

  it('moves as this table says, and ignores everything else', () => {
    const starting = names.map((part, at) => [
      `starting.${part}`,
      {
        ...{ 'port done': names[at + 1] ? `starting.${names[at + 1]}` : 'running', abort: 'stopped' },
        ...{ 'port fails': `stopping.${part}`, stop: `stopping.${part}`, crashed: `stopping.${part}` },
      },
    ]);
    const stopping = names.map((part, at) => {
      const next = names[at - 1] ? `stopping.${names[at - 1]}` : 'stopped';
      return [`stopping.${part}`, { 'port done': next, 'port fails': next, 'after close': next, abort: 'stopped' }];
    });
    expect(reactions(steps)).toEqual({
      ...Object.fromEntries([...starting, ...stopping]),
      running: { stop: 'stopping.doors', crashed: 'stopping.doors', abort: 'stopped' },
    });
    expect(statesOf(steps)).toHaveLength(12);
  });

  it('works on exactly the part it names, and gives each closing its time', () => {
    for (const step of steps) {
      const [phase, part] = stateOf(step.to).split('.');
      const enters = stateOf(step.to) !== stateOf(step.from);
      const port = `${phase === 'starting' ? 'open' : 'close'}${parts.find((name) => name.toLowerCase() === part)}`;
      expect(begun(step)).toEqual(enters && part ? [port] : []);
      expect(timers(step)).toEqual(enters && phase === 'stopping' ? { 'after close': 5_000 } : {});
    }
  });

  it('keeps the first cause, and ends with it', () => {
    for (const { from, event, to } of steps) {
      const said = event.type === 'crashed' ? 'a bug' : event.type.startsWith('xstate.error') ? 'it broke' : '';
      expect(to.context.why).toBe(from.context.why || said);
      expect(to.output).toEqual(to.status === 'done' ? { why: to.context.why } : undefined);
    }
  });
});

/** A daemon whose ports are listed in `done` as they are called. Those in `broken` throw, those in `silent` never end. */
function stage({ broken = [] as string[], silent = [] as string[] } = {}) {
  const done: string[] = [];
  const port = (name: string) =>
    fromPromise<void>(async () => {
      done.push(name);
      if (broken.includes(name)) throw new Error(`${name} broke`);
      if (silent.includes(name)) await new Promise(() => {});
    });
  const actors = Object.fromEntries([...opened, ...closed].map((name) => [name, port(name)]));
  const clock = new SimulatedClock();
  const actor = createActor(daemonMachine.provide({ actors: actors as any }), { input: spec, clock }).start();
  const state = () => stateOf(actor.getSnapshot());
  const reaches = (wanted: string) => waitFor(actor, (snapshot) => stateOf(snapshot) === wanted);
  return { actor, clock, done, state, reaches, ends: () => toPromise(actor) };
}

it('opens its parts in order, and closes them in reverse', async () => {
  const { actor, done, reaches, ends } = stage();
  await reaches('running');
  expect(done).toEqual(opened);
  actor.send({ type: 'stop' });
  expect(await ends()).toEqual({ why: '' });
  expect(done).toEqual([...opened, ...closed]);
});

it.each(parts)('closes what was opened, and only that, when the part %s cannot open', async (part) => {
  const at = parts.indexOf(part);
  const { done, ends } = stage({ broken: [`open${part}`, 'closeStore'] });
  expect(await ends()).toEqual({ why: `Error: open${part} broke` });
  expect(done).toEqual([...opened.slice(0, at + 1), ...closed.slice(parts.length - 1 - at)]);
});

it.each(parts)(
  'goes down from the part %s when it is stopped, or something crashes, while that comes up',
  async (part) => {
    const at = parts.indexOf(part);
    for (const event of [{ type: 'stop' }, { type: 'crashed', why: 'a bug' }] as const) {
      const { actor, done, reaches, ends } = stage({ silent: [`open${part}`] });
      await reaches(`starting.${part.toLowerCase()}`);
      actor.send(event);
      expect(await ends()).toEqual({ why: event.type === 'crashed' ? 'a bug' : '' });
      expect(done).toEqual([...opened.slice(0, at + 1), ...closed.slice(parts.length - 1 - at)]);
    }
  },
);

it('closes every part although each fails, and names the first trouble', async () => {
  const { actor, done, reaches, ends } = stage({ broken: closed });
  await reaches('running');
  actor.send({ type: 'stop' });
  expect(await ends()).toEqual({ why: 'Error: closeDoors broke' });
  expect(done).toEqual([...opened, ...closed]);
});

it('closes every part although none says that it did', async () => {
  const { actor, clock, done, reaches, state } = stage({ silent: closed });
  await reaches('running');
  actor.send({ type: 'crashed', why: 'a bug' });
  for (const part of ['doors', 'servers', 'plugins', 'bus', 'store']) {
    clock.increment(4_999);
    expect(state()).toBe(`stopping.${part}`);
    clock.increment(1);
  }
  expect([state(), actor.getSnapshot().output]).toEqual(['stopped', { why: 'a bug' }]);
  expect(done).toEqual([...opened, ...closed]);
});

it('ends with the reason when somebody forgot to give it its ports', async () => {
  expect(await toPromise(createActor(daemonMachine, { input: spec }).start())).toEqual({
    why: 'Error: daemon: its ports were not provided',
  });
});

it('ends at once when it is aborted while it closes', async () => {
  const { actor, done, reaches, state } = stage({ silent: closed });
  await reaches('running');
  actor.send({ type: 'stop' });
  actor.send({ type: 'abort' });
  expect([state(), done]).toEqual(['stopped', [...opened, 'closeDoors']]);
});
