// Where things live, for every way of saying so.

import { mkdirSync, symlinkSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { mendName } from '../../src/config/names.ts';
import { instanceOfLock, pathsOf, realPathsOf } from '../../src/config/paths.ts';
import { scratch } from '../support/scratch.ts';

const HOME = '/home/me';

test('on Linux everything lies where XDG says by default', () => {
  expect(pathsOf({ HOME }, { platform: 'linux' })).toEqual({
    state: '/home/me/.local/state/troupe',
    config: '/home/me/.config/troupe/troupe.json',
    cache: '/home/me/.cache/troupe',
    socket: '/home/me/.local/state/troupe/control.sock',
    database: '/home/me/.local/state/troupe/database',
    logs: '/home/me/.local/state/troupe/logs',
    broker: '/home/me/.local/state/troupe/nats',
    lock: 'daemon',
    note: '/home/me/.local/state/troupe/daemon.json',
    logFile: '/home/me/.local/state/troupe/logs/troupe.log',
    startLog: '/home/me/.local/state/troupe/logs/up.log',
    httpPort: '/home/me/.local/state/troupe/http-port',
  });
});

test('on macOS the state lies in Application Support', () => {
  const { state, config } = pathsOf({ HOME }, { platform: 'darwin' });
  expect([state, config]).toEqual([
    '/home/me/Library/Application Support/troupe',
    '/home/me/.config/troupe/troupe.json',
  ]);
});

test('the XDG variables move it, unless they are relative', () => {
  const xdg = (at: string) => ({ HOME, XDG_STATE_HOME: at, XDG_CONFIG_HOME: at, XDG_CACHE_HOME: at });
  for (const platform of ['linux', 'darwin'] as const) {
    const { state, config, cache } = pathsOf(xdg('/x'), { platform });
    expect([state, config, cache]).toEqual(['/x/troupe', '/x/troupe/troupe.json', '/x/troupe']);
  }
  expect(pathsOf(xdg('x'), { platform: 'linux' })).toEqual(pathsOf({ HOME }, { platform: 'linux' }));
  expect(pathsOf(xdg(''), { platform: 'linux' })).toEqual(pathsOf({ HOME }, { platform: 'linux' }));
});

test('TROUPE_STATE beats XDG, and --config beats TROUPE_CONFIG', () => {
  const env = { HOME, TROUPE_STATE: '/s', XDG_STATE_HOME: '/x', TROUPE_CONFIG: '/env.json', XDG_CONFIG_HOME: '/x' };
  expect(pathsOf(env)).toMatchObject({ state: '/s', config: '/env.json', logs: '/s/logs' });
  expect(pathsOf(env, { config: 'mine.json' }).config).toBe(resolve('mine.json'));
  expect(pathsOf({ TROUPE_STATE: 'here' }).state).toBe(resolve('here'));
  expect(pathsOf({}).config).toBe(join(homedir(), '.config/troupe/troupe.json'));
});

test('a socket whose path would be too long lies in the temporary folder, one for each state directory', () => {
  const socket = (state: string, TMPDIR?: string) => pathsOf({ TROUPE_STATE: state, TMPDIR }).socket;
  const exact = `/${'s'.repeat(86)}`; // with /control.sock exactly 100 bytes
  expect(socket(exact)).toBe(`${exact}/control.sock`);
  const far = socket(`${exact}s`);
  expect(far).toMatch(/^\/tmp\/troupe-\d+\/[0-9a-f]{16}\.sock$/);
  expect(socket(`${exact}t`)).not.toBe(far);
  expect(socket(`/${'é'.repeat(50)}`)).toMatch(/^\/tmp\//);
  expect(socket(`${exact}s`, '/var/t')).toMatch(/^\/var\/t\/troupe-/);
  expect(socket(`${exact}s`, `/${'t'.repeat(90)}`)).toBe(far);
  expect(pathsOf({ ...process.env, TROUPE_STATE: `${exact}s` }).socket.startsWith(tmpdir())).toBe(true);
});

test('a further daemon has a name in everything that is its own, and shares the rest', () => {
  const usual = pathsOf({ TROUPE_STATE: '/s' });
  const work = pathsOf({ TROUPE_STATE: '/s' }, { instance: 'work' });
  expect(work).toEqual({
    ...usual,
    instance: 'work',
    socket: '/s/control-work.sock',
    lock: 'daemon-work',
    note: '/s/daemon-work.json',
    logFile: '/s/logs/troupe-work.log',
    startLog: '/s/logs/up-work.log',
    httpPort: '/s/http-port-work',
  });
  expect(pathsOf({ TROUPE_STATE: '/s', TROUPE_INSTANCE: 'work' })).toEqual(work);
  expect(pathsOf({ TROUPE_STATE: '/s', TROUPE_INSTANCE: 'home' }, { instance: 'work' })).toEqual(work);
  expect(pathsOf({ TROUPE_STATE: '/s', TROUPE_INSTANCE: 'home' }, { instance: '' })).toEqual(usual);
  expect([usual.lock, work.lock].map(instanceOfLock)).toEqual([undefined, 'work']);
  expect(() => pathsOf({}, { instance: 'My Work' })).toThrow(/must match .*; call it "my-work"/);
});

test('one state directory has one name, through links and other spellings, before and after it was made', async () => {
  await using dir = await scratch();
  mkdirSync(join(dir.path, 'real'));
  symlinkSync(join(dir.path, 'real'), join(dir.path, 'link'));
  const plain = realPathsOf({ TROUPE_STATE: join(dir.path, 'real/deep/state') });
  const spellings = ['link/deep/state', 'real/deep/state/', 'link/../real/deep/./state'];
  const others = () => spellings.map((each) => realPathsOf({ TROUPE_STATE: `${dir.path}/${each}` }));
  expect(plain.state).toBe(join(dir.path, 'real/deep/state'));
  expect(others()).toEqual(spellings.map(() => plain));
  mkdirSync(plain.state, { recursive: true });
  expect(others()).toEqual(spellings.map(() => plain));
  expect(realPathsOf({ HOME: join(dir.path, 'link') }, { platform: 'linux' }).state).toBe(
    join(dir.path, 'real/.local/state/troupe'),
  );
});

test('each daemon has a socket of its own, however long the path', () => {
  const state = `/${'s'.repeat(99)}`;
  const sockets = ['', 'a', 'b'].map((instance) => pathsOf({ TROUPE_STATE: state }, { instance }).socket);
  expect(new Set(sockets).size).toBe(3);
  for (const socket of sockets) expect(Buffer.byteLength(socket)).toBeLessThanOrEqual(100);
});

test.each([
  ['Files', 'files'],
  ['My Server (v2)', 'my-server-v2'],
  ['io.github.user/Server', 'io-github-user-server'],
  ['Café', 'cafe'],
  ['--', 'server'],
  ['日本', 'server'],
  ['x'.repeat(80), 'x'.repeat(63)],
  ['ok_name-1', 'ok_name-1'],
])('the name %j is mended to %j', (name, mended) => {
  expect(mendName(name)).toBe(mended);
});
