// `up --detach`: starts itself in the background and returns when the daemon is ready, or with the reason it is not.

import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { sentence, TroupeError } from '../protocol/failures.ts';
import { makeDirectory } from '../store/directory.ts';
import { type Status, statusOf } from './daemon-status.ts';
import type { Output } from './output.ts';
import { type Cli, OK } from './verb.ts';

export type UpOptions = { readonly config?: string; readonly detach?: boolean; readonly http?: string };

// The first start may have to fetch a nats-server.
const READY_MS = 180_000;
const SETTLE_MS = 15_000;
const REASON_LINES = 50;

export async function detach(cli: Cli, options: UpOptions): Promise<number> {
  const { output, paths } = cli;
  const wordsFile = paths.startLog;
  const child = start(cli, options);
  const exited = new Promise<number>((resolve) => {
    child.once('error', () => resolve(1));
    child.once('exit', (code) => resolve(code ?? 1));
  });
  const status = await untilReady(cli, exited, wordsFile);
  if (status.daemon.pid !== child.pid) {
    // Another was faster. Ours may not have noticed yet, and must not take over when that one is stopped.
    child.kill();
    await exited;
    return alreadyRunning(output, status);
  }
  child.unref();
  if (output.json) output.print(JSON.stringify({ started: true, daemon: status.daemon }));
  else output.print(greeting(output, status));
  return OK;
}

function start({ env, paths }: Cli, options: UpOptions): ChildProcess {
  const script = process.argv[1];
  if (script === undefined) throw new TroupeError('internal', 'troupe cannot tell where its own program is');
  try {
    makeDirectory(paths.logs);
    // Only this one start's words: the daemon's log is elsewhere, and rotates.
    const words = openSync(paths.startLog, 'w', 0o600);
    const child = spawn(process.execPath, [...process.execArgv, script, ...commandLine(options, paths.instance)], {
      detached: true,
      stdio: ['ignore', words, words],
      env,
    });
    closeSync(words);
    return child;
  } catch (error) {
    throw new TroupeError('internal', `troupe cannot write to ${paths.logs}: ${sentence(error)}; set TROUPE_STATE`);
  }
}

function commandLine({ config, http }: UpOptions, instance: string | undefined): string[] {
  const given = Object.entries({ config, http, instance });
  return ['up', ...given.flatMap(([option, value]) => (value === undefined ? [] : [`--${option}`, value]))];
}

async function untilReady({ paths }: Cli, exited: Promise<number>, wordsFile: string): Promise<Status> {
  const deadline = performance.now() + READY_MS;
  let code: number | undefined;
  let runningSince: number | undefined;
  void exited.then((value) => {
    code = value;
  });
  while (performance.now() < deadline) {
    const status = await statusOf(paths);
    runningSince ??= status?.daemon.state === 'running' ? performance.now() : undefined;
    if (status && runningSince !== undefined && isSettled(status, runningSince)) return status;
    if (code !== undefined && !status) throw new TroupeError('internal', reasonOf(code, wordsFile));
    await Promise.race([sleep(50), code === undefined ? exited : sleep(50)]);
  }
  throw new TroupeError(
    'timeout',
    `troupe was not ready within ${READY_MS / 1000} s and is still starting; see \`troupe status\` and \`troupe logs\``,
  );
}

/** Calls to a server that still opens would wait, so this is only to say something true; one that hangs is not waited for. */
const isSettled = ({ servers }: Status, runningSince: number): boolean =>
  performance.now() - runningSince > SETTLE_MS || servers.every(({ state }) => state !== 'opening');

/** What the child said last, for it can no longer say it itself. */
function reasonOf(code: number, wordsFile: string): string {
  const words = readFileSync(wordsFile, 'utf8').trim().split('\n').slice(-REASON_LINES).join('\n');
  return words === '' ? `troupe ended with code ${code} before it was ready` : words.replace(/^troupe: /, '');
}

function greeting(output: Output, { daemon, bus, http, servers }: Status): string {
  const ready = servers.filter(({ state }) => state === 'ready').length;
  const to = daemon.instance ? ` --instance ${daemon.instance}` : '';
  return [
    `troupe is running (pid ${daemon.pid}): ${ready} of ${servers.length} servers ready, bus ${bus.state} ${bus.url ?? ''}`.trim(),
    ...(http?.url ? [`${output.paint('dim', 'hosts ')} ${http.url}/mcp · troupe install <host>`] : []),
    `${output.paint('dim', 'look  ')} troupe status${to} · troupe tools${to} · troupe logs -f${to}`,
    `${output.paint('dim', 'call  ')} troupe call <server> <tool> key=value${to}`,
    `${output.paint('dim', 'stop  ')} troupe down${to}`,
  ].join('\n');
}

export function alreadyRunning(output: Output, { daemon }: Status, options: UpOptions = {}): number {
  const who = daemon.instance ? `troupe "${daemon.instance}"` : 'troupe';
  const since = new Date(daemon.startedAt).toLocaleString('sv-SE');
  if (output.json) output.print(JSON.stringify({ started: false, daemon }));
  else output.print(`${who} is already running (pid ${daemon.pid}, since ${since}); nothing to start`);
  const given = [options.http !== undefined && '--http', options.config !== undefined && '--config'].filter(Boolean);
  if (given.length > 0) output.say(`${given.join(' and ')} is for the next start: troupe down first`);
  return OK;
}
