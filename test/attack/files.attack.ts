// What lies on the disk: a state directory that is removed under its daemon, files that others have planted, and
// configurations that never end.

import { execFileSync } from 'node:child_process';
import {
  chownSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { chmod, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { execa } from 'execa';
import { expect } from 'vitest';
import { askControl } from '../support/control.ts';
import { daemon, fixture, isAlive, MAIN } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { natsBinary } from '../support/nats.ts';
import { scratch } from '../support/scratch.ts';
import { apart, surface } from './kit.ts';

const PLANTED = 'a-token-that-somebody-planted-here';
const PATIENCE_MS = 10_000;

type Health = { daemon: { pid: number; state: string }; servers: { name: string; pid: number; state: string }[] };

surface('files', {
  'a removed state directory': apart(async ({ attempt }) => {
    const troupe = { http: { address: '127.0.0.1:0' } };
    await using d = await daemon({ servers: { echo: fixture('echo') }, troupe });
    const control = join(d.state, 'control.sock');
    const old = d.pid;
    await (await d.nats()).close();
    await rm(d.state, { recursive: true, force: true });
    try {
      await attempt('another daemon starts in its place', async () => {
        const { exitCode, stderr } = await d.cli('up', '--detach');
        expect([exitCode, stderr]).toEqual([0, expect.anything()]);
      });
      await attempt('the old one ends', () => eventually(async () => !(await isAlive(old)), PATIENCE_MS));
      await attempt('and takes nothing of the new one along', async () => {
        const { daemon, servers } = await askControl<Health>(control, 'status');
        expect([daemon.pid === old, servers.map(({ state }) => state)]).toEqual([false, ['ready']]);
        const { stdout } = await d.cli('call', 'echo', 'echo', 'message=new');
        expect(stdout).toContain('new');
      });
      await attempt('the new one can be stopped', async () => expect((await d.cli('down')).exitCode).toBe(0));
    } finally {
      endAll(d.dir, old);
    }
  }),

  'planted files': apart(async ({ attempt }) => {
    const plants: Record<string, (state: string, victim: string) => void> = {
      ...(CAN_PLANT && {
        'nats/token': (state: string) => plantText(join(state, 'nats/token')),
        'http-token': (state: string) => plantText(join(state, 'http-token')),
      }),
      'a log that leads elsewhere': (state, victim) => link(victim, join(state, 'logs/troupe.log')),
      'a token that leads elsewhere': (state, victim) => link(victim, join(state, 'nats/token')),
      'a database that leads elsewhere': (state, victim) => link(`${victim}.db`, join(state, 'database/troupe.db')),
      'a directory that leads elsewhere': (state, victim) => {
        mkdirSync(`${victim}.d`);
        link(`${victim}.d`, join(state, 'logs'));
      },
    };
    for (const [what, plant] of Object.entries(plants))
      await attempt(what, async () => {
        await using place = await openPlace();
        const victim = join(place.dir, 'victim');
        writeFileSync(victim, 'precious');
        mkdirSync(place.state);
        plant(place.state, victim);
        await chmodAll(place.state);
        const { exitCode, all } = await place.cli('up', '--detach');
        expect(readFileSync(victim, 'utf8')).toBe('precious');
        expect([`${victim}.db`, `${victim}.d/troupe.log`].filter(existsSync)).toEqual([]);
        if (exitCode !== 0) return expect(all).toContain(place.state);
        expect((await place.cli('env')).all).not.toContain(PLANTED);
      });
  }),

  'a configuration without end': apart(async ({ attempt }) => {
    const things: Record<string, (path: string) => void> = {
      'a FIFO': (path) => execFileSync('mkfifo', [path]),
      '/dev/zero': (path) => symlinkSync('/dev/zero', path),
      '/dev/random': (path) => symlinkSync('/dev/random', path),
      'a directory': (path) => mkdirSync(path),
      'a file of eight gigabytes': (path) => execFileSync('truncate', ['-s', '8G', path]),
      'a link to itself': (path) => symlinkSync(path, path),
    };
    for (const [what, make] of Object.entries(things))
      await attempt(`${what} at the start`, async () => {
        await using place = await openPlace();
        rmSync(place.config);
        make(place.config);
        const { exitCode, all, timedOut } = await place.cli('up', '--detach');
        expect([timedOut, exitCode === 0, all]).toEqual([false, false, expect.stringContaining(place.config)]);
      });
    for (const [what, make] of Object.entries(things))
      await attempt(`${what} under a running daemon`, async () => {
        await using place = await openPlace();
        expect((await place.cli('up', '--detach')).exitCode).toBe(0);
        make(`${place.config}.next`);
        if (what === 'a directory') rmSync(place.config);
        renameSync(`${place.config}.next`, place.config);
        const control = join(place.state, 'control.sock');
        const reloaded = askControl(control, 'reload').then(
          () => 'taken up',
          (error) => String(error),
        );
        const late = new Promise<string>((resolve) => setTimeout(resolve, PATIENCE_MS, 'silence').unref());
        const said = await Promise.race([reloaded, late]);
        place.isStuck = said === 'silence';
        expect(said).toContain(place.config);
        const { stdout } = await place.cli('call', 'echo', 'echo', 'message=still');
        expect(stdout).toContain('still');
      });
  }, 240),
});

/** What is planted belongs to who planted it; only root can play another user. */
const CAN_PLANT = process.geteuid?.() === 0;
const STRANGER = 65_534;

function plantText(path: string): void {
  mkdirSync(join(path, '..'), { recursive: true });
  writeFileSync(path, PLANTED);
  chownSync(path, STRANGER, STRANGER);
}

function link(to: string, path: string): void {
  mkdirSync(join(path, '..'), { recursive: true });
  symlinkSync(to, path);
}

/** A directory that everybody may write, with everything in it. */
const chmodAll = async (path: string): Promise<void> => {
  await chmod(path, 0o777);
  for (const folder of ['nats', 'logs', 'database'])
    if (existsSync(join(path, folder))) await chmod(join(path, folder), 0o777);
};

/** A state directory that is not made yet, and the command line on it; what runs there ends with the scope. */
async function openPlace() {
  const dir = await scratch();
  const [state, config] = [join(dir.path, 'state'), join(dir.path, 'troupe.json')];
  const top = { http: { address: '127.0.0.1:0' } };
  writeFileSync(config, JSON.stringify({ mcpServers: { echo: fixture('echo') }, 'x-troupe': top }));
  const env = {
    ...{ PATH: process.env.PATH ?? '', HOME: dir.path, TROUPE_STATE: state, TROUPE_CONFIG: config },
    ...{ TROUPE_NATS_SERVER: (await natsBinary()).path, NO_COLOR: '1' },
  };
  // What reads without an end must not take the machine's memory along.
  const cli = (...words: string[]) =>
    execa('sh', ['-c', 'ulimit -d 4000000; exec "$0" "$@"', process.execPath, MAIN, ...words], {
      ...{ env, extendEnv: false, reject: false, all: true, timeout: PATIENCE_MS, killSignal: 'SIGKILL' },
    });
  return {
    ...{ dir: dir.path, state, config, cli, isStuck: false },
    async [Symbol.asyncDispose]() {
      if (!this.isStuck && existsSync(join(state, 'control.sock'))) await cli('down');
      endAll(dir.path);
      await dir[Symbol.asyncDispose]();
    },
  };
}

/** What was started for that directory and is still there: it held, or it fell, but it must not stay. */
function endAll(directory: string, ...more: number[]): void {
  const lines = execFileSync('ps', ['-A', '-o', 'pid=,args='], { encoding: 'utf8' }).split('\n');
  const named = lines.filter((line) => line.includes(`${directory}/`)).map((line) => Number.parseInt(line, 10));
  const told = lines
    .map((line) => Number.parseInt(line, 10))
    .filter((pid) => environmentOf(pid).includes(`=${directory}`));
  for (const pid of new Set([...named, ...told, ...more]))
    try {
      if (pid !== process.pid) process.kill(pid, 'SIGKILL');
    } catch {
      // it has ended by itself
    }
}

function environmentOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'latin1');
  } catch {
    return ''; // it has ended, or belongs to somebody else
  }
}
