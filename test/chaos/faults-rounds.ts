// Rounds of system calls that fail under a daemon at work: calls over NATS and HTTP, tasks, new sessions, restarts, a reload. In
// each round one kind of them fails; the daemon must go on, answer every call once, and be well again when the round is over.

import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect } from 'vitest';
import { askControl } from '../support/control.ts';
import { type Daemon, daemon, fixture } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { type Fault, type Faults, faults, type Syscall } from '../support/faults.ts';
import { type RawHost, rawHost } from '../support/host.ts';
import { scratch } from '../support/scratch.ts';
import { checkRemains } from './remains.ts';

export type Order = Fault & { readonly syscall: Syscall };
export type Told = { failed: number; answered: number; refused: number };

type Stage = {
  readonly d: Daemon;
  readonly order: Faults;
  readonly told: Told;
  readonly host: RawHost;
  reloads: number;
  /** The servers of the configuration as it was written last. */
  expected: string[];
};

const LOCAL = ['echo', 'other', 'calm'];
const RESTART = { restart: { intensity: 1_000, periodMs: 1_000, backoffMs: [50] }, stdinMs: 100, termMs: 100 };

/** Those that nothing in a round asks for. */
export const UNASKED: readonly Syscall[] = ['rename', 'thread'];

/** How often system calls have failed, and how many calls were answered well or with an error. */
export async function faultRounds(
  orders: readonly Order[],
  { repeats = 1, env = {} }: { readonly repeats?: number; readonly env?: Record<string, string> } = {},
): Promise<Told> {
  await using dir = await scratch();
  using order = faults(dir.path);
  const far = await remote();
  const told: Told = { failed: 0, answered: 0, refused: 0 };
  const servers = { ...Object.fromEntries(LOCAL.map((name) => [name, fixture('echo', RESTART)])), far: urlOf(far) };
  try {
    await using d = await daemon({ servers, env: { ...order.env, ...env } });
    const stage: Stage = { d, order, told, host: await rawHost(`${await d.http()}/mcp`), reloads: 0, expected: [] };
    const { pid } = d;
    for (const each of orders) {
      order.set(each.syscall, each);
      for (let repeat = 0; repeat < repeats; repeat++) await work(stage, servers);
      order.clear();
      const failed = order.failed(each.syscall);
      if (each.permille === undefined) expect([each.syscall, each.errno, failed]).not.toContain(0); // else it tests nothing
      told.failed += failed;
      await isWell(stage, `${each.syscall} ${each.errno}`);
      expect((await d.status()).daemon.pid).toBe(pid);
    }
    expect(await d.log()).not.toMatch(/a bug in troupe|"level":60/);
    expect(await d.down()).toBe(0);
    await checkRemains(d);
    return told;
  } finally {
    far.closeAllConnections();
    far.close();
  }
}

/** All of it at once, as it comes in life. */
async function work(stage: Stage, servers: Record<string, object>): Promise<void> {
  const { d } = stage;
  const control = (method: string, params: object = {}) =>
    askControl(join(d.state, 'control.sock'), method, params).catch(() => {}); // refused, or not accepted
  const extra = stage.reloads++ % 2 === 0 ? { extra: fixture('echo', RESTART) } : {};
  stage.expected = Object.keys({ ...servers, ...extra });
  await d.write({ ...servers, ...extra });
  await Promise.all([
    ...[...LOCAL, 'far', 'far'].map((name) => call(stage, name)),
    ...['echo', 'other'].map((server) => control('restart', { server })),
    ...['echo', 'calm', 'far'].map((name) => call(stage, name)),
    task(stage),
    control('reload'),
    control('status'),
    overHttp(stage, () => stage.host.ask('tools/call', { name: 'calm__echo', arguments: { message: 'http' } })),
    overHttp(stage, () => newcomer(d)),
  ]);
}

/** Answered once, whatever the answer is: no answer within 20 s is thrown by the bus. */
async function call({ d, told }: Stage, server: string): Promise<void> {
  const { code } = await d.request(`troupe.call.${server}.echo`, { message: server });
  if (code === undefined) told.answered++;
  else told.refused++;
}

async function task({ d, told }: Stage): Promise<void> {
  const headers = { 'Troupe-Task': '1' };
  const { code } = await d.request('troupe.call.calm.echo', { message: 'task' }, { headers });
  if (code === undefined) told.answered++;
  else told.refused++;
}

/** A connection that the kernel gave up was never a request. */
async function overHttp({ told }: Stage, ask: () => Promise<unknown>): Promise<void> {
  try {
    await ask();
    told.answered++;
  } catch {
    told.refused++;
  }
}

async function newcomer(d: Daemon): Promise<void> {
  const host = await rawHost(`${(await d.http()) as string}/mcp`);
  await (await host.send('DELETE')).body.dump();
}

/** What the kernel says of the command and not of itself. */
const MAY_FAIL = ['spawn EACCES', 'spawn E2BIG', 'spawn EPERM'];

/** Each server serves, and all that the daemon says of itself is good. */
async function isWell(stage: Stage, after: string): Promise<void> {
  const { d } = stage;
  await eventually(async () => {
    const { servers, store, bus, http, ...whole } = await d.status();
    expect([after, whole.daemon.configError]).toEqual([after, null]);
    expect(servers.map(({ name }) => name).sort()).toEqual(stage.expected.toSorted());
    for (const { name, state, lastError } of servers) {
      // A command that may not be run is no shortage: it waits for a person.
      if (state === 'failed' && MAY_FAIL.includes(after))
        await askControl(join(d.state, 'control.sock'), 'start', { server: name });
      expect(`${after}: ${name} is ${state}, ${lastError}`).toMatch(/ is ready, /);
    }
    expect([after, store.state, bus.state, http.state]).toEqual([after, 'ready', 'online', 'listening']);
  }, 30_000);
  for (const name of [...LOCAL, 'far']) {
    const reply = await d.request(`troupe.call.${name}.echo`, { message: after });
    expect([after, name, reply.data?.content?.[0]?.text]).toEqual([after, name, after]);
  }
  const reply = await stage.host.ask('tools/call', { name: 'calm__echo', arguments: { message: after } });
  expect([after, reply.result?.content?.[0]?.text ?? reply]).toEqual([after, after]);
}

// ── A remote server, so that there is something to connect to ────────────────

const urlOf = (server: Server) => ({
  url: `http://localhost:${(server.address() as AddressInfo).port}/mcp`,
  'x-troupe': { restart: { intensity: 1_000, periodMs: 1_000, backoffMs: [50] } },
});

async function remote(): Promise<Server> {
  const server = createServer(async (req, res) => {
    if (req.method !== 'POST') return void res.writeHead(405).end();
    let body = '';
    for await (const chunk of req) body += chunk;
    const { id, method, params } = JSON.parse(body);
    if (id === undefined) return void res.writeHead(202).end();
    const result = RESULTS[method]?.(params) ?? {};
    // No connection is kept, so that each request makes one.
    res.writeHead(200, { 'content-type': 'application/json', connection: 'close' });
    res.end(JSON.stringify({ jsonrpc: '2.0', id, result }));
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  return server;
}

const RESULTS: Record<string, (params: any) => object> = {
  initialize: ({ protocolVersion }) => ({
    ...{ protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'far', version: '1' } },
  }),
  'tools/list': () => ({ tools: [{ name: 'echo', inputSchema: { type: 'object' } }] }),
  'tools/call': ({ arguments: { message } }) => ({ content: [{ type: 'text', text: message }] }),
};
