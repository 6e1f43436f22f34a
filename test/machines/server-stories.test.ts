// Stories of one server, on a simulated clock, with a connection of one line.
// The actor is real, so what happens here is what XState does with the chart, not only what the chart says.

import { expect, it } from 'vitest';
import { createActor, fromCallback, SimulatedClock } from 'xstate';
import { type FromConnection, type ServerSpec, serverMachine, type ToConnection } from '../../machines/server.ts';
import { stateOf } from '../support/paths.ts';

const spec: ServerSpec = {
  name: 'echo',
  isRemote: false,
  openMs: 1_000,
  drainMs: 2_000,
  closeMs: 3_000,
  restart: { intensity: 2, periodMs: 30_000, backoffMs: [100, 400] },
};

type Port = { sendBack: (event: FromConnection) => void; receive: (listener: (event: ToConnection) => void) => void };

/** A server whose connection does `open`, on its own clock. `heard` is what its connections were told, and their end. */
function stage(open: (port: Port) => void, given = spec) {
  const clock = new SimulatedClock();
  const heard: string[] = [];
  let say: Port['sendBack'] = () => {};
  const connection = fromCallback<ToConnection, ServerSpec>(({ sendBack, receive }) => {
    heard.push('open');
    say = sendBack as Port['sendBack'];
    receive(({ type }) => heard.push(type));
    open({ sendBack: say, receive });
    return () => heard.push('ended');
  });
  const actor = createActor(serverMachine.provide({ actors: { connection } }), { input: given, clock }).start();
  const tell = (type: 'start' | 'stop' | 'restart' | 'remove' | 'wanted') => actor.send({ type });
  const state = () => stateOf(actor.getSnapshot());
  return { clock, heard, tell, state, context: () => actor.getSnapshot().context, say: (e: FromConnection) => say(e) };
}
const comesUp = ({ sendBack }: Port) => sendBack({ type: 'connection.ready' });
const died = { type: 'connection.closed', why: 'exit 1' } as const;

it('restarts with backoff, forgives after a period, and fails in a crash loop', () => {
  const { clock, state, say, tell, context } = stage(comesUp);
  tell('start');
  for (const wait of [100, 400]) {
    say(died);
    expect(state()).toBe('waiting.resting');
    clock.increment(wait - 1);
    expect(state()).toBe('waiting.resting');
    clock.increment(1);
    expect(state()).toBe('up.ready.heard');
  }
  clock.increment(30_000);
  for (const wait of [100, 400]) {
    say(died);
    clock.increment(wait);
    expect(state()).toBe('up.ready.heard');
  }
  say(died);
  expect([state(), context().why, context().restarts]).toEqual(['failed', 'exit 1', 4]);
  tell('start');
  expect([state(), context().why]).toEqual(['up.ready.heard', '']);
});

it('repeats the last backoff when the list is shorter than the loop, and waits not at all without a list', () => {
  const patient = stage(comesUp, { ...spec, restart: { intensity: 9, periodMs: 30_000, backoffMs: [100, 400] } });
  patient.tell('start');
  for (const wait of [100, 400, 400, 400]) {
    patient.say(died);
    patient.clock.increment(wait - 1);
    expect(patient.state()).toBe('waiting.resting');
    patient.clock.increment(1);
    expect(patient.state()).toBe('up.ready.heard');
  }
  const hasty = stage(comesUp, { ...spec, restart: { intensity: 1, periodMs: 30_000, backoffMs: [] } });
  hasty.tell('start');
  hasty.say(died);
  hasty.clock.increment(0);
  expect(hasty.state()).toBe('up.ready.heard');
});

it('gives a mute server its time to open, then tries again', () => {
  const { clock, state, tell, context, heard } = stage(() => {});
  tell('start');
  clock.increment(999);
  expect(state()).toBe('up.opening');
  clock.increment(1);
  expect([state(), context().why]).toEqual(['waiting.resting', 'did not open in time']);
  expect(heard).toEqual(['open', 'ended']);
});

it('waits for the last call before it closes, but not for ever', () => {
  const polite = stage(comesUp);
  polite.tell('start');
  polite.tell('stop');
  polite.clock.increment(1_999);
  expect(polite.state()).toBe('up.draining');
  polite.say({ type: 'connection.drained' });
  expect(polite.state()).toBe('up.closing');
  polite.say(died);
  expect([polite.state(), polite.heard]).toEqual(['stopped', ['open', 'drain', 'close', 'ended']]);

  const deaf = stage(comesUp);
  deaf.tell('start');
  deaf.tell('stop');
  deaf.clock.increment(2_000);
  expect(deaf.state()).toBe('up.closing');
  deaf.clock.increment(3_000);
  expect([deaf.state(), deaf.heard]).toEqual(['stopped', ['open', 'drain', 'close', 'ended']]);
});

it('falls asleep when nobody calls, and wakes for the next call', () => {
  const { state, say, tell, heard } = stage(comesUp);
  tell('wanted');
  expect(state()).toBe('stopped');
  tell('start');
  say({ type: 'connection.quiet' });
  say({ type: 'connection.drained' });
  say(died);
  expect(state()).toBe('asleep');
  tell('wanted');
  expect(state()).toBe('up.ready.heard');
  say({ type: 'connection.quiet' });
  tell('wanted');
  say(died);
  expect([state(), heard.filter((word) => word === 'open').length]).toEqual(['up.ready.heard', 3]);
});

it('survives a connection that throws, at once or when told to leave', () => {
  const broken = stage(() => {
    throw new Error('no such port');
  });
  broken.tell('start');
  expect([broken.state(), broken.context().why]).toEqual(['waiting.resting', 'Error: no such port']);

  const clumsy = stage(({ sendBack, receive }) => {
    sendBack({ type: 'connection.ready' });
    receive(() => {
      throw new Error('broken pipe');
    });
  });
  clumsy.tell('start');
  clumsy.tell('remove');
  expect([clumsy.state(), clumsy.context().restarts]).toEqual(['gone', 0]);
});

it('stops and leaves by its timers alone, wherever it stood', () => {
  const situations: Record<string, (server: ReturnType<typeof stage>) => void> = {
    stopped: () => {},
    'up.opening': ({ tell }) => tell('start'),
    'up.ready.heard': ({ tell, say }) => [tell('start'), say({ type: 'connection.ready' })],
    'up.draining': ({ tell, say }) => [tell('start'), say({ type: 'connection.ready' }), tell('restart')],
    'up.closing': ({ tell }) => [tell('start'), tell('restart')],
    asleep: ({ tell, say }) => [
      ...[tell('start'), say({ type: 'connection.ready' }), say({ type: 'connection.quiet' }), say(died)],
    ],
    'waiting.resting': ({ tell, say }) => [tell('start'), say(died)],
    failed: ({ tell, say }) => [tell('start'), say({ type: 'connection.refused', why: 'no' })],
  };
  for (const [situation, reach] of Object.entries(situations)) {
    for (const [command, end] of [['stop', 'stopped'] as const, ['remove', 'gone'] as const]) {
      const server = stage(() => {});
      reach(server);
      expect(server.state()).toBe(situation);
      server.tell(command);
      server.clock.increment(2_000);
      server.clock.increment(3_000);
      expect(server.state(), `${situation} + ${command}`).toBe(end);
      expect(server.heard.filter((word) => word === 'open').length).toBe(
        server.heard.filter((word) => word === 'ended').length,
      );
    }
  }
});

it('is tried again as soon as it is wanted, if others run it: at a pace of its own, and without counting against it', () => {
  const { clock, heard, tell, state, context, say } = stage(() => {}, {
    ...spec,
    isRemote: true,
    restart: { ...spec.restart, backoffMs: [500, 2_000] },
  });
  tell('start');
  say(died);
  for (let attempt = 0; attempt < 20; attempt++) {
    expect([state(), context().recent]).toEqual(['waiting.resting', 1]);
    tell('wanted');
    tell('wanted');
    clock.increment(99);
    expect(state()).toBe('waiting.hurried');
    clock.increment(1);
    expect(state()).toBe('up.opening');
    say(died);
  }
  expect(heard.filter((each) => each === 'open')).toHaveLength(21);
  const ours = stage(() => {}, spec);
  ours.tell('start');
  ours.say(died);
  ours.tell('wanted');
  expect(ours.state()).toBe('waiting.resting');
});

it('is tried without end while the machine is short of something, and that counts neither as a restart nor as a crash', () => {
  const short = { type: 'connection.short', why: 'no descriptors' } as const;
  const { clock, tell, state, context, say } = stage(() => {});
  tell('start');
  for (const wait of [250, 500, 1_000, 2_000, 2_000, 2_000]) {
    say(short);
    expect([state(), context().why, context().restarts]).toEqual(['waiting.resting', 'no descriptors', 0]);
    clock.increment(wait - 1);
    expect(state()).toBe('waiting.resting');
    clock.increment(1);
    expect(state()).toBe('up.opening');
  }
  say({ type: 'connection.ready' });
  expect([state(), context().why, context().shortages]).toEqual(['up.ready.heard', '', 0]);
  say(died);
  expect([state(), context().restarts]).toEqual(['waiting.resting', 1]);
  clock.increment(100);
  expect(state()).toBe('up.opening'); // after the wait of a first crash
});

it('asks a silent server whether it is there, one that is ill ever more seldom, and one that knows no question not again', () => {
  const { clock, heard, tell, state, context, say } = stage(comesUp);
  const probes = () => heard.filter((each) => each === 'probe').length;
  const ill = (retryMs = 0) => say({ type: 'connection.ill', why: 'HTTP 503', everyMs: 30_000, retryMs });
  tell('start');
  say({ type: 'connection.silent' });
  say({ type: 'connection.silent' });
  expect([state(), probes()]).toEqual(['up.ready.probed', 1]);
  for (const wait of [30_000, 60_000, 120_000, 240_000, 480_000, 600_000, 600_000]) {
    ill();
    say({ type: 'connection.silent' }); // a call that was not answered does not hurry it
    clock.increment(wait - 1);
    expect([state(), context().why]).toEqual(['up.ready.ill', 'HTTP 503']);
    clock.increment(1);
    expect(state()).toBe('up.ready.probed');
  }
  expect(probes()).toBe(8);
  say({ type: 'connection.heard' });
  expect([state(), context().why]).toEqual(['up.ready.heard', '']);
  say({ type: 'connection.silent' });
  ill(3_600_000);
  clock.increment(600_000);
  expect(state()).toBe('up.ready.probed');
  ill();
  say({ type: 'connection.unreachable', why: 'refused' });
  expect(state()).toBe('up.ready.probed');
  say({ type: 'connection.deaf' });
  say({ type: 'connection.silent' });
  expect([state(), probes()]).toEqual(['up.ready.unasked', 11]);
  say({ type: 'connection.unreachable', why: 'refused' });
  expect([state(), context().why]).toEqual(['waiting.resting', 'refused']);
});

it('is restarted for ever after deaths that a call is to blame for, unless it must never be', () => {
  const blamed = { ...died, isBlamed: true };
  const { clock, state, say, tell, context } = stage(comesUp);
  tell('start');
  for (let death = 1; death <= 20; death++) {
    say(blamed);
    clock.increment(100);
    expect([state(), context().restarts, context().recent]).toEqual(['up.ready.heard', death, 0]);
  }
  const fragile = stage(comesUp, { ...spec, restart: { ...spec.restart, intensity: 0 } });
  fragile.tell('start');
  fragile.say(blamed);
  expect(fragile.state()).toBe('failed');
});
