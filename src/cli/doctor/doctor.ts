// `doctor`: checks everything a start needs (the machine, the daemon, a nats-server, the configuration), launches each server
// once, and says how to mend what fails.

import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer, connect as openSocket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findNatsServer } from '../../bus/acquire.ts';
import { natsFromEnvironment } from '../../bus/environment.ts';
import { formatComplaint } from '../../config/complaints.ts';
import { defaultConfig } from '../../config/defaults.ts';
import { loadConfig } from '../../config/load.ts';
import type { Config, RemoteServer, ServerConfig } from '../../config/schema.ts';
import { secretsOf } from '../../config/secrets.ts';
import { createSecrets } from '../../telemetry/secrets.ts';
import { isAlive, notedPid, type Status, statusOf } from '../daemon/running.ts';
import { ago } from '../terminal/table.ts';
import { folded } from '../terminal/words.ts';
import { type Cli, FAILED, OK, type Output, type Style } from '../verb.ts';
import { launchCheck, onPath } from './launch.ts';
import { type Check, firstLine, machineChecks } from './machine.ts';

const REACH_MS = 3000;
/** The columns of the state and the name of a check, which stand before what was found. */
const INDENT = 20;
const STYLES = { ok: 'green', warn: 'yellow', fail: 'red' } as const satisfies Record<Check['state'], Style>;

export async function doctor(cli: Cli, { launch }: { readonly launch: boolean }): Promise<number> {
  const { output } = cli;
  const checks: Check[] = [];
  for await (const check of allChecks(cli, launch)) {
    checks.push(check);
    if (!output.json) output.print(lineOf(output, check));
  }
  const failures = checks.filter(({ state }) => state === 'fail').length;
  if (output.json) output.print(JSON.stringify({ ok: failures === 0, checks }));
  else output.say(failures === 0 ? '\nall is well' : `\n${failures} to mend`);
  return failures === 0 ? OK : FAILED;
}

function lineOf(output: Output, { name, state, detail, remedy }: Check): string {
  const head = `${output.paint(STYLES[state], state.padEnd(4))}  ${name.padEnd(12)}  `;
  const lines = [
    ...linesOf(output, detail),
    ...linesOf(output, remedy ? `→ ${remedy}` : '').map((line) => output.paint('bold', line)),
  ];
  return head + lines.join(`\n${' '.repeat(INDENT)}`);
}

/** Folded between words where a terminal would break within one. A program that reads a pipe gets each line whole. */
const linesOf = ({ isTerminal, width }: Output, text: string): string[] =>
  text === '' ? [] : isTerminal ? folded(text, width - INDENT) : text.split('\n');

/** In the order in which a start would fail; each is shown as soon as it is known. */
async function* allChecks(cli: Cli, launch: boolean): AsyncGenerator<Check> {
  yield* machineChecks(cli);
  const { found, check } = await daemonCheck(cli);
  yield check;
  yield await natsCheck(cli, found);
  const scratch = mkdtempSync(join(tmpdir(), 'troupe-doctor-'));
  try {
    const { config, checks } = configChecks(cli, found, scratch);
    const { learn, mask } = createSecrets();
    if (config) learn(secretsOf(config, cli.env));
    yield* checks;
    // All servers at once: a launch spends its time waiting for the child.
    const servers = config?.servers.filter(({ settings }) => settings.enabled) ?? [];
    const launched = servers.map((server) => serverCheck(cli, { server, found, launch }));
    for (const each of launched) yield await each.then((check) => ({ ...check, detail: mask(check.detail) }));
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

async function daemonCheck({ paths }: Cli): Promise<{ found: Status | undefined; check: Check }> {
  const name = 'daemon';
  try {
    const found = await statusOf(paths);
    if (found) {
      const { pid, uptimeMs, state } = found.daemon;
      return { found, check: { name, state: 'ok', detail: `${state}, pid ${pid}, up ${ago(uptimeMs)}` } };
    }
    const pid = notedPid(paths);
    const crashed = pid === undefined ? '' : isAlive(pid) ? `; pid ${pid} does not answer` : '; the last one crashed';
    if (crashed === '') return { found, check: { name, state: 'ok', detail: 'not running' } };
    const remedy = 'troupe down ends what it left, troupe up starts anew';
    return { found, check: { name, state: 'warn', detail: `not running${crashed}`, remedy } };
  } catch (error) {
    const remedy = `remove ${paths.socket} if it is not yours, or set TROUPE_STATE`;
    return { found: undefined, check: { name, state: 'fail', detail: firstLine(error), remedy } };
  }
}

async function natsCheck({ env, paths }: Cli, found: Status | undefined): Promise<Check> {
  const name = 'nats';
  if (found?.bus.state === 'online') return onlineCheck(found.bus);
  try {
    const chosen = natsFromEnvironment(env);
    if (chosen) return await reach(chosen.servers);
    const server = await findNatsServer({ env, cacheDir: paths.cache });
    await loopback();
    if (server) return { name, state: 'ok', detail: `nats-server ${server.version} at ${server.path}` };
    const remedy = 'the first start fetches one; or: apt install nats-server, brew install nats-server';
    return { name, state: 'warn', detail: 'no nats-server on this machine', remedy };
  } catch (error) {
    return {
      name,
      state: 'fail',
      detail: firstLine(error),
      remedy: 'correct it, or unset it to run our own nats-server',
    };
  }
}

function onlineCheck({ url, refused }: Status['bus']): Check {
  if (!refused) return { name: 'nats', state: 'ok', detail: `online at ${url}` };
  const detail = `online at ${url}; ${refused} ${refused === 1 ? 'event' : 'events'} put aside that could not be sent`;
  return { name: 'nats', state: 'warn', detail, remedy: 'troupe logs says which the bus refused, and why' };
}

async function reach(servers: readonly string[]): Promise<Check> {
  const results = await Promise.all(servers.map((server) => isReachable(new URL(`nats://${server}`), 4222)));
  const detail = `${servers.join(', ')} (chosen by NATS_URL or the nats context)`;
  if (results.includes(true)) return { name: 'nats', state: 'ok', detail };
  const remedy = 'start it, correct the address, or unset NATS_URL to run our own nats-server';
  return { name: 'nats', state: 'fail', detail: `${detail} cannot be reached`, remedy };
}

function isReachable({ hostname, port }: URL, usualPort: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = openSocket(Number(port || usualPort), hostname.replace(/^\[|\]$/g, ''));
    const end = (isThere: boolean) => {
      socket.destroy();
      resolve(isThere);
    };
    socket.once('connect', () => end(true)).once('error', () => end(false));
    socket.setTimeout(REACH_MS, () => end(false));
  });
}

/** A port on the loopback, which our own nats-server needs. */
function loopback(): Promise<void> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', (error) => reject(new Error(`no port can be opened on 127.0.0.1: ${error.message}`)));
    server.listen(0, '127.0.0.1', () => server.close(() => resolve()));
  });
}

function configChecks(cli: Cli, found: Status | undefined, scratch: string): { config?: Config; checks: Check[] } {
  const { env, paths } = cli;
  const name = 'config';
  const file = found?.daemon.config ?? paths.config;
  if (!existsSync(file) && !env.TROUPE_CONFIG) {
    // The reference servers are tried on a scratch directory: a check leaves nothing behind.
    mkdirSync(join(scratch, 'files'));
    const detail = `no ${file}: three reference servers are run`;
    return { config: defaultConfig({ ...paths, state: scratch }), checks: [{ name, state: 'ok', detail }] };
  }
  const loaded = loadConfig(file, env);
  if (!loaded.ok)
    return { checks: loaded.complaints.map((each) => ({ name, state: 'fail', detail: formatComplaint(each) })) };
  const detail = `${file}: ${loaded.config.servers.length} servers`;
  const warnings = loaded.warnings.map((each): Check => ({ name, state: 'warn', detail: formatComplaint(each) }));
  return { config: loaded.config, checks: [{ name, state: 'ok', detail }, ...warnings] };
}

type ServerQuestion = { server: ServerConfig; found: Status | undefined; launch: boolean };

async function serverCheck(cli: Cli, { server, found, launch }: ServerQuestion): Promise<Check> {
  const { name } = server;
  // A server that the daemon runs is known to launch; a second copy might fight it for a port or a file.
  const running = found?.servers.find((each) => each.name === name);
  if (running?.state === 'ready')
    return { name, state: 'ok', detail: running.pid ? `ready, pid ${running.pid}` : 'ready' };
  if (running?.state === 'needs login')
    return { name, state: 'warn', detail: 'it wants to know who you are', remedy: `troupe login ${name}` };
  if (server.transport !== 'stdio') return remoteCheck(server, launch);
  if (!onPath(server, cli.env)) {
    const remedy = `install it, or give its full path in the configuration`;
    return { name, state: 'fail', detail: `command ${server.command} was not found`, remedy };
  }
  if (!launch) return { name, state: 'ok', detail: `${server.command} is there (not launched)` };
  return launchCheck(server, cli.env);
}

/** Only whether something listens at the address: the credentials to say more are the daemon's. */
async function remoteCheck({ name, url }: RemoteServer, launch: boolean): Promise<Check> {
  const address = new URL(url);
  if (!launch) return { name, state: 'ok', detail: `at ${address.host} (not asked)` };
  const usualPort = /^(https|wss):$/.test(address.protocol) ? 443 : 80;
  if (await isReachable(address, usualPort)) return { name, state: 'ok', detail: `${address.host} answers` };
  const remedy = 'check its url in the configuration, and the network';
  return { name, state: 'fail', detail: `nobody answers at ${address.host}`, remedy };
}
