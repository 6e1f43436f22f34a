// How the daemon comes and goes: `up`, `down`, signals. Whatever ends it, what was accepted is answered first,
// and afterwards nothing of it is left: no process, no socket, no note.

import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { execa } from 'execa';
import { connect } from 'nats';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Workplace, workplace } from '../support/cli.ts';
import { askControl } from '../support/control.ts';
import { type Daemon, daemon, fixture, isAlive, MAIN, replyOf } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { freePort, natsBinary } from '../support/nats.ts';

describe('up and down', () => {
  test('two `up --detach` at one moment give one daemon, a further `up` says who runs, `down` leaves nothing', async () => {
    await using place = await placeWith({ echo: fixture('echo') });
    const both = await Promise.all([place.run('up', '--detach', '--json'), place.run('up', '--detach', '--json')]);
    const told = both.map(({ stdout }) => JSON.parse(stdout));
    expect(both.map(({ code }) => code)).toEqual([0, 0]);
    expect(told.map(({ started }) => started).sort()).toEqual([false, true]);
    expect(told[0].daemon.pid).toBe(told[1].daemon.pid);

    // Ready means that a call is answered, whatever the server is doing yet.
    const call = await place.run('call', 'echo', 'echo', 'message=hi');
    expect(call).toMatchObject({ code: 0, stdout: 'hi\n' });

    const pids = await pidsOf(place);
    const third = await place.run('up');
    expect(third.code).toBe(0);
    expect(third.stdout).toContain(`already running (pid ${pids[0]}`);
    expect(await pidsOf(place)).toEqual(pids);

    expect(await place.run('down')).toMatchObject({ code: 0, stdout: `troupe has stopped (pid ${pids[0]})\n` });
    await nothingIsLeft(place, pids);
    expect(await place.run('down')).toMatchObject({ code: 0, stdout: 'troupe is not running; nothing to stop\n' });
    expect((await place.run('status')).code).toBe(4);
  });

  test('a daemon that was taken down comes up again with the same port and token, and says that it is not the usual port', async () => {
    await using place = await placeWith({ echo: fixture('echo') });
    // The usual port may be another daemon's while this one is down.
    writeFileSync(join(place.directory, 'http-port'), String(await freePort()));
    const { stdout } = await place.run('up', '--detach');
    expect(stdout).toMatch(/^ +not on 7411, which is taken, or was when this port was chosen$/m);
    const before = await place.run('env', '--json');
    await place.run('down');
    await place.run('up', '--detach');
    expect((await place.run('env', '--json')).stdout).toBe(before.stdout);
  });
});

describe('signals', () => {
  test.each(['SIGTERM', 'SIGINT'] as const)(
    '%s drains: calls in flight are answered, then nothing is left',
    async (signal) => {
      await using place = await placeWith({ late: fixture('answers-late') });
      const up = await foreground(place);
      const pids = await pidsOf(place);
      const nats = await client(place);
      const overNats = nats.request('troupe.call.late.late', '{"ms":1200}', { timeout: 10_000 });
      const overCli = place.run('call', 'late', 'late', 'ms=1200');
      await eventually(async () => (await statusOf(place)).servers[0].inFlight === 2);
      up.child.kill(signal);
      expect(replyOf(await overNats).data.content[0].text).toBe('late by 1200 ms');
      expect(await overCli).toMatchObject({ code: 0, stdout: 'late by 1200 ms\n' });
      expect((await up.done).code).toBe(0);
      await nothingIsLeft(place, pids);
      await nats.close();
    },
  );

  test('one that comes while the program is still being read starts nothing, not even a directory', async () => {
    await using place = await placeWith({ echo: fixture('echo') });
    const state = join(place.directory, 'not-yet');
    const env = { PATH: process.env.PATH, HOME: place.directory, TROUPE_STATE: state, TROUPE_CONFIG: place.config };
    // SIGHUP is the last of the signals that it begins to listen to; then it reads what a daemon needs.
    const signals = `process.on('newListener', (name) => name === 'SIGHUP' && process.kill(process.pid, 'SIGTERM'))`;
    const early = ['--import', `data:text/javascript,${encodeURIComponent(signals)}`];
    const up = await execa(process.execPath, [...early, MAIN, 'up'], { env, extendEnv: false, all: true });
    expect([up.exitCode, up.all, existsSync(state)]).toEqual([0, '', false]);
  });

  test('a call that outlasts the drain is told that its outcome is unknown', async () => {
    await using place = await placeWith({ late: fixture('answers-late', { drainMs: 200 }) });
    const up = await foreground(place);
    const nats = await client(place);
    const call = nats.request('troupe.call.late.late', '{"ms":30000}', { timeout: 20_000 });
    await eventually(async () => (await statusOf(place)).servers[0].inFlight === 1);
    up.child.kill('SIGHUP');
    const reply = replyOf(await call);
    expect(reply.code).toBe(502);
    expect(reply.data.data.troupe.delivery).toBe('outcome unknown');
    expect((await up.done).code).toBe(0);
    await nats.close();
  });

  test('a second signal ends it at once, and still nothing is left', async () => {
    await using place = await placeWith({ deaf: fixture('ignores-sigterm', { stdinMs: 30_000, termMs: 30_000 }) });
    const up = await foreground(place);
    const pids = await pidsOf(place);
    up.child.kill('SIGTERM');
    await eventually(() => expect(existsSync(join(place.directory, 'daemon.json'))).toBe(false));
    expect(await isAlive(pids[1] as number)).toBe(true); // it is waiting for the server, as it should
    const asked = performance.now();
    up.child.kill('SIGTERM');
    await up.done;
    expect(performance.now() - asked).toBeLessThan(10_000);
    await nothingIsLeft(place, pids);
  });

  test('two signals in one breath leave nothing either', async () => {
    await using place = await placeWith({ deaf: fixture('ignores-sigterm'), forks: fixture('forks') });
    const up = await foreground(place);
    const { stdout } = await place.run('call', 'forks', 'grandchild', '--json');
    const pids = [...(await pidsOf(place)), JSON.parse(stdout).structuredContent.value];
    up.child.kill('SIGTERM');
    up.child.kill('SIGINT');
    await up.done;
    await nothingIsLeft(place, pids);
  });
});

describe('one server', () => {
  let d: Daemon;
  beforeAll(async () => {
    const loop = { restart: { intensity: 2, periodMs: 60_000, backoffMs: [10] } };
    d = await daemon({
      servers: {
        late: fixture('answers-late', { maxInFlight: 1 }),
        dies: fixture('dies-in-call', loop),
        stillborn: fixture('dies-at-start', loop),
        patient: fixture('dies-in-call', { restart: { backoffMs: [600_000] } }),
        hangs: fixture('hangs', { timeoutMs: 300, pingMs: 300, pingTimeoutMs: 300, restart: { backoffMs: [10] } }),
      },
    });
    await d.until('stillborn', 'failed');
    await d.nats();
  });
  afterAll(() => d[Symbol.asyncDispose]());
  const text = async (reply: Promise<{ data: any }>) => (await reply).data.content[0].text;

  test('restart gives it a new process: what is in flight is answered by the old one, what is queued by the new one', async () => {
    const { pid } = await d.server('late');
    const calls = [2_000, 1, 2].map((ms) => text(d.request('troupe.call.late.late', { ms })));
    await eventually(async () => expect(await d.server('late')).toMatchObject({ inFlight: 1, queued: 2 }));
    const restarting = d.cli('restart', 'late', '--json');
    await d.until('late', 'draining');
    calls.push(text(d.request('troupe.call.late.late', { ms: 3 }))); // comes while there is nobody to take it
    expect(await Promise.all(calls)).toEqual([2_000, 1, 2, 3].map((ms) => `late by ${ms} ms`));
    const { exitCode, stdout } = await restarting;
    expect(exitCode).toBe(0);
    expect(JSON.parse(stdout).state).toBe('ready');
    expect(JSON.parse(stdout).pid).not.toBe(pid);
    expect(await isAlive(pid as number)).toBe(false);
  });

  test('stop ends its process and refuses calls without sending them, start brings it back', async () => {
    const { pid } = await d.server('late');
    expect((await d.cli('stop', 'late')).exitCode).toBe(0);
    expect(await isAlive(pid as number)).toBe(false);
    const refused = await d.request('troupe.call.late.late', { ms: 1 });
    expect(refused).toMatchObject({ code: 503, error: 'server late is stopped; troupe start late' });
    expect(refused.data.data.troupe.delivery).toBe('not sent');
    expect((await d.cli('call', 'late', 'late', 'ms=1')).exitCode).toBe(4);
    expect((await d.cli('start', 'late')).exitCode).toBe(0);
    expect(await text(d.request('troupe.call.late.late', { ms: 1 }))).toBe('late by 1 ms');
  });

  test('a crash loop ends in failed with the reason, and start gives it a new chance', async () => {
    // With no call at it: what a call does to its server is not counted.
    const die = async () => process.kill((await d.server('dies')).pid as number, 'SIGTERM');
    for (const restarts of [1, 2]) {
      await die();
      await eventually(async () => expect(await d.server('dies')).toMatchObject({ state: 'ready', restarts }));
    }
    await die();
    const failed = await d.until('dies', 'failed');
    expect(failed).toMatchObject({ pid: null, lastError: 'killed by SIGTERM' });
    expect((await d.request('troupe.call.dies.echo', { message: 'hi' })).error).toBe(
      'server dies is failed: killed by SIGTERM; troupe start dies',
    );
    expect((await d.cli('start', 'dies')).exitCode).toBe(0);
    expect(await text(d.request('troupe.call.dies.echo', { message: 'hi' }))).toBe('hi');
  });

  test('one that dies at start is failed with its reason, and start shows its last words from the log', async () => {
    const why = 'exited with code 3; see troupe logs stillborn';
    expect(await d.server('stillborn')).toMatchObject({ state: 'failed', restarts: 2, lastError: why });
    const { exitCode, stderr } = await d.cli('start', 'stillborn');
    expect(exitCode).toBe(1);
    expect(stderr).toBe(`stillborn is failed: ${why}\n  │ cannot find my database`);
  });

  test('the configured backoff is kept, and restart does not wait for it', async () => {
    await d.request('troupe.call.patient.die', {});
    expect(await d.until('patient', 'waiting')).toMatchObject({ pid: null, restarts: 1 });
    expect((await d.request('troupe.call.patient.echo', {})).error).toBe(
      'server patient is waiting: exited with code 1; it is restarting, try again',
    );
    expect((await d.cli('restart', 'patient')).exitCode).toBe(0);
    expect(await text(d.request('troupe.call.patient.echo', { message: 'back' }))).toBe('back');
  });

  test('one that no longer answers pings is restarted', async () => {
    const { pid } = await d.server('hangs');
    expect((await d.request('troupe.call.hangs.hang', {})).code).toBe(408);
    await eventually(
      async () => expect(await d.server('hangs')).toMatchObject({ state: 'ready', restarts: 1 }),
      15_000,
    );
    expect(await d.server('hangs')).toMatchObject({ lastError: 'it did not answer a ping within 300 ms' });
    expect(await isAlive(pid as number)).toBe(false);
    expect(await text(d.request('troupe.call.hangs.echo', { message: 'awake' }))).toBe('awake');
  });
});

/** A state directory and a configuration; whatever still runs there at the end is taken down. */
async function placeWith(servers: Record<string, object>): Promise<Workplace> {
  const place = workplace({ TROUPE_NATS_SERVER: (await natsBinary()).path, NO_COLOR: '1' });
  writeFileSync(place.config, JSON.stringify({ mcpServers: servers }));
  return {
    ...place,
    async [Symbol.asyncDispose]() {
      await place.run('down');
      await place[Symbol.asyncDispose]();
    },
  };
}

async function foreground(place: Workplace) {
  const up = place.start('up');
  const ended = up.done.then((words) => Promise.reject(new Error(`it ended: ${JSON.stringify(words)}`)));
  const ready = eventually(async () => {
    expect((await statusOf(place)).servers.map(({ state }: { state: string }) => state)).not.toContain('opening');
  }, 20_000);
  await Promise.race([ready, ended]);
  ended.catch(() => {}); // from here on that is what the test is about
  return up;
}

const statusOf = ({ directory }: Workplace) => askControl<any>(join(directory, 'control.sock'), 'status');

async function client(place: Workplace) {
  const url = new URL(JSON.parse((await place.run('env', '--json')).stdout).NATS_URL);
  return connect({ servers: url.host, token: url.username, reconnect: false });
}

/** The daemon's, its servers' and its nats-server's. */
async function pidsOf(place: Workplace): Promise<number[]> {
  const { daemon, servers, bus } = await statusOf(place);
  return [daemon.pid, ...servers.map(({ pid }: { pid: number }) => pid), bus.pid];
}

async function nothingIsLeft({ directory }: Workplace, pids: number[]): Promise<void> {
  // The kernel may take a moment to bury who was killed.
  await eventually(async () => {
    expect(await Promise.all(pids.map(isAlive))).toEqual(pids.map(() => false));
    // Nor anybody we never heard of, such as a nats-server that was started again on the way out.
    const { stdout } = await execa('ps', ['-A', '-ww', '-o', 'args=']);
    expect(stdout.split('\n').filter((line) => line.includes(directory))).toEqual([]);
  });
  for (const name of ['daemon.json', 'control.sock']) expect(existsSync(join(directory, name)), name).toBe(false);
}
