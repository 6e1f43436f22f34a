// Trouble with the disk is a state with a message, not a crash: calls go on, what could not be recorded waits, and it
// recovers by itself when the trouble is over.

import { readdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { execa } from 'execa';
import { expect, test } from 'vitest';
import { type Daemon, daemon, fixture } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { scratch } from '../support/scratch.ts';

const SERVERS = { echo: fixture('echo') };

/** So many calls, each of which must be answered. */
async function call(d: Daemon, count: number): Promise<number> {
  const calls = Array.from({ length: count }, (_, number) => d.request('troupe.call.echo.echo', { message: number }));
  const replies = await Promise.all(calls);
  expect(replies.map(({ data }) => data.content[0].text)).toEqual(replies.map((_, number) => String(number)));
  return count;
}

async function until(d: Daemon, state: string): Promise<string> {
  return eventually(async () => {
    const { store } = await d.status();
    expect(store.state, store.message).toBe(state);
    return store.message;
  }, 20_000);
}

function recorded(d: Daemon): number {
  const db = new Sqlite(join(d.state, 'database/troupe.db'), { readonly: true });
  try {
    return db.prepare("SELECT count(*) FROM audit WHERE server = 'echo'").pluck().get() as number;
  } finally {
    db.close();
  }
}

async function isSound(d: Daemon): Promise<void> {
  expect(await d.down()).toBe(0);
  const db = new Sqlite(join(d.state, 'database/troupe.db'), { readonly: true });
  expect(db.pragma('integrity_check', { simple: true })).toBe('ok');
  db.close();
}

test('a database that another program has locked: calls go on, and their rows are written when it lets go', async () => {
  await using d = await daemon({ servers: SERVERS });
  const other = new Sqlite(join(d.state, 'database/troupe.db'));
  other.exec('BEGIN IMMEDIATE');
  let made = await call(d, 10);
  expect(await until(d, 'locked')).toMatch(/^The database \S+ is locked by \S+ \w+: end that program;/);
  made += await call(d, 200);
  expect((await d.cli('status')).stdout).toMatch(/^store +locked +The database/m);
  // A server that is started meanwhile is not kept waiting for its row.
  expect((await d.cli('restart', 'echo')).exitCode).toBe(0);
  made += await call(d, 1);
  other.exec('ROLLBACK');
  other.close();
  await until(d, 'ready');
  await eventually(() => expect(recorded(d)).toBe(made));
  await eventually(async () => expect(await d.log()).toMatch(/is locked by \S+ \w+: end that program/));
  await isSound(d);
});

test('a database that is locked when the daemon starts again after kill -9 does not keep it from starting', async () => {
  await using d = await daemon({ servers: SERVERS });
  await d.kill();
  const other = new Sqlite(join(d.state, 'database/troupe.db'));
  other.exec('BEGIN IMMEDIATE');
  await d.start();
  const made = await call(d, 10);
  await until(d, 'locked');
  other.exec('ROLLBACK');
  other.close();
  await until(d, 'ready');
  await eventually(() => expect(recorded(d)).toBe(made));
  await isSound(d);
});

test.runIf(process.platform === 'linux')(
  'files that may not grow any more (a quota): calls go on, and their rows are written when they may',
  async () => {
    await using d = await daemon({ servers: SERVERS });
    const { pid } = (await d.status()).daemon;
    const limit = (bytes: string) => execa('prlimit', ['--pid', String(pid), `--fsize=${bytes}:`]);
    let made = await call(d, 1);
    await limit('65536');
    await eventually(async () => {
      made += await call(d, 200); // until log and database have both reached the limit
      expect((await d.status()).store.state).toBe('full');
    }, 20_000);
    made += await call(d, 1_000);
    expect((await d.status()).store.message).toMatch(/\bdisk\b/);
    expect((await d.cli('status')).stdout).toMatch(/^store +full/m);
    await limit('unlimited');
    await until(d, 'ready');
    made += await call(d, 1);
    await eventually(() => expect(recorded(d)).toBe(made));
    await isSound(d);
  },
);

const mountable = await canMount();

test.runIf(mountable)(
  'a full disk (a small one of our own, where we may mount): the same, with the log and everything else on it',
  async () => {
    await using d = await daemon({ servers: SERVERS });
    await d.down();
    await execa('mount', ['-t', 'tmpfs', '-o', 'size=24m,mode=700', 'troupe-test', d.state]);
    try {
      await d.start();
      let made = await call(d, 1);
      fill(d);
      await eventually(async () => {
        made += await call(d, 100);
        expect((await d.status()).store.state).toBe('full');
        fill(d); // also what the reserve gave back
      }, 20_000);
      made += await call(d, 2_000);
      expect((await d.status()).store.message).toMatch(/full/);
      expect((await d.status()).servers).toMatchObject([{ state: 'ready', restarts: 0 }]);
      empty(d);
      await until(d, 'ready');
      made += await call(d, 1);
      await eventually(() => expect(recorded(d)).toBe(made));
      expect((await d.status()).daemon.state).toBe('running');
      await isSound(d);
    } finally {
      empty(d);
      await d.down();
      await execa('umount', [d.state]);
    }
  },
);

/** Takes all the room there is. */
function fill({ state }: Daemon): void {
  for (let part = 0; ; part++) {
    const { bavail, bsize } = statfsSync(state);
    if (bavail === 0) return;
    try {
      writeFileSync(join(state, `filler-${Date.now()}-${part}`), Buffer.alloc(bavail * bsize, 1));
    } catch {} // somebody else took some of it; what is left is seen in the next round
  }
}

function empty({ state }: Daemon): void {
  for (const file of fillers(state)) rmSync(file, { force: true });
}

const fillers = (state: string): string[] =>
  readdirSync(state)
    .filter((name) => name.startsWith('filler-'))
    .map((name) => join(state, name));

async function canMount(): Promise<boolean> {
  if (process.platform !== 'linux') return false;
  await using dir = await scratch();
  const { failed } = await execa('mount', ['-t', 'tmpfs', 'troupe-test', dir.path], { reject: false });
  if (!failed) await execa('umount', [dir.path]);
  return !failed;
}
