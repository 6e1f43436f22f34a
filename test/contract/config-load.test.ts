// A correct file: comments and commas, variables, what is skipped or warned of, and the configuration without a file.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { defaultConfig } from '../../src/config/defaults.ts';
import { difference } from '../../src/config/difference.ts';
import { type Loaded, loadConfig } from '../../src/config/load.ts';
import { pathsOf } from '../../src/config/paths.ts';
import type { Config } from '../../src/config/schema.ts';
import { scratch } from '../support/scratch.ts';

test('a file may have a byte order mark, comments, trailing commas and Windows line ends', async () => {
  const { config } = await good('\uFEFF{ // mine\r\n"mcpServers": { /* one */ "a": {"command": "x",},\r\n},}');
  expect(config.servers.map(({ name }) => name)).toEqual(['a']);
});

test('variables are expanded in command, arguments, environment and folder, once', async () => {
  const env = { BIN: 'node', EMPTY: '', TRICK: `\${BIN}`, HOME: '/home/me', KEY: 'k' };
  const { config } = await good(
    `{"mcpServers": {"a": {
      "command": "\${BIN}",
      "args": ["\${NONE:-fallback}", "\${EMPTY:-fallback}", "\${EMPTY}", "\${NONE:-}", "\${TRICK}", "--a=\${BIN},\${BIN}"],
      "env": {"K": "\${env:KEY}", "D": "\${env:NONE:-d}"},
      "cwd": "\${HERE:-.}"
    }}}`,
    env,
  );
  const [a] = config.servers;
  expect(a).toMatchObject({
    command: 'node',
    args: ['fallback', 'fallback', '', '', `\${BIN}`, '--a=node,node'],
    env: { K: 'k', D: 'd' },
  });
});

test('what a shell would expand is left to the shell', async () => {
  const { config } = await good(
    `{"mcpServers": {"a": {"command": "sh", "args": ["-c", "$HOME $1 \${1} \${A%b} $(x)"]}}}`,
  );
  expect(config.servers[0]).toMatchObject({ args: ['-c', `$HOME $1 \${1} \${A%b} $(x)`] });
});

test('every unset variable is named with its server and its key, inherited names included', async () => {
  const loaded = await load(`{"mcpServers": {"a": {"command": "\${BIN}", "args": ["\${ONE}\${TWO}"],
"env": {"K": "\${env:THREE}"},
"cwd": "\${constructor}"}}}`);
  const remedy = (name: string) => `which is not set; set it in the daemon's environment or write \${${name}:-default}`;
  expect(saidBy(loaded)).toEqual([
    `1:34 server "a": command uses \${BIN}, ${remedy('BIN')}`,
    `1:53 server "a": args[0] uses \${ONE}, ${remedy('ONE')}`,
    `1:53 server "a": args[0] uses \${TWO}, ${remedy('TWO')}`,
    `2:14 server "a": env.K uses \${THREE}, ${remedy('THREE')}`,
    `3:8 server "a": cwd uses \${constructor}, ${remedy('constructor')}`,
  ]);
});

test('forms that only an editor understands are refused', async () => {
  const loaded = await load(`{"mcpServers": {"a": {"command": "\${A:-\${B}}",\n"env": {"K": "\${input:key}"}}}}`);
  expect(saidBy(loaded)).toEqual([
    `1:34 server "a": command gives \${A} a default that holds another variable, which cannot be expanded`,
    `2:14 server "a": env.K uses \${input:key}, which only VS Code can ask for; use a variable such as \${TOKEN} instead`,
  ]);
});

test('a folder is taken relative to the file', async () => {
  await using dir = await scratch();
  mkdirSync(join(dir.path, 'work'));
  const path = join(dir.path, 'troupe.json');
  writeFileSync(path, '{"mcpServers": {"a": {"command": "x", "cwd": "work"}}}');
  const loaded = loadConfig(path, {});
  expect(loaded).toMatchObject({ ok: true, config: { path, servers: [{ cwd: join(dir.path, 'work') }] } });
});

test('what belongs to other hosts is kept and warned of', async () => {
  const { config, warnings } = await good(`{
"$schema": "./troupe.schema.json",
"servers": {},
"mcpServers": {
  "remote": { "url": "https://example.com/mcp", "timeout": 5 },
  "local": { "type": "stdio", "command": "x", "url": "ignored", "autoApprove": [], "argz": [] }
}}`);
  expect(config.servers.map(({ name }) => name)).toEqual(['remote', 'local']);
  expect(warnings.map(({ line, column, message }) => `${line}:${column} ${message}`)).toEqual([
    '3:1 servers is kept, but troupe does not use it; did you mean "mcpServers"?',
    '5:49 server "remote": timeout is kept, but troupe does not use it',
    '6:47 server "local": url is kept, but troupe does not use it',
    '6:65 server "local": autoApprove is kept, but troupe does not use it',
    '6:84 server "local": argz is kept, but troupe does not use it; did you mean "args"?',
  ]);
});

test('the settings of troupe itself are read', async () => {
  const { config } = await good(
    `{"x-troupe": {
      "plugins": { "redact": { "keys": ["token"], "required": true }, "metrics": {} },
      "requests": "actor", "logLevel": "debug",
      "nats": { "url": "nats://\${PASSWORD}@127.0.0.1:4222, tls://other", "subject": "team.troupe", "maxPayloadBytes": "1MB" }
    }}`,
    { PASSWORD: 'p' },
  );
  expect(config).toMatchObject({
    servers: [],
    plugins: [
      { name: 'redact', options: { keys: ['token'] }, required: true },
      { name: 'metrics', options: {}, required: false },
    ],
    requests: 'actor',
    logLevel: 'debug',
    nats: { url: 'nats://p@127.0.0.1:4222, tls://other', subject: 'team.troupe', maxPayloadBytes: 1024 ** 2 },
  });
});

test('without a file there are three servers, and their files lie in the state directory', () => {
  const config = defaultConfig(pathsOf({ TROUPE_STATE: '/s' }));
  expect(config).toMatchObject({ path: undefined, requests: 'table', nats: { subject: 'troupe' }, logLevel: 'info' });
  expect(config.servers.map(({ name, command, args, env }) => [name, command, args.join(' '), env])).toEqual([
    ['everything', 'npx', '-y @modelcontextprotocol/server-everything stdio', {}],
    ['filesystem', 'npx', '-y @modelcontextprotocol/server-filesystem /s/files', {}],
    ['memory', 'npx', '-y @modelcontextprotocol/server-memory', { MEMORY_FILE_PATH: '/s/memory.jsonl' }],
  ]);
});

test('a difference tells what comes, what goes, what needs a new process and what only new settings', async () => {
  const read = async (servers: object): Promise<Config> => (await good(JSON.stringify({ mcpServers: servers }))).config;
  const same = { command: 'x', env: { A: '1', B: '2' } };
  const before = await read({
    same,
    gone: { command: 'x' },
    args: { command: 'x' },
    env: { command: 'x', env: { A: '1' } },
    inherits: { command: 'x' },
    frames: { command: 'x' },
    off: { command: 'x' },
    slower: { command: 'x' },
    both: { command: 'x' },
  });
  const after = await read({
    args: { command: 'x', args: ['-v'] },
    env: { command: 'x', env: { A: '2' } },
    inherits: { command: 'x', 'x-troupe': { env: 'inherit' } },
    frames: { command: 'x', 'x-troupe': { maxFrameBytes: '1MB' } },
    off: { command: 'x', disabled: true },
    slower: { command: 'x', 'x-troupe': { timeoutMs: '2m', tools: { deny: ['*'] } } },
    both: { command: 'y', 'x-troupe': { timeoutMs: '2m' } },
    fresh: { command: 'x' },
    same: { command: 'x', env: { B: '2', A: '1' } },
  });
  const names = (servers: { name: string }[]) => servers.map(({ name }) => name);
  const { added, removed, relaunched, retuned } = difference(before, after);
  expect([names(added), removed, names(retuned)]).toEqual([['fresh'], ['gone'], ['slower']]);
  expect(names(relaunched)).toEqual(['args', 'env', 'inherits', 'frames', 'off', 'both']);
  expect(difference(after, after)).toEqual({ added: [], removed: [], relaunched: [], retuned: [] });
});

async function load(text: string, env: NodeJS.ProcessEnv = {}): Promise<Loaded> {
  await using dir = await scratch();
  writeFileSync(join(dir.path, 'troupe.json'), text);
  return loadConfig(join(dir.path, 'troupe.json'), env);
}

async function good(text: string, env: NodeJS.ProcessEnv = {}) {
  const loaded = await load(text, env);
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.complaints));
  return loaded;
}

function saidBy(loaded: Loaded): string[] {
  return loaded.ok ? [] : loaded.complaints.map(({ line, column, message }) => `${line}:${column} ${message}`);
}
