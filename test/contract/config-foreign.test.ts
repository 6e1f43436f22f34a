// Servers of other hosts, each host with its own files and its own form.

import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { addServer } from '../../src/config/file/edit.ts';
import { type Machine, readForeign } from '../../src/config/hosts/foreign.ts';
import { loadConfig } from '../../src/config/load.ts';
import { type Scratch, scratch } from '../support/scratch.ts';

let dir: Scratch;
let host: Machine;

beforeEach(async () => {
  dir = await scratch();
  host = { home: join(dir.path, 'home'), cwd: join(dir.path, 'project'), platform: 'linux', env: {} };
  mkdirSync(host.cwd);
});
afterEach(() => dir[Symbol.asyncDispose]());

test('Claude Desktop is found on every platform', () => {
  const text = '{"mcpServers": {"files": {"command": "npx", "args": ["-y", "files"]}}}';
  const places: [NodeJS.Platform, string][] = [
    ['linux', '.config/Claude/claude_desktop_config.json'],
    ['darwin', 'Library/Application Support/Claude/claude_desktop_config.json'],
    ['win32', 'AppData/Roaming/Claude/claude_desktop_config.json'],
  ];
  for (const [platform, path] of places) {
    const file = put(join('home', path), text);
    expect(readForeign('claude', { ...host, platform })).toEqual({
      from: [file],
      servers: [{ name: 'files', definition: { command: 'npx', args: ['-y', 'files'] }, notes: [] }],
      skipped: [],
    });
  }
});

test('Claude Code: what was set for the project counts most, then its file, then what the user set', () => {
  const one = (command: string) => ({ type: 'stdio', command });
  const claude = put(
    'home/.claude.json',
    JSON.stringify({
      numStartups: 7,
      mcpServers: { a: one('user'), b: one('user'), c: one('user') },
      projects: {
        [host.cwd]: { mcpServers: { a: one('local') }, disabledMcpjsonServers: ['b'] },
        '/elsewhere': { mcpServers: { z: one('other') } },
      },
    }),
  );
  const shared = put('project/.mcp.json', JSON.stringify({ mcpServers: { a: one('project'), b: one('project') } }));
  const { from, servers, skipped } = readForeign('claude', host);
  expect(from).toEqual([claude, shared]);
  expect(servers.map(({ name, definition }) => [name, definition])).toEqual([
    ['a', { command: 'local', cwd: host.cwd }],
    ['b', { command: 'project', cwd: host.cwd, disabled: true }],
    ['c', { command: 'user' }],
  ]);
  expect(servers[0]?.notes).toEqual([`runs in ${host.cwd}, the folder of its project`]);
  expect(skipped).toEqual([
    { name: 'a', why: 'another server called "a" was found first' },
    { name: 'a', why: 'another server called "a" was found first' },
    { name: 'b', why: 'another server called "b" was found first' },
  ]);
});

test('VS Code: its own root key, its variables, its questions, its user profile', () => {
  const workspace = put(
    'project/.vscode/mcp.json',
    `{
      // comments are fine
      "inputs": [{ "type": "promptString", "id": "api-key", "password": true }],
      "servers": {
        "Git Hub": {
          "type": "stdio", "command": "\${workspaceFolder}/bin/run",
          "args": ["\${userHome}\${/}x", "\${env:TOKEN}", "\${input:api-key}", "\${workspaceFolderBasename}"],
          "env": { "PORT": 80, "NONE": null, "KEY": "\${input:api-key}" },
          "envFile": "\${workspaceFolder}/.env", "dev": {}, "cwd": "sub",
        },
        "web": { "type": "http", "url": "https://example.com/mcp", "headers": { "X-Key": "\${input:api-key}", "N": 1 } },
      },
    }`,
  );
  const user = put('home/.config/Code/User/mcp.json', '{"servers": {"mine": {"command": "x"}}}');
  expect(readForeign('vscode', host)).toEqual({
    from: [workspace, user],
    servers: [
      {
        name: 'git-hub',
        definition: {
          command: `${host.cwd}/bin/run`,
          args: [`${host.home}/x`, `\${TOKEN}`, `\${API_KEY}`, 'project'],
          env: { PORT: '80', KEY: `\${API_KEY}` },
          cwd: join(host.cwd, 'sub'),
        },
        notes: [
          'renamed from "Git Hub"',
          'its host asks for "api-key"; set API_KEY in the daemon\'s environment instead',
          'env.NONE was null and is left out',
          '"envFile" is not read; put its variables into env',
          '"dev" has no meaning here and is left out',
        ],
      },
      {
        name: 'web',
        definition: { type: 'http', url: 'https://example.com/mcp', headers: { 'X-Key': `\${API_KEY}`, N: '1' } },
        notes: ['its host asks for "api-key"; set API_KEY in the daemon\'s environment instead'],
      },
      { name: 'mine', definition: { command: 'x' }, notes: [] },
    ],
    skipped: [],
  });
});

test('Cursor: the file of the project before the file of the user', () => {
  const project = put('project/.cursor/mcp.json', `{"mcpServers": {"a": {"command": "x", "env": {"K": "\${env:K}"}}}}`);
  const user = put('home/.cursor/mcp.json', '{"mcpServers": {"b": {"command": "y", "disabled": true}}}');
  const { from, servers } = readForeign('cursor', host);
  expect(from).toEqual([project, user]);
  expect(servers.map(({ definition }) => definition)).toEqual([
    { command: 'x', env: { K: `\${K}` }, cwd: host.cwd },
    { command: 'y', disabled: true },
  ]);
});

test('a file that is named may have any of the forms', () => {
  const forms: [string, string][] = [
    ['home/.codeium/windsurf/mcp_config.json', '{"mcpServers": {"a": {"command": "x"}, "r": {"serverUrl": "u"}}}'],
    [
      'zed/settings.json',
      '{"context_servers": {"a": {"source": "custom", "enabled": true, "command": "x"}, "r": {"url": "u"}}}',
    ],
    [
      'zed/old.json',
      '{"context_servers": {"a": {"command": {"path": "x"}}, "r": {"source": "extension", "settings": {}}}}',
    ],
    ['settings.json', '{"mcp": {"servers": {"a": {"command": "x"}, "r": {"type": "sse", "url": "u"}}}}'],
    ['home/.cursor/mcp.json', '{"mcpServers": {"a": {"command": "x"}, "r": {"httpUrl": "u"}}}'],
  ];
  for (const [path, text] of forms) {
    const { servers, skipped } = readForeign(put(path, text), host);
    expect(servers, path).toEqual([{ name: 'a', definition: { command: 'x' }, notes: [] }]);
    expect(
      skipped.map(({ name }) => name),
      path,
    ).toEqual(['r']);
  }
  const zed = put(
    'zed/off.json',
    '{"context_servers": {"a": {"enabled": false, "command": {"path": "x", "args": ["-v"]}}}}',
  );
  expect(readForeign(zed, host).servers[0]?.definition).toEqual({ command: 'x', args: ['-v'], disabled: true });
});

test('a server behind an address is taken over, with the client that was registered for it', () => {
  put(
    'home/.claude.json',
    JSON.stringify({
      mcpServers: {
        http: { type: 'http', url: 'https://h/mcp', oauth: { clientId: 'c', callbackPort: 8080 }, headersHelper: 'x' },
        cursor: { url: 'https://h/c', auth: { CLIENT_ID: `\${env:ID}`, CLIENT_SECRET: 's', scopes: ['a'] } },
        windsurf: { serverUrl: 'https://h/w', disabled: true },
        gemini: { httpUrl: 'https://h/g' },
        socket: { type: 'websocket', url: 'wss://h/s' },
        open: { url: 'https://me:hunter2@h/mcp' },
        ftp: { url: 'ftp://h/x' },
      },
    }),
  );
  const { servers, skipped } = readForeign('claude', host);
  expect(servers.map(({ name, definition }) => [name, definition])).toEqual([
    ['http', { type: 'http', url: 'https://h/mcp', 'x-troupe': { oauth: { clientId: 'c', redirectPort: 8080 } } }],
    ['cursor', { url: 'https://h/c', 'x-troupe': { oauth: { clientId: `\${ID}`, clientSecret: 's', scopes: ['a'] } } }],
    ['windsurf', { url: 'https://h/w', disabled: true }],
    ['gemini', { url: 'https://h/g' }],
    ['socket', { type: 'websocket', url: 'wss://h/s' }],
  ]);
  expect(servers[0]?.notes).toEqual(['"headersHelper" is not run; put what it prints into headers']);
  expect(skipped.map(({ name, why }) => `${name}: ${why}`)).toEqual([
    'open: url must not hold a user or a password; put them into headers, or use `troupe login <server>`',
    'ftp: url must be an address such as "https://example.com/mcp" or "wss://example.com/mcp"',
  ]);
});

test('what cannot run is skipped with the reason, and a broken file of a host does not hide the others', () => {
  const broken = put('project/.mcp.json', '{"mcpServers": ');
  put(
    'home/.claude.json',
    '{"mcpServers": {"a": {}, "b": {"command": "x", "args": "y"}, "c": 7, "d": {"command": "x"}}}',
  );
  const { servers, skipped } = readForeign('claude', host);
  expect(servers.map(({ name }) => name)).toEqual(['d']);
  expect(skipped).toEqual([
    { name: broken, why: expect.stringMatching(/\.mcp\.json:1:\d+: a value is expected here/) },
    { name: 'a', why: 'it has no command' },
    { name: 'b', why: 'args must be a list, not a text' },
    { name: 'c', why: 'its definition is not an object' },
  ]);
  expect(() => readForeign(broken, host)).toThrow(/It cannot be read: .*\.mcp\.json:1:/);
  expect(() => readForeign('nowhere.json', host)).toThrow(
    /there is no file .*nowhere\.json; import knows claude, cursor, vscode, or a file/,
  );
  expect(readForeign('cursor', host)).toEqual({ from: [], servers: [], skipped: [] });
});

test('what was read can be added to our file and loaded', () => {
  put('project/.mcp.json', `{"mcpServers": {"My Server": {"command": "node", "args": ["\${env:SCRIPT}"]}}}`);
  const path = join(dir.path, 'troupe.json');
  for (const { name, definition } of readForeign('claude', host).servers) addServer(path, name, definition);
  expect(loadConfig(path, { SCRIPT: 's.js' })).toMatchObject({
    ok: true,
    config: { servers: [{ name: 'my-server', command: 'node', args: ['s.js'], cwd: host.cwd }] },
    warnings: [],
  });
});

function put(path: string, text: string): string {
  const file = join(dir.path, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
  return file;
}
