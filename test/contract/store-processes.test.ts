// The store beside other processes: what was acknowledged survives their death, and their locks are waited for.

import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import Sqlite from 'better-sqlite3';
import { execa } from 'execa';
import { expect, it } from 'vitest';
import { acquireLock, isHeld } from '../../src/store/lock.ts';
import { openStore } from '../../src/store/store.ts';
import { eventually } from '../support/eventually.ts';
import { scratch } from '../support/scratch.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));

/** A second process: runs the script with `directory` and `say(line)`, and gives back the lines it said so far. */
function companion(directory: string, script: string) {
  const prelude = `
    import { writeSync } from 'node:fs';
    const directory = ${JSON.stringify(directory)};
    const say = (line) => writeSync(1, line + '\\n');
  `;
  const child = execa('node', ['--expose-gc', '--input-type=module', '-e', prelude + script], {
    cwd: root,
    reject: false,
    buffer: false,
    stdin: 'pipe',
    stderr: 'inherit',
  });
  let said = '';
  child.stdout.on('data', (chunk) => {
    said += chunk;
  });
  return {
    lines: () => said.split('\n').slice(0, -1), // the last is unfinished or empty
    pid: child.pid,
    release: () => child.stdin.end(),
    signal: (name: NodeJS.Signals) => void child.kill(name),
    async kill() {
      child.kill('SIGKILL');
      await child;
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await child;
    },
  };
}

it('never loses what it acknowledged when its process is killed', async () => {
  await using dir = await scratch();
  const random = seeded(20_261_116);
  const acknowledged = new Set<string>();
  for (let life = 0; life < 25; life++) {
    await using writer = companion(dir.path, COMMITS_FOR_EVER.replace('LIFE', String(life)));
    const enough = 1 + Math.floor(random() * 200);
    await eventually(() => writer.lines().length >= enough, 60_000);
    await writer.kill();
    for (const line of writer.lines()) acknowledged.add(line);
  }

  const store = await openStore(dir.path);
  const lost = [...acknowledged].filter((key) => store.get('getMeta', [key]) === undefined);
  expect(acknowledged.size).toBeGreaterThan(25);
  expect(lost).toEqual([]);
  await store.close();
  const raw = new Sqlite(join(dir.path, 'troupe.db'));
  expect(raw.pragma('integrity_check', { simple: true })).toBe('ok');
  raw.close();
}, 300_000);

it('waits while another process holds the write lock, says so, and records everything afterwards', async () => {
  await using dir = await scratch();
  const store = await openStore(dir.path, { queueOps: 20 });
  const states: string[] = [];
  store.onHealth((health) => states.push(health.state));
  await using holder = companion(dir.path, HOLDS_THE_WRITE_LOCK);
  await eventually(() => expect(holder.lines()).toEqual(['held']));

  const committed = store.commit('setMeta', ['key', 'value']);
  await eventually(() => expect(store.health.state).toBe('locked'));
  const who = process.platform === 'linux' ? `process ${holder.pid}` : 'another program';
  expect(store.health.message).toContain(
    `troupe.db is locked by ${who}: end that program; recording goes on by itself.`,
  );
  expect(store.all('processes')).toEqual([]); // readers do not wait
  for (let i = 0; i < 30; i++) store.write('setMeta', [`k${i}`, 'v']);
  expect(store.dropped).toBe(11);
  await expect(store.commit('setMeta', ['beyond', 'v'])).rejects.toMatchObject({ code: 'unavailable' });

  holder.release();
  await committed;
  await store.flush();
  expect(store.get('getMeta', ['k18'])).toEqual({ value: 'v' });
  expect([states, store.health.state]).toEqual([['locked', 'ready'], 'ready']);
  await store.close();
}, 20_000);

it.runIf(process.platform === 'linux')(
  'says which stopped process holds the write lock, and what to do',
  async () => {
    await using dir = await scratch();
    const store = await openStore(dir.path);
    await using holder = companion(dir.path, HOLDS_THE_WRITE_LOCK);
    await eventually(() => expect(holder.lines()).toEqual(['held']));
    holder.signal('SIGSTOP');
    const committed = store.commit('setMeta', ['key', 'value']);
    await eventually(() => expect(store.health.state).toBe('locked'));
    expect(store.health.message).toContain(
      `is locked by process ${holder.pid}, which is stopped: continue it (kill -CONT ${holder.pid}) or end it;`,
    );
    holder.release();
    holder.signal('SIGCONT');
    await committed;
    await store.close();
  },
  20_000,
);

it('closes in time while another process holds the write lock, and rejects what it could not record', async () => {
  await using dir = await scratch();
  const store = await openStore(dir.path);
  await using holder = companion(dir.path, HOLDS_THE_WRITE_LOCK);
  await eventually(() => expect(holder.lines()).toEqual(['held']));
  const outcome = store.commit('setMeta', ['key', 'value']).catch((error) => error.message);
  await store.close();
  expect(await outcome).toMatch('The database is closed');
  expect(store.health.state).toBe('closed');
}, 20_000);

it('opens the same new directory from several processes at once', async () => {
  await using dir = await scratch();
  const companions = Array.from({ length: 4 }, () => companion(dir.path, OPENS_AND_COMMITS));
  const store = await openStore(dir.path);
  for (const other of companions) await eventually(() => expect(other.lines()).toEqual(['committed']), 15_000);
  expect(store.all('processes')).toHaveLength(4);
  await store.close();
}, 20_000);

it('takes a name that nobody took for a lock that is not held, and makes no file of it', async () => {
  await using dir = await scratch();
  const state = join(dir.path, 'state');
  mkdirSync(state);
  for (const name of ['', 'stranger', '../outside', '/tmp/outside', 'x'.repeat(5_000), 'a\0b'])
    expect(isHeld(state, name, 0), JSON.stringify(name).slice(0, 40)).toBe(false);
  expect(readdirSync(dir.path, { recursive: true })).toEqual(['state']);
});

it('gives a lock to one holder at a time, and frees it when the holder is killed', async () => {
  await using dir = await scratch();
  const mine = acquireLock(dir.path, 'daemon');
  expect(mine).toBeDefined();
  expect(acquireLock(dir.path, 'daemon')).toBeUndefined();
  const other = acquireLock(dir.path, 'other');
  expect(other).toBeDefined();

  await using refused = companion(dir.path, TAKES_THE_LOCK);
  await eventually(() => expect(refused.lines()).toEqual(['refused']));
  mine?.release();
  await using holder = companion(dir.path, TAKES_THE_LOCK);
  await eventually(() => expect(holder.lines()).toEqual(['taken']));
  expect(acquireLock(dir.path, 'daemon')).toBeUndefined();
  await holder.kill();
  const again = acquireLock(dir.path, 'daemon');
  expect(again).toBeDefined();
  again?.release();
  other?.release();
}, 20_000);

const COMMITS_FOR_EVER = `
  import { openStore } from './dist/src/store/store.js';
  const store = await openStore(directory);
  let next = 0;
  for (let lane = 0; lane < 8; lane++) (async () => {
    for (;;) {
      const key = 'LIFE-' + next++;
      store.write('setMeta', ['beside ' + key, '']);
      await store.commit('setMeta', [key, '']);
      say(key);
    }
  })();
`;

const HOLDS_THE_WRITE_LOCK = `
  import Sqlite from 'better-sqlite3';
  const db = new Sqlite(directory + '/troupe.db');
  db.exec('BEGIN IMMEDIATE');
  say('held');
  process.stdin.resume().on('end', () => db.exec('COMMIT'));
`;

const OPENS_AND_COMMITS = `
  import { openStore } from './dist/src/store/store.js';
  const store = await openStore(directory);
  await store.commit('putProcess', ['server', 'files', process.pid, '1', 'boot', 'd', Date.now()]);
  say('committed');
  await store.close();
`;

const TAKES_THE_LOCK = `
  import { acquireLock } from './dist/src/store/lock.js';
  const answer = acquireLock(directory, 'daemon') ? 'taken' : 'refused';
  global.gc(); // nobody keeps the lock's object: it must be held all the same
  say(answer);
  process.stdin.resume();
`;

/** mulberry32: small, and the same on every machine. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
