// The gateways that doors are measured against, each in front of the cheap child: our own bare proxy, and the programs
// that people use. All give `{ name, url, pid, children(), end() }`.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { toolPath } from '../test/support/tools.mjs';
import { descendantsOf } from './proc.mjs';
import { CHILD, ending, forked, startTroupe } from './processes.mjs';

const READY_MS = 20_000;
const POLL_MS = 50;
const QUIET = ['--logLevel', 'none'];

export async function startHttpBridge(env = {}) {
  const { child, end, first } = await forked('http-bridge.mjs', env);
  return {
    name: 'bare proxy',
    url: `http://127.0.0.1:${first.port}/mcp`,
    pid: child.pid,
    children: () => [first.childPid],
    end,
  };
}

export const startSupergateway = (env = {}) =>
  startPeer('supergateway', env, (port) => ({
    url: `http://127.0.0.1:${port}/mcp`,
    words: [...stdio(), '--outputTransport', 'streamableHttp', '--stateful', ...QUIET, '--port', port],
  }));

export const startSupergatewayWs = (env = {}) =>
  startPeer('supergateway', env, (port) => ({
    url: `ws://127.0.0.1:${port}/message`,
    words: [...stdio(), '--outputTransport', 'ws', ...QUIET, '--port', port],
  }));

export const startMcpProxy = (env = {}) =>
  startPeer('mcp-proxy', env, (port) => ({
    url: `http://127.0.0.1:${port}/mcp`,
    words: ['--host', '127.0.0.1', '--port', port, '--server', 'stream', '--', process.execPath, CHILD],
  }));

/** `path` is the door: `/mcp/s0` or `/ws/s0`. */
export async function startTroupeDoor(path, settings = {}) {
  const troupe = await startTroupe({ servers: 1, ...settings });
  const { daemon } = await troupe.untilReady();
  const { TROUPE_HTTP: base } = await troupe.doors();
  const url = (path.startsWith('/ws') ? base.replace(/^http/, 'ws') : base) + path;
  const children = () => descendantsOf(daemon.pid, CHILD);
  return { name: 'troupe', url, base, pid: daemon.pid, children, end: troupe.end };
}

const stdio = () => ['--stdio', `${process.execPath} ${CHILD}`];

async function startPeer(name, env, how) {
  const script = await toolPath(name);
  const port = `${await freePort()}`;
  const { url, words } = how(port);
  const options = { env: { ...process.env, ...env }, stdio: 'ignore' };
  const child = spawn(process.execPath, [script, ...words], options);
  const end = ending(async () => {
    const left = [child.pid, ...descendantsOf(child.pid, CHILD)];
    const gone = child.exitCode ?? child.signalCode ?? once(child, 'exit');
    for (const pid of left) kill(pid);
    await gone;
  });
  await untilListening(name, port, child);
  return { name, url, pid: child.pid, children: () => descendantsOf(child.pid, CHILD), end };
}

export function kill(pid) {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // it is gone already
  }
}

async function untilListening(name, port, child) {
  const deadline = performance.now() + READY_MS;
  while (performance.now() < deadline && child.exitCode === null) {
    const isThere = await fetch(`http://127.0.0.1:${port}/`).then(
      () => true,
      () => false,
    );
    if (isThere) return;
    await wait(POLL_MS);
  }
  throw new Error(`${name} did not listen within ${READY_MS / 1000} s`);
}

export async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}
