// A real daemon in a scope: its own process, state directory and nats-server, and a NATS client that is let in.
// When the scope ends it is stopped, and whatever it left behind is an error of the test.

import { existsSync, readdirSync } from 'node:fs';
import { chmod, cp, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { execa, type ResultPromise } from 'execa';
import { connect, headers, type Msg, type NatsConnection } from 'nats';
import { askControl } from './control.ts';
import { eventually } from './eventually.ts';
import { freePort, natsBinary } from './nats.ts';
import { startedWith } from './processes.ts';
import { scratch } from './scratch.ts';

export const ROOT = new URL('../..', import.meta.url).pathname;
export const MAIN = join(ROOT, 'dist/bundle/troupe.cjs');
/** The same program as single modules, for who asks which of them run. */
export const MODULES = join(ROOT, 'dist/src/main.js');

/** In the rounds of `npm run steady` that have one. */
const SLOW_DISK = process.env.TROUPE_SLOW_DISK ? { LD_PRELOAD: process.env.TROUPE_SLOW_DISK } : {};

/** The definition of a fixture server; `troupe` is its `x-troupe`. */
export const fixture = (name: string, troupe: object = {}, env: Record<string, string> = {}) => ({
  command: process.execPath,
  args: [join(ROOT, 'test/fixtures', `${name}.mjs`)],
  env,
  'x-troupe': troupe,
});

export type ServerStatus = {
  name: string;
  state: string;
  pid: number | null;
  restarts: number;
  inFlight: number;
  queued: number;
  lastError: string | null;
  trouble: string | null;
  protocolVersion: string | null;
  tools: number;
  resources: number;
  templates: number;
  prompts: number;
  calls: number;
  errors: number;
};

export type DaemonOptions = {
  readonly servers?: Record<string, object>;
  /** The top-level `x-troupe` of the configuration. */
  readonly troupe?: object;
  readonly env?: Record<string, string>;
  /** Where the configuration is written; in a directory of the daemon's own unless told. */
  readonly config?: string;
  /** A state directory to begin with; a copy of it is used. */
  readonly from?: string;
  /** How many descriptors the daemon may have. */
  readonly descriptors?: number;
  /** The program, if it is not the bundle. */
  readonly main?: string;
  /** Wait until every server has left `opening`; on unless false. */
  readonly settle?: boolean;
};

export type Reply = {
  data: any;
  text: string;
  code: number | undefined;
  error: string | undefined;
  headers: Record<string, string>;
};

export async function daemon({
  servers = {},
  troupe = {},
  env = {},
  from,
  descriptors,
  main = MAIN,
  settle = true,
  ...given
}: DaemonOptions = {}) {
  const dir = await scratch();
  const config = given.config ?? join(dir.path, 'troupe.json');
  const state = join(dir.path, 'state');
  const write = (next: Record<string, object>, top: object = troupe) =>
    writeFile(config, JSON.stringify({ mcpServers: next, 'x-troupe': top }));
  await write(servers);
  if (from) await copyPrivately(from, state);
  // The usual port would be another daemon's as soon as this one is killed, and its hosts would find that one.
  await mkdir(state, { recursive: true, mode: 0o700 });
  await writeFile(join(state, 'http-port'), String(await freePort()), { mode: 0o600 });
  const environment = {
    ...{ PATH: process.env.PATH ?? '', HOME: dir.path, TROUPE_STATE: state, TROUPE_CONFIG: config },
    ...{ TROUPE_NATS_SERVER: (await natsBinary()).path, NO_COLOR: '1', ...SLOW_DISK, ...env },
  };
  const cli = (...args: string[]) =>
    execa(process.execPath, [main, ...args], { env: environment, extendEnv: false, reject: false, timeout: 60_000 });
  const status = () => askControl<Status>(join(state, 'control.sock'), 'status');
  const server = async (name: string) => {
    const found = (await status()).servers.find((each) => each.name === name);
    if (!found) throw new Error(`no server ${name}`);
    return found;
  };

  let process_: ResultPromise | undefined;
  let nc: Promise<NatsConnection> | undefined;

  async function start(): Promise<void> {
    const limited = ['-c', `ulimit -n ${descriptors} && exec "$0" "$@"`, process.execPath];
    const [command, args] = descriptors ? ['/bin/sh', limited] : [process.execPath, []];
    const child = execa(command, [...args, main, 'up'], {
      env: environment,
      extendEnv: false,
      reject: false,
      all: true,
    });
    process_ = child as unknown as ResultPromise;
    let ended: string | undefined;
    void child.then(({ all }) => {
      ended = String(all);
    });
    await eventually(async () => {
      if (ended !== undefined) throw Object.assign(new Error(`the daemon ended: ${ended}`), { isFinal: true });
      return (await status()).daemon.state === 'running';
    }, 30_000);
    if (settle)
      await eventually(async () => (await status()).servers.every((each) => each.state !== 'opening'), 30_000);
  }

  /** The exit code of the daemon's process after it was asked to stop. The command line would cost another process. */
  async function down(): Promise<number> {
    const child = process_;
    if (!child || child.exitCode !== null || child.signalCode !== null) return (await cli('down')).exitCode ?? -1;
    const tooLate = setTimeout(() => child.kill('SIGKILL'), 60_000);
    await askControl(join(state, 'control.sock'), 'down').catch(() => cli('down'));
    const { exitCode } = await child;
    clearTimeout(tooLate);
    return exitCode ?? -1;
  }

  /** Killed daemons, and others on the same directory, leave what only the command line takes away. */
  const mayLeaveSomething = () =>
    process_?.exitCode !== 0 ||
    existsSync(join(state, 'control.sock')) ||
    (existsSync(state) ? readdirSync(state) : []).some((name) => /^daemon-.*\.lock\.db$/.test(name));

  /** A shim's `up` that lost the race may come late: it would make the directory again, with a daemon in it. */
  const untilNobodyComes = () =>
    eventually(async () => {
      if (existsSync(join(state, 'control.sock'))) await cli('down');
      const coming = startedWith('TROUPE_STATE', state);
      if (coming.length > 0) throw new Error(`these still run on ${state}: ${coming}`);
    }, 60_000);

  async function enter(): Promise<NatsConnection> {
    const { NATS_URL } = await askControl<{ NATS_URL: string }>(join(state, 'control.sock'), 'env');
    const url = new URL(NATS_URL);
    return connect({ servers: url.host, token: url.username, maxReconnectAttempts: -1, reconnectTimeWait: 50 });
  }

  await start();

  return {
    ...{ dir: dir.path, state, config, env: environment, cli, status, server, write, start },
    get pid() {
      return process_?.pid as number;
    },
    /** Resolves when the named server is in that state. */
    async until(name: string, wanted: string, timeoutMs = 15_000): Promise<ServerStatus> {
      return eventually(async () => {
        const found = await server(name);
        if (found.state !== wanted) throw new Error(`${name} is ${found.state}, not ${wanted}`);
        return found;
      }, timeoutMs);
    },
    /** Where its HTTP door listens, such as http://127.0.0.1:7411. */
    async http(): Promise<string> {
      const { http } = await status();
      if (!http.url) throw new Error(`the HTTP door is ${http.state}: ${http.error}`);
      return http.url;
    },
    async nats(): Promise<NatsConnection> {
      if (!nc || (await nc).isClosed()) nc = enter();
      return nc;
    },
    /** One plain request over NATS. */
    async request(
      subject: string,
      body: string | object = '',
      options: { headers?: Record<string, string>; timeout?: number } = {},
    ) {
      const client = await this.nats();
      const all = headers();
      for (const [key, value] of Object.entries(options.headers ?? {})) all.set(key, value);
      const payload = typeof body === 'string' ? body : JSON.stringify(body);
      const withHeaders = options.headers ? { headers: all } : {};
      return replyOf(await client.request(subject, payload, { timeout: options.timeout ?? 20_000, ...withHeaders }));
    },
    /** kill -9, and nothing else. */
    async kill(): Promise<void> {
      process_?.kill('SIGKILL');
      await process_;
      process_ = undefined;
    },
    /** How the process that runs now ends, whenever that is. */
    async ended(): Promise<{ exitCode: number | undefined; all: string }> {
      const { exitCode, all } = await (process_ as unknown as ResultPromise<{ all: true }>);
      return { exitCode, all: String(all) };
    },
    down,
    log: () => readFile(join(state, 'logs/troupe.log'), 'utf8'),
    /** Which files of the state directory hold that text: the database and its journal, the logs, everything. */
    async filesWith(text: string): Promise<string[]> {
      const entries = await readdir(state, { recursive: true, withFileTypes: true });
      const files = entries.filter((each) => each.isFile()).map((each) => join(each.parentPath, each.name));
      const holding = await Promise.all(files.map(async (file) => (await readFile(file)).includes(text)));
      return files.filter((_, index) => holding[index]);
    },
    async [Symbol.asyncDispose]() {
      await (await nc)?.close();
      if (process_?.exitCode === null && process_.signalCode === null) await down();
      if (mayLeaveSomething()) await cli('down');
      process_?.kill('SIGKILL');
      await process_;
      await untilNobodyComes();
      await dir[Symbol.asyncDispose]();
    },
  };
}

/** A checkout knows no private modes. */
async function copyPrivately(from: string, to: string): Promise<void> {
  await cp(from, to, { recursive: true });
  for (const entry of await readdir(to, { recursive: true, withFileTypes: true }))
    await chmod(join(entry.parentPath, entry.name), entry.isDirectory() ? 0o700 : 0o600);
  await chmod(to, 0o700);
}

export type Daemon = Awaited<ReturnType<typeof daemon>>;
type Status = {
  daemon: { pid: number; state: string; version: string; configError: string | null };
  bus: { state: string; url: string; pid?: number; lastError?: string; outbox: number; refused: number };
  store: { state: string; message: string };
  http: { state: string; url: string | null; error?: string };
  sessions: number;
  limits: Record<'descriptors' | 'hosts' | 'servers', { used: number; most: number }>;
  plugins: { name: string; state: string; error?: string }[];
  servers: ServerStatus[];
};

export function replyOf(msg: Msg): Reply {
  const text = msg.string();
  const code = msg.headers?.get('Nats-Service-Error-Code');
  return {
    text,
    data: text ? JSON.parse(text) : undefined,
    code: code ? Number(code) : undefined,
    error: msg.headers?.get('Nats-Service-Error') || undefined,
    headers: Object.fromEntries([...(msg.headers ?? [])].map(([key, [value]]) => [key, value ?? ''])),
  };
}

/** Whether a process lives; a zombie does not. Where the kernel shows it no other process is started to find out. */
export async function isAlive(pid: number): Promise<boolean> {
  if (process.platform === 'linux') {
    const stat = await readFile(`/proc/${pid}/stat`, 'latin1').catch(() => '');
    return /\) [^ZX]/.test(stat);
  }
  const { stdout } = await execa('ps', ['-o', 'stat=', '-p', String(pid)], { reject: false });
  return stdout.trim() !== '' && !stdout.trim().startsWith('Z');
}
