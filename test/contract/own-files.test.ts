// What lies in the state directory is ours alone, or it is not used: a link is not followed, what belongs to another user is
// refused, what is ours and too open is mended.

import { chmodSync, chownSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { execa } from 'execa';
import { describe, expect, it, test } from 'vitest';
import { brokerFiles } from '../../src/bus/broker-files.ts';
import { realPathsOf } from '../../src/config/paths.ts';
import { troupeSchema } from '../../src/config/schema.ts';
import { withOwnersToken } from '../../src/doors/http/port-and-token.ts';
import { acquireLock } from '../../src/store/lock.ts';
import { openSeal } from '../../src/store/seal.ts';
import { openStore } from '../../src/store/store.ts';
import { openLog } from '../../src/telemetry/log.ts';
import { scratch } from '../support/scratch.ts';

const HTTP = troupeSchema.parse({}).http;
const SECRET = 'planted-planted-planted-planted!'; // as long as a key

/** Each file that we open, and what opens it. */
const FILES: Record<string, (directory: string) => unknown> = {
  token: (directory) => brokerFiles(directory),
  'nats-server.log': async (directory) => (await brokerFiles(directory)).openLog(),
  'broker.json': async (directory) => (await brokerFiles(directory)).recall(),
  jetstream: async (directory) => (await brokerFiles(directory)).configure(4222, 1024),
  'troupe.log': (directory) => openLog(directory, 'info').close(),
  'seal.key': (directory) => openSeal(directory).seal('text', 'name'),
  'http-token': (directory) => withOwnersToken(HTTP, realPathsOf({ TROUPE_STATE: directory })),
  'daemon.lock.db': (directory) => acquireLock(directory, 'daemon')?.release(),
  'troupe.db': async (directory) => (await openStore(directory)).close(),
  'troupe.db-wal': async (directory) => (await openStore(directory)).close(),
};

describe('a link in the place of', () => {
  test.each(Object.keys(FILES))('%s is refused, and what it leads to stays as it was', async (name) => {
    await using dir = await scratch();
    const elsewhere = join(dir.path, 'elsewhere');
    writeFileSync(elsewhere, SECRET, { mode: 0o600 });
    const state = join(dir.path, 'state');
    mkdirSync(state, { mode: 0o700 });
    symlinkSync(elsewhere, join(state, name));
    await expect((async () => FILES[name]?.(state))()).rejects.toThrow(
      `${join(state, name)} is a symbolic link, not a ${name === 'jetstream' ? 'directory' : 'file'}: move it away.`,
    );
    expect(readFileSync(elsewhere, 'utf8')).toBe(SECRET);
  });

  it('a directory of ours is refused; only the state directory may be one, which is resolved first', async () => {
    await using dir = await scratch();
    mkdirSync(join(dir.path, 'real'), { mode: 0o700 });
    symlinkSync('real', join(dir.path, 'state'));
    const { state, logs } = realPathsOf({ TROUPE_STATE: join(dir.path, 'state') });
    expect(state).toBe(join(dir.path, 'real'));
    symlinkSync(dir.path, logs);
    expect(() => openLog(logs, 'info')).toThrow(`${logs} is a symbolic link, not a directory: move it away.`);
  });
});

it('refuses what belongs to another user, and says who and what to do', async () => {
  await using dir = await scratch();
  const isRoot = process.getuid?.() === 0;
  const [path, owner] = isRoot ? [join(dir.path, 'token'), 65534] : ['/usr', 0];
  if (isRoot) writeFileSync(path, SECRET, { mode: 0o600 });
  if (isRoot) chownSync(path, owner, owner);
  const use = async () => (isRoot ? brokerFiles(dir.path) : openLog(path, 'info'));
  await expect(use()).rejects.toThrow(
    `${path} belongs to uid ${owner}, not to you: if you made it as another user, chown -R ${process.getuid?.()} ${path}; else move it away.`,
  );
});

it('refuses a state directory that everybody could replace, unless the sticky bit keeps them from it', async () => {
  await using dir = await scratch();
  const open = join(dir.path, 'o p');
  mkdirSync(open);
  chmodSync(open, 0o777);
  const take = () => acquireLock(join(open, 'state'), 'daemon')?.release();
  expect(take).toThrow(
    new RegExp(
      `${open} of uid \\d+ may be written by everybody, .* ${open}/state: chmod o-w '${open}', or choose another`,
    ),
  );
  chmodSync(open, 0o1777);
  take();
});

it('mends what is its own and open to others', async () => {
  await using dir = await scratch();
  const modeOf = (...names: string[]) => statSync(join(dir.path, ...names)).mode & 0o7777;
  const { token } = await brokerFiles(join(dir.path, 'nats'));
  for (const directory of ['', 'nats']) chmodSync(join(dir.path, directory), 0o775);
  chmodSync(join(dir.path, 'nats/token'), 0o644);
  acquireLock(dir.path, 'daemon')?.release();
  expect(await brokerFiles(join(dir.path, 'nats'))).toMatchObject({ token });
  expect([modeOf(), modeOf('nats'), modeOf('nats/token')]).toEqual([0o700, 0o700, 0o600]);
});

it('takes no named pipe for a file of its own', async () => {
  await using dir = await scratch();
  await execa('mkfifo', [join(dir.path, 'troupe.log')]);
  expect(() => openLog(dir.path, 'info')).toThrow('troupe.log is a named pipe, not a file: move it away.');
});
