// The reference server that has everything, three times behind one endpoint: over stdio, HTTP+SSE and Streamable HTTP.
// Whatever it offers works through each, under names that say which one is meant.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ResourceUpdatedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Daemon, daemon, ROOT } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/nats.ts';

const EVERYTHING = join(ROOT, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js');
const NAMES = ['pipe', 'old', 'new'] as const;

let d: Daemon;
let client: Client;
const remotes: ChildProcess[] = [];
const updates: string[] = [];

beforeAll(async () => {
  const [oldPort, newPort] = await Promise.all([remote('sse'), remote('streamableHttp')]);
  d = await daemon({
    servers: {
      pipe: { command: process.execPath, args: [EVERYTHING, 'stdio'] },
      old: { type: 'sse', url: `http://127.0.0.1:${oldPort}/sse` },
      new: { type: 'http', url: `http://127.0.0.1:${newPort}/mcp` },
    },
    troupe: { http: { address: '127.0.0.1:0' } },
  });
  await Promise.all(NAMES.map((name) => d.until(name, 'ready')));
  const { TROUPE_HTTP } = JSON.parse((await d.cli('env', '--json')).stdout);
  const capabilities = { sampling: {}, elicitation: {} };
  client = new Client({ name: 'test', version: '1.0.0' }, { capabilities });
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => void updates.push(params.uri));
  client.setRequestHandler(CreateMessageRequestSchema, ({ params }) => ({
    ...{ model: 'none', role: 'assistant' as const },
    content: { type: 'text' as const, text: `completed: ${JSON.stringify(params.messages)}` },
  }));
  client.setRequestHandler(ElicitRequestSchema, () => ({ action: 'accept', content: { name: 'Ada' } }));
  await client.connect(new StreamableHTTPClientTransport(new URL(`${TROUPE_HTTP}/mcp`)));
});
afterAll(async () => {
  await client?.close();
  await d?.[Symbol.asyncDispose]();
  for (const child of remotes) {
    const exit = once(child, 'exit');
    child.kill('SIGKILL');
    await exit;
  }
});

/** The reference server on a free port. */
async function remote(transport: string): Promise<number> {
  const port = await freePort();
  const env = { ...process.env, PORT: String(port) };
  remotes.push(spawn(process.execPath, [EVERYTHING, transport], { env, stdio: 'ignore' }));
  await eventually(async () => {
    const socket = connect(port, '127.0.0.1');
    await once(socket, 'connect').finally(() => socket.destroy());
  }, 20_000);
  return port;
}

const namesOf = (all: readonly { name: string }[], server: string) =>
  all.flatMap(({ name }) => (name.startsWith(`${server}__`) ? [name.slice(server.length + 2)] : [])).sort();

test('all three are listed, each with the same things under its own name', async () => {
  const { tools } = await client.listTools();
  const { prompts } = await client.listPrompts();
  const { resources } = await client.listResources();
  const { resourceTemplates } = await client.listResourceTemplates();
  expect(namesOf(tools, 'pipe')).toEqual(expect.arrayContaining(['echo', 'get-sum', 'trigger-sampling-request']));
  expect(namesOf(prompts, 'pipe')).toEqual(expect.arrayContaining(['simple-prompt', 'completable-prompt']));
  for (const name of NAMES) {
    expect(namesOf(tools, name), name).toEqual(namesOf(tools, 'pipe'));
    expect(namesOf(prompts, name), name).toEqual(namesOf(prompts, 'pipe'));
    const own = (uri: string) => uri.startsWith(`troupe+${name}:demo://`);
    expect(resources.filter(({ uri }) => own(uri)).length, name).toBe(resources.length / 3);
    const templates = resourceTemplates.filter(({ uriTemplate }) => own(uriTemplate));
    expect(templates.length, name).toBe(resourceTemplates.length / 3);
  }
  expect(resources.length).toBeGreaterThan(3);
});

describe.each(NAMES)('through %s', (name) => {
  const call = (tool: string, args = {}, options = {}) =>
    client.callTool({ name: `${name}__${tool}`, arguments: args }, undefined, options);
  const said = (result: any) => result.content.map((each: any) => each.text).join('\n');

  test('tools are called, and their progress comes back', async () => {
    expect(said(await call('get-sum', { a: 19, b: 23 }))).toContain('42');
    const steps: number[] = [];
    const onprogress = ({ progress }: { progress: number }) => void steps.push(progress);
    const done = await call('trigger-long-running-operation', { duration: 0.3, steps: 3 }, { onprogress });
    expect(said(done)).toContain('completed');
    expect(steps).toEqual([1, 2, 3]);
  });

  test('resources are read, prompts got, arguments completed', async () => {
    const uri = `troupe+${name}:demo://resource/dynamic/text/7`;
    const { contents } = await client.readResource({ uri });
    expect(JSON.stringify(contents)).toContain('Resource 7');
    const { messages } = await client.getPrompt({ name: `${name}__args-prompt`, arguments: { city: 'Oslo' } });
    expect(JSON.stringify(messages)).toContain('Oslo');
    const { completion } = await client.complete({
      ref: { type: 'ref/prompt', name: `${name}__completable-prompt` },
      argument: { name: 'name', value: 'A' },
      context: { arguments: { department: 'Engineering' } },
    });
    expect(completion.values).toEqual(['Alice']);
  });

  test('what it asks while it works is asked of the caller', async () => {
    const sampled = await call('trigger-sampling-request', { prompt: `from ${name}`, maxTokens: 10 });
    expect(said(sampled)).toContain(`from ${name}`);
    expect(said(await call('trigger-elicitation-request'))).toContain('Ada');
  });

  test('a subscription brings its updates, and only its own', async () => {
    const uri = `troupe+${name}:demo://resource/dynamic/text/1`;
    updates.length = 0;
    await client.subscribeResource({ uri });
    await call('toggle-subscriber-updates');
    await eventually(() => expect(updates).toContain(uri));
    await call('toggle-subscriber-updates');
    await client.unsubscribeResource({ uri });
    expect(new Set(updates)).toEqual(new Set([uri]));
  });
});
