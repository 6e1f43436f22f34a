// NATS dies and comes back, ours or somebody else's: the daemon is on the bus again by itself, no call is answered twice,
// and the events that must arrive do, in order.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { createInbox, type JsMsg, type NatsConnection } from 'nats';
import { describe, expect, it } from 'vitest';
import { type Daemon, daemon, fixture, isAlive } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { natsServer, type TestServer } from '../support/nats.ts';
import { scratch } from '../support/scratch.ts';

const onBus = (d: Daemon, state: string, timeoutMs = 20_000) =>
  eventually(async () => expect((await d.status()).bus).toMatchObject({ state }), timeoutMs);
const echo = (d: Daemon, message: string) => d.request('troupe.call.echo.echo', { message });
const said = (message: string) => ({ content: [{ type: 'text', text: message }] });

describe('a nats-server of our own that is killed under load', () => {
  it('is started again; the daemon comes back by itself; each call got one reply or none, never two', async () => {
    await using d = await daemon({ servers: { echo: fixture('echo') } });
    const nc = await d.nats();
    const { pid, url } = (await d.status()).bus;
    const load = keepCalling(nc);
    await eventually(() => load.answered() > 200);
    process.kill(pid as number, 'SIGKILL');
    await eventually(async () => {
      const { bus } = await d.status();
      expect(bus).toMatchObject({ state: 'online', url }); // where clients left it
      expect(bus.pid).not.toBe(pid);
    }, 20_000);
    await eventually(() => nc.flush());
    const before = load.answered();
    await eventually(() => load.answered() > before + 200);
    const replies = await load.stop();
    expect(Math.max(...replies.values())).toBe(1);
    const lost = [...replies].filter(([, count]) => count === 0).map(([call]) => call);
    // Only those that were on their way when it died: in the run of calls they stand together.
    expect(lost.length).toBeLessThan(replies.size / 2);
    expect([...replies].slice(0, 100).every(([, count]) => count === 1)).toBe(true);
    expect([...replies].slice(-100).every(([, count]) => count === 1)).toBe(true);
    expect((await echo(d, 'back')).data).toEqual(said('back'));
  });
});

describe('a NATS that somebody else runs', () => {
  it('is used and not managed, and outlives the daemon', async () => {
    await using nats = await natsServer({ token: 'secret' });
    {
      await using d = await daemon({ servers: { echo: fixture('echo') }, env: external(nats) });
      const { bus } = await d.status();
      expect(bus).toMatchObject({ state: 'online', managed: false, url: `127.0.0.1:${nats.port}` });
      expect(bus.pid).toBeUndefined();
      expect(JSON.stringify(await d.status())).not.toContain('secret');
      expect((await echo(d, 'hi')).data).toEqual(said('hi'));
    }
    expect(await isAlive(nats.pid)).toBe(true);
  });

  it('may have two daemons of one machine on it: each call is still executed once', async () => {
    await using nats = await natsServer();
    await using dir = await scratch();
    const tallies = fixture('tallies', { share: 'all' });
    tallies.args.push(join(dir.path, 'tallies'));
    await using d = await daemon({ servers: { tallies }, env: external(nats) });
    await using _other = await daemon({ servers: { tallies }, env: external(nats) });
    const { name } = (await d.status()).daemon as unknown as { name: string };
    const ids = Array.from({ length: 20 }, (_, i) => `${i}`);
    for (const id of ids)
      await d.request(`troupe.${['call', `node.${name}.call`][Number(id) % 2]}.tallies.tally`, { id });
    expect((await readFile(join(dir.path, 'tallies'), 'utf8')).trim().split('\n')).toEqual(ids);
  });

  it('may go and come: offline is shown, the socket still works, and what happened meanwhile is told in order', async () => {
    await using nats = await natsServer({ jetstream: true });
    await using d = await daemon({
      servers: { echo: fixture('echo'), things: fixture('resources') },
      env: external(nats),
    });
    const streams = await (await nats.connect()).jetstreamManager();
    await streams.streams.add({ name: 'EVENTS', subjects: ['troupe.ev.>'] });
    await d.cli('restart', 'echo');

    await nats.kill();
    await onBus(d, 'offline');
    expect((await d.status()).bus.lastError).toMatch(/NATS/);
    expect((await d.cli('call', 'echo', 'echo', 'message=hi')).stdout).toBe('hi');
    await d.cli('stop', 'echo');
    await d.cli('call', 'things', 'add', 'name=extra');
    await eventually(async () => (await d.server('things')).tools === 6);
    await d.cli('start', 'echo');
    expect((await d.status()).bus.outbox).toBeGreaterThanOrEqual(6);

    await nats.restart();
    await onBus(d, 'online');
    await eventually(async () => expect((await d.status()).bus.outbox).toBe(0), 10_000);
    const all = await stored(await nats.connect());
    const events = all.slice(all.findIndex(({ subject }) => subject.endsWith('draining'))); // the start may still be told
    const subjects = events.map(({ subject }) => subject.slice('troupe.ev.'.length));
    expect(subjects).toEqual([
      ...['draining', 'closing', 'opening', 'ready'].map((state) => `echo.state.${state}`), // restart
      ...['draining', 'closing', 'stopped'].map((state) => `echo.state.${state}`), // stop, offline
      'things.tools.list_changed',
      ...['opening', 'ready'].map((state) => `echo.state.${state}`), // start, offline
    ]);
    const ids = events.map(({ headers }) => headers?.get('Nats-Msg-Id') ?? '');
    expect(new Set(ids).size).toBe(events.length);
    expect(ids).not.toContain('');
    expect(events.at(-1)?.json()).toMatchObject({ server: 'echo', state: 'ready', why: '', at: expect.any(Number) });
    expect((await echo(d, 'back')).data).toEqual(said('back'));
  });

  it('may not be there at the start: the daemon runs, offline, and is on the bus when it comes', async () => {
    await using nats = await natsServer();
    await nats.kill();
    await using d = await daemon({ servers: { echo: fixture('echo') }, env: external(nats) });
    const { daemon: self, bus } = await d.status();
    expect([self.state, bus.state]).toEqual(['running', 'offline']);
    expect(bus.lastError).toContain(`NATS at 127.0.0.1:${nats.port} cannot be reached`);
    expect((await d.cli('call', 'echo', 'echo', 'message=hi')).stdout).toBe('hi');
    await nats.restart();
    await onBus(d, 'online');
    expect((await echo(d, 'late')).data).toEqual(said('late'));
  });
});

const external = ({ port, token }: TestServer) => ({ NATS_URL: `nats://${token ? `${token}@` : ''}127.0.0.1:${port}` });

/** A few hundred calls a second, and how many replies each one got. */
function keepCalling(nc: NatsConnection) {
  const inbox = createInbox();
  const replies = new Map<string, number>();
  let isOver = false;
  let answered = 0;
  nc.subscribe(`${inbox}.*`, {
    callback(_, { subject }) {
      const call = subject.slice(inbox.length + 1);
      replies.set(call, (replies.get(call) ?? 0) + 1);
      answered += 1;
    },
  });
  const calling = (async () => {
    for (let call = 0; !isOver; call += 1) {
      replies.set(`${call}`, 0);
      nc.publish('troupe.call.echo.echo', `{"message":"${call}"}`, { reply: `${inbox}.${call}` });
      await pause(2);
    }
  })();
  return {
    answered: () => answered,
    async stop() {
      isOver = true;
      await calling;
      await eventually(() => replies.get(`${replies.size - 1}`) === 1);
      return replies;
    },
  };
}

async function stored(nc: NatsConnection): Promise<JsMsg[]> {
  const consumer = await nc.jetstream().consumers.get('EVENTS');
  const { messages } = (await (await nc.jetstreamManager()).streams.info('EVENTS')).state;
  const found: JsMsg[] = [];
  if (messages > 0) for await (const message of await consumer.fetch({ max_messages: messages })) found.push(message);
  return found;
}
