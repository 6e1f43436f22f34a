// The parts of a measurement as processes: the loader, the bare bridge, and troupe itself with its own state directory.
// Each is ended by what it returns; `endAll` ends what a failed scenario left behind.

import { execFile, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
const here = (file) => fileURLToPath(new URL(file, import.meta.url));
export const MAIN = here('../dist/bundle/troupe.cjs');
export const CHILD = here('child.mjs');
const POLL_MS = 10;
const READY_MS = 60_000;
const running = new Set();

export async function endAll() {
  for (const end of [...running].reverse()) await end();
}

/** Ends once, whoever asks first. */
export function ending(end) {
  const once = async () => {
    if (running.delete(once)) await end();
  };
  running.add(once);
  return once;
}

export async function forked(file, env) {
  const child = fork(here(file), { env: { ...process.env, ...env }, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  const end = ending(async () => {
    const gone = once(child, 'exit');
    child.kill('SIGKILL');
    await gone;
  });
  const died = once(child, 'exit').then(() => Promise.reject(new Error(`${file} ended before it was ready`)));
  died.catch(() => {}); // of interest only until it is ready
  const [first] = await Promise.race([once(child, 'message'), died]);
  return { child, end, first };
}

export const startLoader = (url) => loading('loader.mjs', { NATS_URL: url });
export const startTaskLoader = (url) => loading('tasks-loader.mjs', { NATS_URL: url });
export const startInserts = (directory) => loading('tasks-inserts.mjs', { STORE: directory });
export const startAuditFiller = (directory) => loading('audit-filler.mjs', { STORE: directory });

/**
 * `url`: http://…/mcp or ws://…; opens its sessions at once. `client` is `undici` for a client that is not ours, and `isSpread`
 * lets the calls go round the sessions, however few are outstanding.
 */
export async function startDoorLoader(url, { sessions = 8, client = '', isSpread = false } = {}) {
  const loader = await loading('door-loader.mjs', { DOOR_URL: url, DOOR_CLIENT: client });
  const { failure } = await loader.ask({ job: 'open', count: sessions, isSpread });
  if (failure) throw new Error(`${url}: ${failure}`);
  return loader;
}

async function loading(file, env) {
  const { child, end } = await forked(file, env);
  const ask = async (job) => {
    const answer = once(child, 'message');
    child.send(job);
    return (await answer)[0];
  };
  return { ask, end };
}

export async function startBridge(url) {
  const { child, end, first } = await forked('bridge.mjs', { NATS_URL: url });
  return { pid: child.pid, childPid: first.childPid, end };
}

/**
 * A state directory of its own with so many `servers`: all of them the cheap child with `env`, or behind the address `url`.
 * `http` and `nats` are settings of the daemon, `node` its own options. `run` is the command line on it.
 */
export function stage({ servers, tools = 1, settings = {}, env: childEnv = {}, url, http = {}, nats = {}, node = '' }) {
  const state = mkdtempSync(join(tmpdir(), 'troupe-bench-'));
  const config = join(state, 'troupe.json');
  const definition = url
    ? { type: 'ws', url }
    : { command: process.execPath, args: [CHILD], env: { TOOLS: `${tools}`, ...childEnv } };
  const mcpServers = Object.fromEntries(
    Array.from({ length: servers }, (_, number) => [`s${number}`, { ...definition, 'x-troupe': settings }]),
  );
  writeFileSync(config, JSON.stringify({ mcpServers, 'x-troupe': { http, nats } }));
  const { NATS_URL: _theirs, NATS_CONTEXT: _too, ...inherited } = process.env; // troupe brings its own bus
  const env = { ...inherited, TROUPE_STATE: state, TROUPE_CONFIG: config, NODE_OPTIONS: node };
  const options = { env, cwd: state };
  const end = ending(async () => {
    await run(process.execPath, [MAIN, 'down', '--all'], options).catch((error) =>
      process.stderr.write(`${error.stderr ?? error}\n`),
    );
    rmSync(state, { recursive: true, force: true });
  });
  return { state, options, run: (...words) => run(process.execPath, [MAIN, ...words], options), end };
}

/** What `stage` says, and a daemon on it. Resolves as soon as `up --detach` returns. */
export async function startTroupe(given) {
  const { connectControl } = await import('../dist/src/cli/control.js');
  const { state, options, run: troupe, end } = stage(given);
  await troupe('up', '--detach', '--http', '127.0.0.1:0');
  const control = await connectControl(join(state, 'control.sock'));
  const status = () => control.ask('status');
  const untilReady = (ask = status) => untilServersAreReady(ask, given.servers);
  const doors = async () => JSON.parse((await troupe('env', '--json')).stdout);
  const url = async () => (await doors()).NATS_URL;
  /** A second daemon on the same state directory, with processes of its own; its status, when it is ready. */
  const second = async (name) => {
    await troupe('up', '--detach', '--instance', name, '--http', '127.0.0.1:0');
    return untilReady(async () => JSON.parse((await troupe('status', '--json', '--instance', name)).stdout));
  };
  const stop = async () => {
    control.close();
    await end();
  };
  return { url, doors, status, untilReady, second, state, options, end: stop };
}

async function untilServersAreReady(ask, count) {
  const deadline = performance.now() + READY_MS;
  for (;;) {
    const now = await ask();
    if (now.servers.length === count && now.servers.every((each) => each.state === 'ready')) return now;
    if (performance.now() > deadline) throw new Error(`not every server became ready: ${JSON.stringify(now.servers)}`);
    await wait(POLL_MS);
  }
}

/** A process behind whose address any number of remote servers may be: each connection is one. */
export async function startRemote() {
  const { child, end, first } = await forked('remote.mjs', {});
  return { pid: child.pid, url: `ws://127.0.0.1:${first.port}/`, end };
}

export async function startRemoteBridge(env) {
  const { child, end } = await forked('remote-bridge.mjs', env);
  return { pid: child.pid, end };
}

/** How long the children alone need: started together, each asked to initialize and to list its tools. */
export async function startBare(count) {
  const from = performance.now();
  const children = Array.from({ length: count }, () =>
    spawn(process.execPath, [CHILD], { stdio: ['pipe', 'pipe', 'inherit'] }),
  );
  const exits = children.map((child) => once(child, 'exit'));
  await Promise.all(children.map(greet));
  const ms = performance.now() - from;
  for (const child of children) child.stdin.end();
  await Promise.all(exits);
  return ms;
}

async function greet({ stdin, stdout }) {
  const ask = async (id, method, params) => {
    stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
    await once(stdout, 'data');
  };
  await ask(1, 'initialize', {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 'b', version: '1' },
  });
  await ask(2, 'tools/list', {});
}
