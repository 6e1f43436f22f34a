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
const MAIN = here('../dist/bundle/troupe.cjs');
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

/** `url`: http://…/mcp or ws://…; opens its sessions at once. */
export async function startDoorLoader(url) {
  const loader = await loading('door-loader.mjs', { DOOR_URL: url });
  const { failure } = await loader.ask({ job: 'open' });
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
 * `servers`: how many; all of them the cheap child, `env` for it. `http` are the door's settings, `node` the daemon's own
 * options. Resolves as soon as `up --detach` returns.
 */
export async function startTroupe({ servers, tools = 1, settings = {}, env: childEnv = {}, http = {}, node = '' }) {
  const { connectControl } = await import('../dist/src/cli/control.js');
  const state = mkdtempSync(join(tmpdir(), 'troupe-bench-'));
  const config = join(state, 'troupe.json');
  const definition = {
    command: process.execPath,
    args: [CHILD],
    env: { TOOLS: `${tools}`, ...childEnv },
    'x-troupe': settings,
  };
  const mcpServers = Object.fromEntries(Array.from({ length: servers }, (_, number) => [`s${number}`, definition]));
  writeFileSync(config, JSON.stringify({ mcpServers, 'x-troupe': { http } }));
  const { NATS_URL: _theirs, NATS_CONTEXT: _too, ...inherited } = process.env; // troupe brings its own bus
  const env = { ...inherited, TROUPE_STATE: state, TROUPE_CONFIG: config, NODE_OPTIONS: node };
  const troupe = (...words) => run(process.execPath, [MAIN, ...words], { env, cwd: state });
  const end = ending(async () => {
    await troupe('down').catch((error) => process.stderr.write(`${error.stderr ?? error}\n`));
    rmSync(state, { recursive: true, force: true });
  });
  const startedAt = performance.now();
  await troupe('up', '--detach', '--http', '127.0.0.1:0');
  const control = await connectControl(join(state, 'control.sock'));
  const status = () => control.ask('status');
  const untilReady = async () => {
    const deadline = performance.now() + READY_MS;
    for (;;) {
      const now = await status();
      if (now.servers.length === servers && now.servers.every((each) => each.state === 'ready')) return now;
      if (performance.now() > deadline)
        throw new Error(`not every server became ready: ${JSON.stringify(now.servers)}`);
      await wait(POLL_MS);
    }
  };
  const doors = async () => JSON.parse((await troupe('env', '--json')).stdout);
  const url = async () => (await doors()).NATS_URL;
  const stop = async () => {
    control.close();
    await end();
  };
  return { url, doors, status, untilReady, startedAt, state, end: stop };
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
