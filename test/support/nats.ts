// A real nats-server of a test's own, on a free port of the loopback: `await using server = await natsServer()`.
// It can be killed and started again on the same port, with the same JetStream store.

import { type ChildProcess, spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, type NatsConnection } from 'nats';
import { fetchNatsServer, findNatsServer, type NatsServer } from '../../src/bus/acquire.ts';
import { pathsOf } from '../../src/config/paths.ts';

type Options = {
  jetstream?: boolean;
  maxPayload?: number;
  token?: string;
  /** The one user that is let in, and what it may do. */
  user?: { user: string; password: string; permissions: object };
  /** With an address where the server tells who is connected. */
  monitored?: boolean;
};

export type TestServer = AsyncDisposable & {
  readonly url: string;
  readonly port: number;
  readonly token: string | undefined;
  readonly pid: number;
  /** A connection that is closed with the server. */
  connect(): Promise<NatsConnection>;
  /** Who is connected: an id that no later connection has, and the name it gave. Only of a monitored server. */
  connections(): Promise<{ cid: number; name: string }[]>;
  /** Kills the server and starts it again on the same port; resolves when it accepts connections. */
  restart(): Promise<void>;
  /** SIGKILL; resolves when it is gone. */
  kill(): Promise<void>;
};

export async function natsServer(options: Options = {}): Promise<TestServer> {
  const { jetstream = false, maxPayload, token, user, monitored = false } = options;
  const { path } = await natsBinary();
  const directory = await mkdtemp(join(tmpdir(), 'troupe-nats-'));
  const port = await freePort();
  const url = `nats://127.0.0.1:${port}`;
  const monitor = monitored ? `127.0.0.1:${await freePort()}` : undefined;
  await writeFile(
    join(directory, 'nats.conf'),
    JSON.stringify({
      listen: `127.0.0.1:${port}`,
      ...(maxPayload && { max_payload: maxPayload }),
      ...(token && { authorization: { token } }),
      ...(user && { authorization: { users: [user] } }),
      ...(monitor && { http: monitor }),
      ...(jetstream && { jetstream: { store_dir: join(directory, 'jetstream') } }),
    }),
  );
  const login = user && { user: user.user, pass: user.password };
  const credentials = { servers: url, ...(token && { token }), ...login };
  const connections: NatsConnection[] = [];

  async function start(): Promise<ChildProcess> {
    const child = spawn(path, ['-c', join(directory, 'nats.conf')], { stdio: 'ignore' });
    const deadline = Date.now() + 10_000;
    for (;;) {
      try {
        await (await connect({ ...credentials, reconnect: false, timeout: 1_000 })).close();
        return child;
      } catch (error) {
        if (child.exitCode !== null || Date.now() > deadline) throw error;
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    }
  }

  let child = await start();
  const kill = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exit = once(child, 'exit');
    child.kill('SIGKILL');
    await exit;
  };
  return {
    url,
    port,
    token,
    get pid() {
      return child.pid ?? 0;
    },
    async connect() {
      const connection = await connect({
        ...credentials,
        noAsyncTraces: true,
        maxReconnectAttempts: -1,
        reconnectTimeWait: 50,
      });
      connections.push(connection);
      return connection;
    },
    async connections() {
      const reply = await fetch(`http://${monitor}/connz`);
      return ((await reply.json()) as { connections: { cid: number; name: string }[] }).connections;
    },
    async restart() {
      await kill();
      child = await start();
    },
    kill,
    async [Symbol.asyncDispose]() {
      await Promise.all(connections.map((connection) => connection.close()));
      await kill();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

let binary: Promise<NatsServer> | undefined;

/** The nats-server of this machine, fetched into troupe's own cache when there is none. */
export function natsBinary(): Promise<NatsServer> {
  const where = { env: process.env, cacheDir: pathsOf(process.env).cache };
  binary ??= findNatsServer(where).then((found) => found ?? fetchNatsServer(where));
  return binary;
}

/** For vitest's `globalSetup`: fetching takes seconds, which no test should have to wait for. */
export async function setup(): Promise<void> {
  await natsBinary();
}

/** Below the range from which systems take ports for outgoing connections: none of those is faster than who asked here. */
const [FIRST_PORT, PORTS] = [10_240, 20_480];
/** Each worker of a run has a part of the range to itself. */
const WORKERS = 8;
let drawn = randomInt(PORTS);

export async function freePort(): Promise<number> {
  const worker = Number(process.env.VITEST_POOL_ID ?? 0) % WORKERS;
  for (;;) {
    drawn += 1;
    const port = FIRST_PORT + worker * (PORTS / WORKERS) + (drawn % (PORTS / WORKERS));
    if (await isFree(port)) return port;
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const listener = createServer().listen(port, '127.0.0.1');
    listener.once('listening', () => listener.close(() => resolve(true)));
    listener.once('error', () => resolve(false));
  });
}
