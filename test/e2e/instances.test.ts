// Several daemons on one state directory: doors, servers and names of their own, one database and one nats-server.
// Whoever stops or dies, however it dies, the others do not notice.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { execa, type ResultPromise } from 'execa';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { askControl } from '../support/control.ts';
import { type Daemon, daemon, fixture, isAlive, MAIN, type ServerStatus } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';

// It would not leave by itself when its daemon is killed.
const SERVERS = { stubborn: fixture('ignores-sigterm', { stdinMs: 100, termMs: 100 }), echo: fixture('echo') };

type Status = Awaited<ReturnType<Daemon['status']>> & {
  daemon: { name: string; instance: string };
  http: { url: string };
  servers: ServerStatus[];
};

/** Another daemon on the same state directory. It is ended with the test, or by it. */
function beside(d: Daemon, instance: string) {
  const start = () =>
    execa(process.execPath, [MAIN, 'up', '--instance', instance, '--http', '0'], {
      ...{ env: d.env, extendEnv: false, reject: false, all: true },
    }) as unknown as ResultPromise;
  let child = start();
  const status = () => askControl<Status>(join(d.state, `control-${instance}.sock`), 'status');
  const isReady = () =>
    eventually(async () => {
      const now = await status();
      expect(now.daemon.state).toBe('running');
      expect(now.bus.state).toBe('online');
      expect(now.servers.map(({ state }) => state)).toEqual(now.servers.map(() => 'ready'));
      return now;
    }, 30_000);
  return {
    status,
    isReady,
    cli: (...words: string[]) => d.cli(...words, '--instance', instance),
    get pid() {
      return child.pid as number;
    },
    async again(): Promise<void> {
      child = start();
      await isReady();
    },
    async signal(...signals: NodeJS.Signals[]): Promise<void> {
      for (const signal of signals) child.kill(signal);
      await child;
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await child;
    },
  };
}

const pidOf = (name: string, { servers }: { servers: ServerStatus[] }) =>
  servers.find((each) => each.name === name)?.pid as number;

/** Every nats-server that runs for this state directory. */
async function brokers({ state }: Daemon): Promise<number[]> {
  const { stdout } = await execa('ps', ['-A', '-o', 'pid=,args=']);
  const lines = stdout.split('\n').filter((line) => line.includes(join(state, 'nats', 'nats.conf')));
  return lines.map((line) => Number.parseInt(line, 10));
}

describe('two daemons on one state directory', () => {
  let d: Daemon;
  let b: ReturnType<typeof beside>;
  let [first, second]: [Status, Status] = [{} as Status, {} as Status];

  beforeAll(async () => {
    d = await daemon({ servers: SERVERS });
    b = beside(d, 'b');
    await d.nats(); // from now on a client that only knows the bus
    second = await b.isReady();
    first = (await d.status()) as Status;
  }, 60_000);
  afterAll(async () => {
    await b[Symbol.asyncDispose]();
    await d[Symbol.asyncDispose]();
  });

  test('have processes, doors, logs and names of their own, and share the nats-server', async () => {
    expect(second.daemon.pid).toBe(b.pid);
    expect(second.daemon).toMatchObject({ instance: 'b', name: `${first.daemon.name}-b` });
    expect(pidOf('echo', second)).not.toBe(pidOf('echo', first));
    expect(second.http.url).not.toBe(first.http.url);
    expect(second.bus).toMatchObject({ url: first.bus.url, pid: first.bus.pid });
    expect(await brokers(d)).toEqual([first.bus.pid]);
    // The log is written behind, so that no line delays the daemon.
    await eventually(async () =>
      expect(await readFile(join(d.state, 'logs/troupe-b.log'), 'utf8')).toContain('broker running'),
    );
    expect(JSON.parse(await readFile(join(d.state, 'daemon-b.json'), 'utf8')).pid).toBe(b.pid);
  });

  test('every verb asks the one that is meant, and an environment variable says which', async () => {
    const one = JSON.parse((await d.cli('ps', '--json')).stdout);
    const other = JSON.parse((await b.cli('ps', '--json')).stdout);
    expect([pidOf('echo', { servers: one }), pidOf('echo', { servers: other })]).toEqual([
      pidOf('echo', first),
      pidOf('echo', second),
    ]);
    expect((await b.cli('call', 'echo', 'echo', 'message=hi')).stdout).toBe('hi');
    expect(await pidSeenBy({ TROUPE_INSTANCE: 'b' })).toBe(b.pid);
    expect(await pidSeenBy({ TROUPE_INSTANCE: '' })).toBe(d.pid);
    expect((await d.cli('ps', '--instance', 'nobody')).exitCode).toBe(4);
    expect(await d.cli('ps', '--instance', 'No Body')).toMatchObject({ exitCode: 2, stderr: /"no-body"/ as never });
  });

  test('a second one of the same name starts nothing', async () => {
    const { exitCode, stdout } = await b.cli('up', '--json');
    expect([exitCode, JSON.parse(stdout)]).toMatchObject([0, { started: false, daemon: { pid: b.pid } }]);
  });

  test('a nats-server that dies is restarted once, and both are back on it', async () => {
    const dead = first.bus.pid as number;
    process.kill(dead, 'SIGKILL');
    const pid = await eventually(async () => {
      const [one, other] = [await d.status(), await b.status()];
      expect([one.bus.state, other.bus.state]).toEqual(['online', 'online']);
      expect(one.bus.pid).not.toBe(dead);
      expect(other.bus.pid).toBe(one.bus.pid);
      return one.bus.pid;
    }, 20_000);
    expect(await brokers(d)).toEqual([pid]);
  });

  test('kill -9 of one leaves the other untouched, and what it left goes with the next start of anybody', async () => {
    const [before, mine] = [await d.status(), pidOf('stubborn', await d.status())];
    const orphan = pidOf('stubborn', await b.status());
    await b.signal('SIGKILL');
    expect(await isAlive(orphan)).toBe(true);
    expect((await d.cli('call', 'stubborn', 'echo', 'message=still')).stdout).toContain('still');
    expect(pidOf('stubborn', await d.status())).toBe(mine);
    expect((await d.status()).bus).toMatchObject({ state: 'online', pid: before.bus.pid });
    await using c = beside(d, 'c');
    await c.isReady();
    expect(await isAlive(orphan)).toBe(false);
    expect([await isAlive(mine), pidOf('stubborn', await d.status())]).toEqual([true, mine]);
    expect(await c.cli('down')).toMatchObject({ exitCode: 0 });
    await b.again();
  });

  test('a daemon that comes back after kill -9 ends its own orphans and never those of a living one', async () => {
    const [mine, theirs] = [pidOf('stubborn', await d.status()), pidOf('stubborn', await b.status())];
    await d.kill();
    expect([await isAlive(mine), await isAlive(theirs)]).toEqual([true, true]);
    await d.start();
    await eventually(async () => expect(await isAlive(mine)).toBe(false));
    expect([await isAlive(theirs), pidOf('stubborn', await b.status())]).toEqual([true, theirs]);
    expect((await b.cli('call', 'stubborn', 'echo', 'message=mine')).stdout).toContain('mine');
  });

  test('the one that stops first leaves the nats-server to the other, the last one takes it along', async () => {
    const broker = (await b.status()).bus.pid as number;
    expect(await d.down()).toBe(0);
    expect(await brokers(d)).toEqual([broker]);
    expect((await d.request('troupe.call.echo.echo', { message: 'b' })).data.content[0].text).toBe('b');
    expect(await d.cli('down')).toMatchObject({
      exitCode: 0,
      stderr: expect.stringContaining('troupe "b" still runs'),
    });
    await d.start();
    expect((await d.status()).bus).toMatchObject({ pid: broker });
    expect(await b.cli('down')).toMatchObject({ exitCode: 0, stdout: `troupe "b" has stopped (pid ${b.pid})` });
    expect(await brokers(d)).toEqual([broker]);
    expect(await d.down()).toBe(0);
    await eventually(async () => expect(await brokers(d)).toEqual([]));
    await Promise.all([d.start(), b.again()]); // at the same moment
    expect(await brokers(d)).toHaveLength(1);
  });

  test('one that is told twice to stop leaves at once, and leaves the nats-server to the other', async () => {
    const [broker] = await brokers(d);
    await b.signal('SIGINT', 'SIGINT');
    expect(await brokers(d)).toEqual([broker]);
    expect((await d.request('troupe.call.echo.echo', { message: 'd' })).data.content[0].text).toBe('d');
    await b.again();
  });

  test('down --all stops every one, and nothing of them is left', async () => {
    const pids = [d.pid, b.pid, pidOf('stubborn', await d.status()), pidOf('stubborn', await b.status())];
    const { exitCode, stdout } = await d.cli('down', '--all', '--json');
    expect([exitCode, JSON.parse(stdout)]).toEqual([
      0,
      {
        stopped: true,
        daemons: [
          { instance: null, pid: pids[0] },
          { instance: 'b', pid: pids[1] },
        ],
        ended: [],
      },
    ]);
    for (const pid of pids) expect(await isAlive(pid)).toBe(false);
    expect(await brokers(d)).toEqual([]);
  });

  async function pidSeenBy(env: Record<string, string>): Promise<number> {
    const { stdout } = await execa(process.execPath, [MAIN, 'status', '--json'], {
      ...{ env: { ...d.env, ...env }, extendEnv: false },
    });
    return JSON.parse(stdout).daemon.pid;
  }
});
