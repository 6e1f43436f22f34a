// The process of the managed nats-server: launched, identified by more than its pid, asked whether it serves, ended.

import { spawn } from 'node:child_process';
import { closeSync } from 'node:fs';
import { createServer } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { connect } from 'nats';
import { type Identity, isSame, processIdentity } from '../store/process-identity.ts';
import type { BrokerFiles } from './broker-files.ts';

export type Living = Identity & { readonly port: number; readonly pid: number; readonly ended: Promise<void> };

const READY_MS = 10_000;
const STOP_MS = 3_000;
const POLL_MS = 500;

/** Undefined when the server cannot start, or when another process took the port. */
export async function launch(binary: string, files: BrokerFiles, port: number): Promise<Living | undefined> {
  const { pid, ended } = begin(binary, files);
  let hasEnded = pid === undefined;
  void ended.then(() => {
    hasEnded = true;
  });
  const deadline = Date.now() + READY_MS;
  while (pid !== undefined && !hasEnded && Date.now() < deadline) {
    const identity = (await answers(port, files)) ? await processIdentity(pid) : undefined;
    if (identity) return { port, pid, ...identity, ended };
    await Promise.race([ended, wait(20)]);
  }
  if (pid !== undefined && !hasEnded) kill(pid, 'SIGKILL');
  await ended;
  return undefined;
}

/** Without a pid there is no process; then it has ended. */
function begin(binary: string, files: BrokerFiles) {
  const log = files.openLog();
  try {
    // Its own process group and no parent to die with: a daemon that is killed must not cut its clients.
    const stdio = ['ignore' as const, log, log];
    const server = spawn(binary, ['-c', files.configPath], { detached: true, stdio, env: {} });
    // Before anything is waited for: the event comes in this turn when the kernel refused the process.
    const ended = new Promise<void>((resolve) => {
      server.once('exit', () => resolve()).once('error', () => resolve());
    });
    server.unref();
    return { pid: server.pid, ended };
  } finally {
    closeSync(log);
  }
}

/** The process of that pid, if it has the expected start time and boot. */
export async function identify(port: number, pid: number, expected?: Partial<Identity>): Promise<Living | undefined> {
  const found = pid ? await processIdentity(pid) : undefined;
  if (!found || (expected && !(expected.startTime === found.startTime && expected.bootId === found.bootId)))
    return undefined;
  return { port, pid, ...found, ended: untilGone(pid, found) };
}

/** An adopted process is no child of this one: the kernel does not tell that it ended, so it is polled. */
async function untilGone(pid: number, identity: Identity): Promise<void> {
  while (await isSame(pid, identity)) await wait(POLL_MS, undefined, { ref: false });
}

export async function end({ pid, ended, ...identity }: Living): Promise<void> {
  for (const signal of ['SIGINT', 'SIGKILL'] as const) {
    if (!(await isSame(pid, identity))) return;
    kill(pid, signal);
    const deadline = Date.now() + STOP_MS;
    while (Date.now() < deadline && (await isSame(pid, identity))) await Promise.race([ended, wait(50)]);
  }
}

export function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {} // it ended by itself just now
}

/** Whether a server listens there, and is the managed one. */
export async function answers(port: number, { token, serverName }: BrokerFiles): Promise<boolean> {
  try {
    const connection = await connect({
      servers: `127.0.0.1:${port}`,
      token,
      reconnect: false,
      timeout: 2_000,
      noAsyncTraces: true,
    });
    const name = connection.info?.server_name;
    await connection.close();
    return name === serverName; // a server without authorization would take any token
  } catch {
    return false; // no server, not ready yet, or another one
  }
}

/** The port if it is free, else undefined; 0 asks for any free one. */
export function unusedPort(port: number): Promise<number | undefined> {
  return new Promise((resolve) => {
    const listener = createServer();
    listener.on('error', () => resolve(undefined));
    listener.listen(port, '127.0.0.1', () => {
      const address = listener.address();
      listener.close(() => resolve(typeof address === 'object' && address ? address.port : undefined));
    });
  });
}
