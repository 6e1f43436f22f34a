// The nats-server that troupe runs itself: on the loopback, behind a token, always on the same port of its directory.
// It outlives a killed daemon, and the next one adopts it, so that clients keep their connections.

import { createServer } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { execa } from 'execa';
import { connect } from 'nats';
import { TroupeError } from '../failures.ts';
import { type Identity, isSame, processIdentity } from '../servers/identity.ts';
import { type BrokerFiles, brokerFiles, type Remembered } from './broker-files.ts';

export type Broker = {
  readonly url: string;
  readonly token: string;
  readonly pid: number;
  readonly startTime?: string;
  readonly adopted: boolean;
  stop(): Promise<void>;
};
export type BrokerOptions = {
  binary: string;
  directory: string;
  maxPayloadBytes: number;
  /** Called once when the server ends without having been stopped. */
  onExit: (why: string) => void;
};

type Living = Identity & { readonly port: number; readonly pid: number; readonly ended: Promise<void> };

const READY_MS = 10_000;
const STOP_MS = 3_000;
const POLL_MS = 500;

export async function startBroker(options: BrokerOptions): Promise<Broker> {
  const files = await brokerFiles(options.directory);
  const remembered = await files.recall();
  const adopted = await findOurs(files, remembered);
  const living = adopted ?? (await startNew(options, files, remembered.port));
  const { port, pid, startTime, bootId, ended } = living;
  await files.remember({ port, pid, startTime, bootId });
  let isStopping = false;
  void ended.then(() => {
    if (!isStopping) options.onExit(`nats-server ended unexpectedly; ${files.logPath} says why.`);
  });
  return {
    url: `nats://127.0.0.1:${port}`,
    token: files.token,
    pid,
    startTime,
    adopted: adopted !== undefined,
    async stop() {
      isStopping = true;
      await end(living);
      await files.forgetPid(port).catch(() => {}); // a stale pid does no harm: its start time is checked
    },
  };
}

/** Ends a nats-server of ours that outlived its daemon. True if there was one. */
export async function stopLeftBroker(directory: string): Promise<boolean> {
  const files = await brokerFiles(directory);
  const { port, pid, ...identity } = await files.recall();
  if (!port) return false;
  const left = (pid && (await identify(port, pid, identity))) || (await unnoted(port, files));
  if (!left) return false;
  await end(left);
  await files.forgetPid(left.port);
  return true;
}

/** The daemon may have died before it could note the pid; the server writes it itself, and must answer to our token. */
async function unnoted(port: number, files: BrokerFiles): Promise<Living | undefined> {
  const found = await identify(port, await files.writtenPid());
  return found && (await answers(port, files)) ? found : undefined;
}

// ── Adopting ─────────────────────────────────────────────────────────────────

/** The process we remember, if it lives and answers. Only then is it asked: a stranger on our port learns no token. */
async function findOurs(files: BrokerFiles, remembered: Remembered): Promise<Living | undefined> {
  const { port, pid } = remembered;
  if (!port) return undefined;
  // The daemon may have died before it could note the pid; the server writes it itself.
  const ours = pid ? await identify(port, pid, remembered) : await identify(port, await files.writtenPid());
  if (ours && (await answers(port, files))) return ours;
  if (ours && pid) await end(ours); // two servers must never share one JetStream store
  return undefined;
}

async function identify(port: number, pid: number, expected?: Partial<Identity>): Promise<Living | undefined> {
  const found = pid ? await processIdentity(pid) : undefined;
  if (!found || (expected && !(expected.startTime === found.startTime && expected.bootId === found.bootId)))
    return undefined;
  return { port, pid, ...found, ended: untilGone(pid, found) };
}

/** An adopted process is no child of ours: nobody tells us that it ended, we have to look. */
async function untilGone(pid: number, identity: Identity): Promise<void> {
  while (await isSame(pid, identity)) await wait(POLL_MS, undefined, { ref: false });
}

// ── Starting and ending ──────────────────────────────────────────────────────

async function startNew(options: BrokerOptions, files: BrokerFiles, preferred: number | undefined): Promise<Living> {
  for (const candidate of [preferred, undefined, undefined]) {
    const port = (candidate && (await unusedPort(candidate))) || (await unusedPort(0));
    if (!port) continue;
    await files.configure(port, options.maxPayloadBytes);
    await files.forgetPid(port);
    const living = await launch(options.binary, files, port);
    if (living) return living; // else somebody was faster to take the port, or it cannot start at all
  }
  throw new TroupeError('unavailable', `nats-server does not start; ${files.logPath} says why.`);
}

async function launch(binary: string, files: BrokerFiles, port: number): Promise<Living | undefined> {
  const log = await files.openLog();
  const server = execa(binary, ['-c', files.configPath], {
    // Its own process group and no parent to die with: a daemon that is killed must not cut its clients.
    detached: true,
    cleanup: false,
    reject: false,
    stdio: ['ignore', log, log],
    env: {},
    extendEnv: false,
  });
  server.unref();
  log.destroy();
  let hasEnded = false;
  const ended = server.then(() => {
    hasEnded = true;
  });
  const deadline = Date.now() + READY_MS;
  while (!hasEnded && Date.now() < deadline) {
    const identity = (await answers(port, files)) && server.pid ? await processIdentity(server.pid) : undefined;
    if (identity && server.pid) return { port, pid: server.pid, ...identity, ended };
    await Promise.race([ended, wait(20)]);
  }
  server.kill('SIGKILL');
  await ended;
  return undefined;
}

async function end({ pid, ended, ...identity }: Living): Promise<void> {
  for (const signal of ['SIGINT', 'SIGKILL'] as const) {
    if (!(await isSame(pid, identity))) return;
    try {
      process.kill(pid, signal);
    } catch {
      return; // it ended by itself just now
    }
    const deadline = Date.now() + STOP_MS;
    while (Date.now() < deadline && (await isSame(pid, identity))) await Promise.race([ended, wait(50)]);
  }
}

async function answers(port: number, { token, serverName }: BrokerFiles): Promise<boolean> {
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
    return false; // nobody there, not ready yet, or not ours
  }
}

/** The port if nobody listens there, undefined if somebody does; 0 asks for any free one. */
function unusedPort(port: number): Promise<number | undefined> {
  return new Promise((resolve) => {
    const listener = createServer();
    listener.once('error', () => resolve(undefined));
    listener.listen(port, '127.0.0.1', () => {
      const address = listener.address();
      listener.close(() => resolve(typeof address === 'object' && address ? address.port : undefined));
    });
  });
}
