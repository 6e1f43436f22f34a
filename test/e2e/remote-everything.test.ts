// The reference server over three transports behind one daemon: the same tools, the same answers, and a remote one that
// was restarted is found again without anybody's help.

import { createRequire } from 'node:module';
import { execa } from 'execa';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Daemon, daemon, fixture } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/nats.ts';

const EVERYTHING = createRequire(import.meta.url).resolve('@modelcontextprotocol/server-everything/dist/index.js');

/** The reference server in one of its modes, on a port of its own; `stop` ends it at once. */
async function everything(mode: 'streamableHttp' | 'sse', port: number) {
  const child = execa(process.execPath, [EVERYTHING, mode], { env: { PORT: String(port) }, reject: false, all: true });
  let output = '';
  child.all.setEncoding('utf8').on('data', (text) => (output += text));
  await eventually(() => /listening on port|running on port/.test(output), 20_000);
  return {
    async stop() {
      child.kill('SIGKILL');
      await child;
    },
  };
}

let [http, sse] = [{} as Awaited<ReturnType<typeof everything>>, {} as Awaited<ReturnType<typeof everything>>];
let port = 0;
let d: Daemon;

beforeAll(async () => {
  port = await freePort();
  const ssePort = await freePort();
  [http, sse] = await Promise.all([everything('streamableHttp', port), everything('sse', ssePort)]);
  const again = { restart: { intensity: 1_000, backoffMs: [100] } };
  d = await daemon({
    servers: {
      piped: { command: process.execPath, args: [EVERYTHING, 'stdio'] },
      streamed: { type: 'http', url: `http://127.0.0.1:${port}/mcp`, 'x-troupe': again },
      old: { type: 'sse', url: `http://127.0.0.1:${ssePort}/sse`, headers: { 'X-Key': 'k3y' } },
      guessed: { url: `http://127.0.0.1:${ssePort}/sse` },
      echo: fixture('echo'),
    },
  });
});
afterAll(async () => {
  await d[Symbol.asyncDispose]();
  await Promise.all([http.stop(), sse.stop()]);
});

const REMOTE = ['streamed', 'old', 'guessed'];

describe.each(['piped', ...REMOTE])('%s', (name) => {
  it('is ready with all it offers', async () => {
    await d.until(name, 'ready');
    await eventually(async () => {
      const [one, reference] = [await d.server(name), await d.server('piped')];
      expect(reference.tools).toBeGreaterThan(10);
      const offers = ({ tools, resources, templates, prompts }: typeof one) => ({
        tools,
        resources,
        templates,
        prompts,
      });
      expect(offers(one)).toEqual(offers(reference));
    }, 15_000);
    if (REMOTE.includes(name)) expect((await d.server(name)).pid).toBeNull();
  });

  it('answers calls, also several at once', async () => {
    const { data } = await d.request(`troupe.call.${name}.echo`, { message: 'grüße' });
    expect(data.content).toEqual([{ type: 'text', text: 'Echo: grüße' }]);
    const sums = await Promise.all([1, 2, 3, 4, 5].map((a) => d.request(`troupe.call.${name}.get-sum`, { a, b: 10 })));
    expect(sums.map((sum) => sum.data.content[0].text)).toEqual(
      [11, 12, 13, 14, 15].map((sum) => expect.stringContaining(`${sum}`)),
    );
  });

  it('reports progress', async () => {
    const nc = await d.nats();
    const seen: number[] = [];
    nc.subscribe(`troupe.ev.progress.long-${name}`, { callback: (_, msg) => seen.push(msg.json<any>().progress) });
    await nc.flush();
    const options = { headers: { 'Troupe-Request-Id': `long-${name}` } };
    const body = { duration: 1, steps: 4 };
    const { data } = await d.request(`troupe.call.${name}.trigger-long-running-operation`, body, options);
    expect(data.content[0].text).toContain('completed');
    await eventually(() => expect(seen.at(-1)).toBe(4));
  });
});

it('says of each how it is reached', async () => {
  const nc = await d.nats();
  const transports = new Map<string, string>();
  for await (const msg of await nc.requestMany('$SRV.INFO', '', { maxWait: 1_000 })) {
    const { metadata = {} } = msg.json<{ metadata?: Record<string, string> }>();
    if (metadata.server) transports.set(metadata.server, metadata.transport ?? '');
  }
  expect(Object.fromEntries(transports)).toMatchObject({
    piped: 'stdio',
    streamed: 'http',
    old: 'sse',
    guessed: 'http',
  });
});

it('finds a server that was restarted, and never shows its headers', async () => {
  await http.stop();
  const { error } = await d.request('troupe.call.streamed.echo', { message: 'nobody' });
  expect(error).toMatch(/streamed/);
  http = await everything('streamableHttp', port);
  await eventually(async () => {
    const { data } = await d.request('troupe.call.streamed.echo', { message: 'back' });
    expect(data.content).toEqual([{ type: 'text', text: 'Echo: back' }]);
  }, 15_000);
  expect(await d.log()).not.toContain('k3y');
  expect(JSON.stringify(await d.status())).not.toContain('k3y');
});
