// The MCP Inspector's command line, which people reach for first, against the endpoint of all servers and of one.

import { execa } from 'execa';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { type Daemon, daemon, fixture } from '../support/daemon.ts';
import { type Scratch, scratch } from '../support/scratch.ts';
import { toolPath } from '../support/tools.mjs';

let d: Daemon;
let home: Scratch;
let address: string;

beforeAll(async () => {
  home = await scratch();
  d = await daemon({
    servers: { echo: fixture('echo'), memo: fixture('resources') },
    troupe: { http: { address: '127.0.0.1:0' } },
  });
  await d.until('memo', 'ready');
  address = JSON.parse((await d.cli('env', '--json')).stdout).TROUPE_HTTP;
});
afterAll(async () => {
  await d?.[Symbol.asyncDispose]();
  await home?.[Symbol.asyncDispose]();
});

/** What the Inspector prints for a method, and its exit code. */
async function inspect(path: string, transport: string | undefined, ...words: string[]) {
  const [node, script] = await Promise.all([toolPath('node'), toolPath('inspector')]);
  const env = { PATH: process.env.PATH ?? '', HOME: home.path };
  const options = { env, extendEnv: false, reject: false, stdin: 'ignore', timeout: 30_000 } as const;
  const target = ['--cli', `${address}${path}`, ...(transport ? ['--transport', transport] : []), '--method'];
  const { exitCode, stdout, stderr } = await execa(node, [script, ...target, ...words], options);
  expect(exitCode, `${words.join(' ')}: ${stderr}`).toBe(0);
  return JSON.parse(stdout);
}

// Each word to the Inspector is a process of a second or two.
vi.setConfig({ testTimeout: 120_000 });

test('lists and calls the tools of all servers', async () => {
  const { tools } = await inspect('/mcp', 'http', 'tools/list');
  const names = tools.map(({ name }: { name: string }) => name);
  expect(names).toEqual(expect.arrayContaining(['echo__echo', 'memo__echo', 'memo__touch']));
  const words = ['tools/call', '--tool-name', 'echo__echo', '--tool-arg', 'message=hello'];
  expect((await inspect('/mcp', 'http', ...words)).content).toEqual([{ type: 'text', text: 'hello' }]);
});

test('lists and reads resources, gets prompts and sets the log level', async () => {
  const { resources } = await inspect('/mcp', 'http', 'resources/list');
  expect(resources.map(({ uri }: { uri: string }) => uri)).toEqual(['memo://a', 'memo://b']);
  const { contents } = await inspect('/mcp', 'http', 'resources/read', '--uri', 'memo://a');
  expect(contents[0].text).toBe('the memo memo://a');
  const templates = await inspect('/mcp', 'http', 'resources/templates/list');
  expect(templates.resourceTemplates).toHaveLength(1);
  const greeting = ['prompts/get', '--prompt-name', 'memo__greet', '--prompt-args', 'who=Bo'];
  expect((await inspect('/mcp', 'http', ...greeting)).messages[0].content.text).toBe('Greet Bo.');
  expect(await inspect('/mcp', 'http', 'logging/setLevel', '--log-level', 'warning')).toEqual({});
});

test('sees one server with its own names at its own endpoint, also over HTTP+SSE', async () => {
  for (const [path, transport] of [
    ['/mcp/memo', 'http'],
    ['/sse/memo', 'sse'],
    ['/memo/mcp', undefined], // it guesses the transport from the end of the address
  ] as const) {
    const { tools } = await inspect(path, transport, 'tools/list');
    expect(tools.map(({ name }: { name: string }) => name)).toContain('touch');
    const { contents } = await inspect(path, transport, 'resources/read', '--uri', 'memo://a');
    expect(contents[0].text).toBe('the memo memo://a');
  }
});
