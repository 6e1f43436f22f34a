// Servers behind an address: every way in which hosts write them, what they become, and what is said when they are wrong.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { formatComplaint } from '../../src/config/complaints.ts';
import { difference } from '../../src/config/difference.ts';
import { addServer } from '../../src/config/file/edit.ts';
import { type Loaded, loadConfig } from '../../src/config/load.ts';
import { scratch } from '../support/scratch.ts';

const KEY = '-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\n';
const ENV = { TOKEN: 'hunter2hunter2hunter2', HOST: 'mcp.example.com' };

test.each([
  ['a url alone', { url: 'https://h/mcp' }, 'http'],
  ['http', { type: 'http', url: 'https://h/mcp' }, 'http'],
  ['streamable-http', { type: 'streamable-http', url: 'https://h/mcp' }, 'http'],
  ['streamableHttp', { type: 'streamableHttp', url: 'https://h/mcp' }, 'http'],
  ['sse', { type: 'sse', url: 'https://h/mcp' }, 'sse'],
  ['ws', { type: 'ws', url: 'wss://h/mcp' }, 'ws'],
  ['websocket', { type: 'websocket', url: 'wss://h/mcp' }, 'ws'],
  ['a socket by its address', { url: 'wss://h/mcp' }, 'ws'],
  ['serverUrl of Windsurf', { serverUrl: 'https://h/mcp' }, 'http'],
  ['httpUrl of Gemini', { httpUrl: 'https://h/mcp' }, 'http'],
] as const)('%s is understood', async (_, definition, transport) => {
  const { config, warnings } = good(await load({ a: definition }));
  expect(config.servers[0]).toMatchObject({
    transport,
    name: 'a',
    url: expect.stringMatching(/^(https|wss):..h.mcp$/),
  });
  expect(warnings).toEqual([]);
});

test('a server behind an address has every default, and what only a process needs does no harm', async () => {
  const { config } = good(await load({ a: { url: 'https://h', 'x-troupe': { idleStopMs: '1m', env: 'inherit' } } }));
  expect(config.servers[0]).toEqual({
    ...{ transport: 'http', name: 'a', url: 'https://h/', headers: {} },
    oauth: { grant: 'authorization_code', redirectPort: 0 },
    settings: expect.objectContaining({ timeoutMs: 60_000, idleStopMs: 60_000, env: 'inherit', enabled: true }),
  });
  expect(config.servers[0]?.settings).not.toHaveProperty('oauth');
});

test('variables are expanded in the address, the headers and the credentials', async () => {
  const { config } = good(
    await load({
      a: {
        url: `https://\${HOST}/mcp?k=\${TOKEN}`,
        headers: { Authorization: `Bearer \${TOKEN}`, 'X-Team': ' one ' },
        'x-troupe': {
          oauth: { grant: 'client_credentials', clientId: 'me', clientSecret: `\${TOKEN}`, scopes: ['a', 'b:c'] },
        },
      },
    }),
  );
  expect(config.servers[0]).toMatchObject({
    url: `https://mcp.example.com/mcp?k=${ENV.TOKEN}`,
    headers: { Authorization: `Bearer ${ENV.TOKEN}`, 'X-Team': 'one' },
    oauth: { grant: 'client_credentials', clientId: 'me', clientSecret: ENV.TOKEN, scopes: ['a', 'b:c'] },
  });
});

test('a private key may be a file beside the configuration', async () => {
  const definition = (privateKeyFile: string) => ({
    url: 'https://h',
    'x-troupe': { oauth: { grant: 'client_credentials', clientId: 'me', privateKeyFile, algorithm: 'ES256' } },
  });
  const { config } = good(await load({ a: definition('key.pem') }, { 'key.pem': KEY }));
  expect(config.servers[0]).toMatchObject({ oauth: { privateKey: KEY, algorithm: 'ES256' } });
  expect(config.servers[0]).not.toHaveProperty('oauth.privateKeyFile');
  expect(said(await load({ a: definition('none.pem') }))).toEqual([
    'server "a": x-troupe.oauth.privateKeyFile cannot be read; correct the path or its permissions',
  ]);
});

const oauth = (settings: object) => ({ url: 'https://h', 'x-troupe': { oauth: settings } });

test.each<[string, object, string[]]>([
  [
    'no address',
    { url: 'example.com' },
    ['url must be an address such as "https://example.com/mcp" or "wss://example.com/mcp"'],
  ],
  ['another scheme', { url: 'file:///etc/passwd' }, [expect.stringContaining('url must be an address')]],
  [
    'a password in the address',
    { serverUrl: 'https://me:hunter2@h/' },
    ['serverUrl must not hold a user or a password; put them into headers, or use `troupe login a`'],
  ],
  ['an address that is no text', { httpUrl: 7 }, ['httpUrl must be a text, not a number; write it in double quotes']],
  ['a type without an address', { type: 'http' }, ['url is missing']],
  [
    'a socket that is called http',
    { type: 'http', url: 'ws://h' },
    ['url must begin with http:// or https:// because of its type'],
  ],
  [
    'http that is called a socket',
    { type: 'ws', url: 'http://h' },
    ['url must begin with ws:// or wss:// because of its type'],
  ],
  [
    'a variable that is not set',
    { url: `https://\${NOBODY}/`, headers: { A: `\${NOTHING}` }, 'x-troupe': { oauth: { issuer: `\${NO}` } } },
    [
      expect.stringContaining(`url uses \${NOBODY}`),
      expect.stringContaining(`headers.A uses \${NOTHING}`),
      expect.stringContaining(`issuer uses \${NO}`),
    ],
  ],
  [
    'headers that are none',
    { url: 'https://h', headers: { 'a b': 'x', X: 'one\r\nEvil: two', Y: 1 } },
    [
      'headers["a b"] is not a name that a header can have',
      'headers.X must be one line of plain characters',
      'headers.Y must be a text, not a number; write it in double quotes',
    ],
  ],
  [
    'a machine without a name',
    oauth({ grant: 'client_credentials', clientSecret: 'x' }),
    ['x-troupe.oauth.clientId is missing; the grant client_credentials needs it'],
  ],
  [
    'a machine without a proof',
    oauth({ grant: 'client_credentials', clientId: 'x' }),
    [expect.stringContaining('x-troupe.oauth.clientSecret is missing')],
  ],
  [
    'an issuer in the open',
    oauth({ issuer: 'http://login.example.com' }),
    [expect.stringContaining('x-troupe.oauth.issuer must be an https address')],
  ],
  [
    'a client document in the open',
    oauth({ clientMetadataUrl: 'http://h/c.json' }),
    [expect.stringContaining('clientMetadataUrl must be an https address')],
  ],
  [
    'a key that is none',
    oauth({ privateKey: 'hunter2' }),
    ['x-troupe.oauth.privateKey must be a private key in PEM form'],
  ],
  [
    'a setting that does not exist',
    oauth({ clientID: 'x' }),
    ['x-troupe.oauth.clientID is not a setting; did you mean "clientId"?'],
  ],
])('%s is refused with the remedy', async (_, definition, complaints) => {
  const loaded = await load({ a: definition });
  expect(said(loaded).map((message) => message.replace('server "a": ', ''))).toEqual(complaints);
  expect(JSON.stringify(loaded)).not.toContain('hunter2');
});

test('an address in the open is warned of, but not one of this house', async () => {
  const urls = [
    'http://example.com',
    'ws://8.8.8.8',
    'http://localhost:1',
    'http://[::1]:1',
    'http://192.168.1.2',
    'http://10.0.0.1',
  ];
  const { warnings } = good(await load(Object.fromEntries(urls.map((url, index) => [`s${index}`, { url }]))));
  expect(warnings.map(({ message }) => message)).toEqual([
    'server "s0": url is not encrypted, so that anybody on the way can read what is sent; use https',
    'server "s1": url is not encrypted, so that anybody on the way can read what is sent; use wss',
  ]);
});

test('headers that say how a message travels are ours', async () => {
  const { config, warnings } = good(
    await load({ a: { url: 'https://h', headers: { Accept: '*/*', 'mcp-session-id': 'x', 'X-Api-Key': 'k' } } }),
  );
  expect(config.servers[0]).toMatchObject({ headers: { 'X-Api-Key': 'k' } });
  expect(warnings.map(({ message }) => message)).toEqual([
    'server "a": headers.Accept is left out: troupe sets it itself',
    'server "a": headers.mcp-session-id is left out: troupe sets it itself',
  ]);
});

test('another address or another header needs a new session, another timeout does not', async () => {
  const servers = {
    url: { url: 'https://h' },
    header: { url: 'https://h' },
    kind: { command: 'x' },
    slow: { url: 'https://h' },
  };
  const before = good(await load(servers)).config;
  const after = good(
    await load({
      url: { url: 'https://other' },
      header: { url: 'https://h', headers: { A: 'b' } },
      kind: { url: 'https://h' },
      slow: { url: 'https://h', 'x-troupe': { timeoutMs: '5s' } },
    }),
  ).config;
  const { relaunched, retuned } = difference(before, after);
  expect(relaunched.map(({ name }) => name)).toEqual(['url', 'header', 'kind']);
  expect(retuned.map(({ name }) => name)).toEqual(['slow']);
});

test('one can be added to the file, and a wrong one cannot', async () => {
  await using dir = await scratch();
  const path = join(dir.path, 'troupe.json');
  addServer(path, 'web', { type: 'http', url: 'https://h/mcp', headers: { A: `\${TOKEN}` } });
  addServer(path, 'later', { url: `\${URL}` });
  expect(good(loadConfig(path, { ...ENV, URL: 'ws://localhost' })).config.servers).toMatchObject([
    { transport: 'http', headers: { A: ENV.TOKEN } },
    { transport: 'ws', url: 'ws://localhost/' },
  ]);
  expect(() => addServer(path, 'open', { url: 'https://me:hunter2@h' })).toThrow(/must not hold a user or a password/);
  expect(() => addServer(path, 'odd', { type: 'carrier-pigeon', url: 'https://h' })).toThrow(/type must be one of/);
});

async function load(servers: object, files: Record<string, string> = {}): Promise<Loaded> {
  await using dir = await scratch();
  for (const [name, text] of Object.entries(files)) writeFileSync(join(dir.path, name), text);
  const path = join(dir.path, 'troupe.json');
  writeFileSync(path, JSON.stringify({ mcpServers: servers }, undefined, 1));
  return loadConfig(path, ENV);
}

function good(loaded: Loaded) {
  if (!loaded.ok) throw new Error(loaded.complaints.map(formatComplaint).join('\n'));
  return loaded;
}

const said = (loaded: Loaded): string[] => (loaded.ok ? [] : loaded.complaints.map(({ message }) => message));
