// Many servers behind one endpoint: a host gets its answer at once whatever the servers are doing, sees each of them under
// names that tell them apart, and is told when there is more to see.

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Daemon, daemon, fixture } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { type RawHost, rawHost } from '../support/host.ts';

let d: Daemon;
let url: string;
let h: RawHost;
const HTTP = {
  http: { address: '127.0.0.1:0' },
  profiles: { small: { servers: ['echo', 'things'], tools: { deny: ['*__raw'] } } },
};
/** Opens when the test says so: its home is the daemon's own directory. */
const waits = 'until [ -e "$HOME/go" ]; do sleep 0.02; done; exec "$0" "$1"';
const late = { command: 'sh', args: ['-c', waits, process.execPath, String(fixture('echo').args[0])] };
const servers = {
  echo: fixture('echo'),
  things: fixture('resources'),
  twin: fixture('resources'),
  slow: late,
  broken: fixture('dies-at-start', { restart: { intensity: 0 } }),
};

beforeAll(async () => {
  d = await daemon({ servers, troupe: HTTP, settle: false });
  for (const name of ['echo', 'things', 'twin']) await d.until(name, 'ready');
  await d.until('broken', 'failed');
  url = await d.http();
  h = await rawHost(`${url}/mcp`);
}, 60_000);
afterAll(async () => {
  await h.close();
  await d[Symbol.asyncDispose]();
});

const names = async (host: RawHost, method: string, key: string): Promise<string[]> => {
  const member = { 'tools/list': 'tools', 'prompts/list': 'prompts', 'resources/list': 'resources' }[method] as string;
  return (await host.ask(method)).result[member].map((each: Record<string, string>) => each[key]);
};

it('answers initialize at once with the union of what the servers can do, while one of them is still opening', async () => {
  const host = await rawHost(`${url}/mcp`, { version: '2025-06-18' });
  expect(host.opened).toMatchObject({
    protocolVersion: '2025-06-18',
    serverInfo: { name: 'troupe' },
    capabilities: {
      tools: { listChanged: true },
      resources: { subscribe: true },
      prompts: {},
      completions: {},
      logging: {},
    },
  });
  expect((await d.server('slow')).state).toBe('opening');
  await host.close();
});

it('shows every server under its own names, in the order of the configuration, and none that has failed', async () => {
  const tools = await names(h, 'tools/list', 'name');
  expect(tools.slice(0, 2).every((name) => name.startsWith('echo__'))).toBe(true);
  expect(tools.filter((name) => name.endsWith('__touch'))).toEqual(['things__touch', 'twin__touch']);
  expect(tools.some((name) => name.startsWith('broken') || name.startsWith('slow'))).toBe(false);
  expect(await names(h, 'tools/list', 'name')).toEqual(tools);
});

it('says when a slow server has come, and shows its tools then', async () => {
  const standing = await h.get();
  const changed = (async () => {
    for await (const { message } of standing.events)
      if (message.method === 'notifications/tools/list_changed') return true;
    return false;
  })();
  await writeFile(join(d.dir, 'go'), '');
  expect(await changed).toBe(true);
  standing.leave();
  expect(await names(h, 'tools/list', 'name')).toContain('slow__echo');
});

it('takes a call to the server that its name says, and gives the server its own name and the caller’s own bytes', async () => {
  const body =
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{"big":9007199254740993,"a":{ "b" : 1.0 }},"name":"echo__raw"}}';
  const response = await fetch(`${url}/mcp`, {
    ...{ method: 'POST', body },
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-session-id': h.session,
    },
  });
  expect(await response.text()).toContain('"structuredContent":{"big":9007199254740993,"a":{ "b" : 1.0 }}');
});

it('routes prompts, resources, templates and completions, and tells two servers’ equal URIs apart', async () => {
  expect(await names(h, 'prompts/list', 'name')).toEqual(['things__greet', 'twin__greet']);
  const greeting = await h.ask('prompts/get', { name: 'twin__greet', arguments: { who: 'you' } });
  expect(greeting.result.messages[0].content.text).toBe('Greet you.');
  const uris = await names(h, 'resources/list', 'uri');
  expect(new Set(uris).size).toBe(uris.length);
  for (const uri of uris)
    expect((await h.ask('resources/read', { uri })).result.contents[0].text).toMatch(/^the memo memo:/);
  const ref = { type: 'ref/prompt', name: 'things__greet' };
  const completed = await h.ask('completion/complete', { ref, argument: { name: 'who', value: 'me' } });
  expect(completed.result.completion.values).toEqual(['me!']);
  const missing = await h.ask('resources/read', { uri: 'nowhere://x' });
  expect(missing.error).toMatchObject({ code: -32002, data: { uri: 'nowhere://x' } });
});

it('refuses what is not there with the codes of the protocol', async () => {
  expect((await h.ask('tools/call', { name: 'echo__nothing', arguments: {} })).error.code).toBe(-32602);
  expect((await h.ask('tools/list', { cursor: 'garbage' })).error.code).toBe(-32602);
  expect((await h.ask('logging/setLevel', { level: 'loud' })).error.code).toBe(-32602);
  expect((await h.ask('no/such/method')).error.code).toBe(-32601);
  expect((await h.ask('tools/call', {})).error.code).toBe(-32602);
});

it('a profile shows its servers and its tools only', async () => {
  const host = await rawHost(`${url}/mcp/@small`);
  const tools = await names(host, 'tools/list', 'name');
  expect(new Set(tools.map((name) => name.split('__')[0]))).toEqual(new Set(['echo', 'things']));
  expect(tools).not.toContain('echo__raw');
  expect((await host.ask('tools/call', { name: 'echo__raw', arguments: {} })).error.code).toBe(-32602);
  expect((await host.ask('tools/call', { name: 'twin__touch', arguments: { uri: 'x' } })).error.code).toBe(-32602);
  await host.close();
});

it('a host hears the level of log it asked for, and the server is asked for no less than anybody wants', async () => {
  const [loud, quiet] = [await rawHost(`${url}/mcp/things`), await rawHost(`${url}/mcp/things`)];
  await loud.ask('logging/setLevel', { level: 'debug' });
  await quiet.ask('logging/setLevel', { level: 'error' });
  const say = async (host: RawHost) => {
    const stream = await host.begin(1, 'tools/call', { name: 'log', arguments: { level: 'debug', text: 'psst' } });
    const heard: string[] = [];
    const isStream = String(stream.headers['content-type']).startsWith('text/event-stream');
    if (isStream) for await (const { message } of stream.events) heard.push(message.method ?? 'answer');
    return heard;
  };
  expect(await say(loud)).toEqual(['notifications/message', 'answer']);
  expect(await say(quiet)).not.toContain('notifications/message');
  const counters = await loud.ask('tools/call', { name: 'counters', arguments: {} });
  await eventually(() => expect(counters.result.structuredContent.value.levels.at(-1)).toBe('debug'));
  await Promise.all([loud.close(), quiet.close()]);
});
