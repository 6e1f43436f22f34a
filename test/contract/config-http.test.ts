// `x-troupe.http` and `x-troupe.profiles`: what they become, what is refused, and where the door listens in the end.

import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { hostAndPort, isLoopback, isPrivate } from '../../src/config/addresses.ts';
import { formatComplaint } from '../../src/config/complaints.ts';
import { addressOf, isHttpFlag } from '../../src/config/http.ts';
import { type Loaded, loadConfig } from '../../src/config/load.ts';
import { pathsOf } from '../../src/config/paths.ts';
import { ownersToken, portsToTry, rememberPort, withOwnersToken } from '../../src/doors/http/port-and-token.ts';
import { environmentOf } from '../../src/operations/status.ts';
import { scratch } from '../support/scratch.ts';

const TOKEN = 'a-token-of-32-characters-or-more';

test('without a word about it the door is open to this machine only', async () => {
  expect((await http({})).config.http).toEqual({
    ...{ enabled: true, tokens: {}, requireToken: false, origins: [], hosts: [] },
    ...{ maxBodyBytes: 16 * 1024 ** 2, maxSessions: 1000, maxStreams: 64 },
    ...{ sessionIdleMs: 86_400_000, keepAliveMs: 15_000 },
  });
});

test('every setting is read, and the tokens may be variables', async () => {
  const settings = {
    ...{ enabled: false, address: '0.0.0.0:80', tokens: { alice: `\${ALICE}`, _: `${TOKEN}==` } },
    ...{
      requireToken: true,
      origins: ['https://app.example.com', 'http://localhost:5173'],
      hosts: ['mcp.example.com', 'h:8443', '[::1]:1'],
    },
    ...{ maxBodyBytes: '1MB', maxSessions: 5, maxStreams: 2, sessionIdleMs: '1h', keepAliveMs: '5s' },
  };
  expect((await http(settings)).config.http).toEqual({
    ...{ ...settings, tokens: { alice: TOKEN, _: `${TOKEN}==` } },
    ...{ maxBodyBytes: 1024 ** 2, sessionIdleMs: 3_600_000, keepAliveMs: 5_000 },
  });
});

test.each<[string, object, string[]]>([
  [
    'an address that is none',
    { address: 'everywhere' },
    ['address must be an address such as "127.0.0.1:7411"; port 0 picks a free one'],
  ],
  ['a port that is none', { address: 'h:65536' }, [expect.stringContaining('address must be an address')]],
  ['a short token', { tokens: { alice: 'hunter2' } }, ['tokens.alice must have at least 16 characters']],
  [
    'a token with spaces',
    { tokens: { alice: 'hunter2 hunter2 hunter2' } },
    [expect.stringContaining('tokens.alice must be of letters, digits and')],
  ],
  [
    'a principal that is no name',
    { tokens: { 'Alice B': TOKEN } },
    ['tokens must name each principal [a-z0-9_-]{1,63}'],
  ],
  [
    'one token for two',
    { tokens: { alice: TOKEN, bob: TOKEN } },
    ['tokens must give each principal a token of its own'],
  ],
  ['an unset token', { tokens: { alice: `\${NOBODY}` } }, [expect.stringContaining(`tokens.alice uses \${NOBODY}`)]],
  [
    'any origin',
    { origins: ['*'] },
    ['origins[0] must be an origin such as "https://app.example.com", without a path'],
  ],
  ['an origin with a path', { origins: ['https://h/app'] }, [expect.stringContaining('origins[0] must be an origin')]],
  ['a host that is an address', { hosts: ['https://h'] }, [expect.stringContaining('hosts[0] must be a host')]],
  ['a setting that does not exist', { adress: 'x' }, ['adress is not a setting; did you mean "address"?']],
])('%s is refused with the remedy', async (_, settings, complaints) => {
  const loaded = await load({ http: settings });
  expect(said(loaded).map((message) => message.replace('x-troupe.http.', ''))).toEqual(complaints);
  expect(JSON.stringify(loaded)).not.toContain('hunter2');
});

test('a profile is a subset of the servers of the file', async () => {
  const tools = { allow: ['files__*'], deny: ['files__write'] };
  const { config } = good(
    await load({ profiles: { work: { servers: ['files', 'web'], tools }, web: { servers: ['web'] } } }),
  );
  expect(config.profiles).toEqual({ work: { servers: ['files', 'web'], tools }, web: { servers: ['web'], tools: {} } });
});

test('a profile that names a stranger is refused, and the name that was meant is proposed', async () => {
  const profiles = {
    work: { servers: ['file', 'nobody-at-all'] },
    'My Work': { servers: ['web'] },
    none: { servers: [] },
  };
  expect(said(await load({ profiles }))).toEqual(['x-troupe.profiles.none.servers must name at least one server']);
  expect(said(await load({ profiles: { ...profiles, none: { servers: ['web'], tool: {} } } }))).toEqual([
    'x-troupe.profiles.none.tool is not a setting; did you mean "tools"?',
  ]);
  const { none: _, ...rest } = profiles;
  expect(said(await load({ profiles: rest }))).toEqual([
    'profile "work": there is no server "file" in this file; did you mean "files"?',
    'profile "work": there is no server "nobody-at-all" in this file; add it, or take it out of the profile',
    'profile "My Work": its name must match [a-z0-9_-]{1,63}; call it "my-work"',
  ]);
});

test.each<[string, { host: string; port: number } | undefined]>([
  ['127.0.0.1:80', { host: '127.0.0.1', port: 80 }],
  [':80', { host: '127.0.0.1', port: 80 }],
  ['0', { host: '127.0.0.1', port: 0 }],
  ['[::1]:80', { host: '::1', port: 80 }],
  ['localhost:0', { host: 'localhost', port: 0 }],
  ['0.0.0.0:8080', { host: '0.0.0.0', port: 8080 }],
  ...['', 'h', '::1:80', '1.2.3:80', 'h:99999', 'http://h:80', 'a b:80', '[h]:80', 'u@h:80'].map(
    (bad) => [bad, undefined] as [string, undefined],
  ),
])('%j is read as an address: %j', (written, address) => {
  expect(hostAndPort(written)).toEqual(address);
  expect(isHttpFlag(written)).toBe(address !== undefined);
});

test('the command line beats the file, and a daemon with a name has a port of its own', async () => {
  const { http: settings } = (await http({ address: '127.0.0.1:9000' })).config;
  expect(addressOf(undefined, settings)).toEqual({ host: '127.0.0.1', port: 9000, isExplicit: true });
  expect(addressOf(':0', settings)).toEqual({ host: '127.0.0.1', port: 0, isExplicit: true });
  expect(addressOf('off', settings)).toBeUndefined();
  expect(addressOf(undefined, settings, 'work')).toEqual({ host: '127.0.0.1', port: 0, isExplicit: false });
  expect(addressOf('9001', settings, 'work')).toEqual({ host: '127.0.0.1', port: 9001, isExplicit: true });
  const { http: off } = (await http({ enabled: false })).config;
  expect([addressOf(undefined, off), addressOf('9000', off)?.port]).toEqual([undefined, 9000]);
  expect(addressOf(undefined, { ...off, enabled: true })).toEqual({ host: '127.0.0.1', port: 7411, isExplicit: false });
});

test('a daemon that may choose its port comes back on the one it had', async () => {
  await using dir = await scratch();
  const paths = pathsOf({ TROUPE_STATE: dir.path });
  const usual = { host: '127.0.0.1', port: 7411, isExplicit: false };
  expect(portsToTry(usual, paths)).toEqual([7411, 0]);
  rememberPort(paths, 9123);
  expect(portsToTry(usual, paths)).toEqual([9123, 7411, 0]);
  expect(portsToTry({ ...usual, port: 0, isExplicit: true }, paths)).toEqual([9123, 0]);
  expect(portsToTry({ ...usual, port: 80, isExplicit: true }, paths)).toEqual([80]);
  expect(portsToTry(usual, pathsOf({ TROUPE_STATE: dir.path }, { instance: 'work' }))).toEqual([7411, 0]);
});

test('the owner’s token is made once, for all daemons there, and only its owner can read it', async () => {
  await using dir = await scratch();
  const paths = pathsOf({ TROUPE_STATE: join(dir.path, 'state') });
  const { http: settings } = (await http({})).config;
  const { tokens } = withOwnersToken(settings, paths);
  expect(tokens).toEqual({ _: expect.stringMatching(/^[\w-]{43}$/) });
  expect(withOwnersToken(settings, pathsOf({ TROUPE_STATE: paths.state }, { instance: 'b' })).tokens).toEqual(tokens);
  const file = join(paths.state, 'http-token');
  expect([statSync(file).mode & 0o777, readFileSync(file, 'utf8')]).toEqual([0o600, ownersToken({ tokens })]);
});

test('the owner’s token is never somebody else’s, and is made beside theirs; a configured one is taken as it is', async () => {
  await using dir = await scratch();
  const paths = pathsOf({ TROUPE_STATE: dir.path });
  const { http: settings } = (await http({ tokens: { alice: TOKEN } })).config;
  const beside = withOwnersToken(settings, paths);
  expect(beside.tokens).toEqual({ alice: TOKEN, _: expect.stringMatching(/^[\w-]{43}$/) });
  expect(ownersToken(settings)).toBeUndefined();
  expect(ownersToken(beside)).not.toBe(TOKEN);
  const configured = { ...settings, tokens: { _: TOKEN } };
  expect(withOwnersToken(configured, paths)).toBe(configured);
});

test('this machine, this house, and the world are told apart', () => {
  const hosts = [
    'localhost',
    'a.localhost',
    '127.8.8.8',
    '::1',
    '[::1]',
    '10.1.1.1',
    '172.20.0.1',
    'fd00::1',
    'example.com',
    '8.8.8.8',
    '127.0.0.1.evil.com',
  ];
  expect(hosts.filter(isLoopback)).toEqual(['localhost', 'a.localhost', '127.8.8.8', '::1', '[::1]']);
  expect(hosts.filter((host) => !isPrivate(host))).toEqual(['example.com', '8.8.8.8', '127.0.0.1.evil.com']);
});

test('env shows every address that can be had: without a bus the HTTP door, without both a reason', () => {
  const bus = { environment: () => ({ NATS_URL: 'nats://t@h' }) };
  const offline = {
    environment: () => {
      throw new Error('the bus is offline');
    },
  };
  const listening = { state: 'listening', url: 'http://127.0.0.1:1' } as const;
  const off = { state: 'off', url: null } as const;
  expect(environmentOf(bus, listening, 't')).toEqual({
    NATS_URL: 'nats://t@h',
    TROUPE_HTTP: listening.url,
    TROUPE_TOKEN: 't',
  });
  expect(environmentOf(bus, off, 't')).toEqual({ NATS_URL: 'nats://t@h' });
  expect(environmentOf(offline, listening)).toEqual({ TROUPE_HTTP: listening.url });
  expect(() => environmentOf(offline, off)).toThrow('the bus is offline');
});

async function load(troupe: object): Promise<Loaded> {
  await using dir = await scratch();
  const servers = { files: { command: 'x' }, web: { url: 'https://h' } };
  writeFileSync(join(dir.path, 'troupe.json'), JSON.stringify({ 'x-troupe': troupe, mcpServers: servers }));
  return loadConfig(join(dir.path, 'troupe.json'), { ALICE: TOKEN });
}

const http = async (settings: object) => good(await load({ http: settings }));

function good(loaded: Loaded) {
  if (!loaded.ok) throw new Error(loaded.complaints.map(formatComplaint).join('\n'));
  return loaded;
}

const said = (loaded: Loaded): string[] => (loaded.ok ? [] : loaded.complaints.map(({ message }) => message));
