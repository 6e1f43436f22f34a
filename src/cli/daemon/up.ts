// `up`: in the foreground it is the daemon itself, and Ctrl-C drains it, a second one stops it at once. `--detach` starts the
// same in the background, and returns when the daemon is ready, or with the reason why not. Where a daemon runs on the state
// directory already, its pid is printed and nothing is started.

import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, constants, ftruncateSync, readFileSync } from 'node:fs';
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';
import { isHttpFlag } from '../../config/http.ts';
import { openOwn, ownDirectory } from '../../files/own.ts';
import { sentence, TroupeError } from '../../protocol/failures.ts';
import { letYoungGrow } from '../../world/young.ts';
import { flat } from '../terminal/table.ts';
import { type Cli, INTERRUPTED, OK, type Output, usage } from '../verb.ts';
import { type Status, statusOf, untilGone } from './running.ts';
import { troubleText } from './trouble.ts';

const DRAIN_MS = 60_000;
const ANSWER_MS = 10_000;
/** Longer than fifty servers take. */
const START_MS = 3_000;

export async function up(cli: Cli, options: UpOptions): Promise<number> {
  if (options.http !== undefined && !isHttpFlag(options.http))
    throw usage(`--http wants HOST:PORT, a port, or off, not '${options.http}'`);
  const running = await settled(cli);
  if (running) return alreadyRunning(cli.output, running, options);
  if (options.detach) return detach(cli, options);
  try {
    return await foreground(cli, options);
  } catch (error) {
    // Two `up` at the same moment: the other one was faster.
    if (error instanceof TroupeError && error.code === 'busy') return lostTheRace(cli, error);
    throw error;
  }
}

async function foreground({ output, env, paths }: Cli, { http }: UpOptions): Promise<number> {
  const signals = stopSignals();
  // The terminal may be closed before the daemon has stopped, which must still drain.
  for (const stream of [process.stdout, process.stderr]) stream.removeAllListeners('error').on('error', () => {});
  // A limit on the size of files must not kill the daemon: the write fails, like on a full disk.
  process.on('SIGXFSZ', () => {});
  const { runDaemon } = await import('../../daemon/daemon.ts');
  await turn(); // a signal that came meanwhile is told in the next turn
  if (signals.wantStop) return OK; // before there is a directory or a file that nobody wants any more
  const announce = (line: string): void => (output.json ? output.say(line) : output.print(line));
  const complain = (line: string): void => void process.stderr.write(`troupe: ${line}\n`);
  const daemon = await runDaemon({ paths, env, announce, complain, ...(http !== undefined && { http }) });
  signals.pass(() => daemon.stop());
  setTimeout(letYoungGrow, START_MS).unref();
  daemon.ready.then(
    () => output.json && output.print(JSON.stringify({ started: true, daemon: { pid: process.pid } })),
    () => {}, // `stopped` tells how it ended
  );
  const code = await daemon.stopped;
  // Everything is closed by now; a handle that was forgotten must not keep the process alive.
  setTimeout(() => process.exit(code), 1000).unref();
  return code;
}

/** Ctrl-C counts from the first moment: while the daemon is still being made it is remembered, and a second one exits at once. */
function stopSignals() {
  let early = 0;
  let stop = (): void => {
    if (++early > 1) process.exit(INTERRUPTED);
  };
  // SIGHUP too: a closed terminal must not leave children behind.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => stop());
  return {
    get wantStop(): boolean {
      return early > 0;
    },
    pass(to: () => void): void {
      stop = to;
      if (early > 0) stop();
    },
  };
}

/** The daemon that runs on this state directory; one that is stopping is waited for. */
async function settled({ output, paths }: Cli): Promise<Status | undefined> {
  const running = await statusOf(paths);
  if (!running || !['draining', 'stopping', 'stopped'].includes(running.daemon.state)) return running;
  output.say(`waiting for pid ${running.daemon.pid} to finish stopping`);
  return (await untilGone(running.daemon.pid, DRAIN_MS)) ? undefined : running;
}

/** The daemon that was faster may not listen yet, and is given a moment. */
async function lostTheRace(cli: Cli, error: TroupeError): Promise<number> {
  const deadline = performance.now() + ANSWER_MS;
  do {
    const running = await statusOf(cli.paths);
    if (running) return alreadyRunning(cli.output, running);
    await sleep(50);
  } while (performance.now() < deadline);
  throw error;
}

type UpOptions = { readonly config?: string; readonly detach?: boolean; readonly http?: string };

// The first start may have to fetch a nats-server.
const READY_MS = 180_000;
const SETTLE_MS = 15_000;
/** A look costs the daemon a status: who waits long, for a server that hangs, looks rarely. */
const LOOK_MS = 10;
const LOOK_SHARE = 1 / 50;
const REASON_LINES = 50;

async function detach(cli: Cli, options: UpOptions): Promise<number> {
  const { output, paths } = cli;
  const wordsFile = paths.startLog;
  const child = start(cli, options);
  const exited = new Promise<number>((resolve) => {
    child.once('error', () => resolve(1));
    child.once('exit', (code) => resolve(code ?? 1));
  });
  const status = await untilReady(cli, exited, wordsFile);
  if (status.daemon.pid !== child.pid) {
    // Another daemon was faster. Ours may not have noticed, and must not take over when the other is stopped.
    child.kill();
    await exited;
    return alreadyRunning(output, status);
  }
  child.unref();
  if (output.json) output.print(JSON.stringify({ started: true, daemon: status.daemon }));
  else output.print(greeting(output, status));
  const trouble = output.json ? '' : await troubleText(output, status.servers, paths.logFile);
  if (trouble) output.say(trouble);
  return OK;
}

function start({ env, paths }: Cli, options: UpOptions): ChildProcess {
  const script = process.argv[1];
  if (script === undefined) throw new TroupeError('internal', 'troupe cannot tell where its own program is');
  try {
    for (const directory of [paths.state, paths.logs]) ownDirectory(directory);
    // Only the output of this start: the daemon's own log is another file.
    const words = openOwn(paths.startLog, constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND);
    ftruncateSync(words);
    const child = spawn(process.execPath, [...process.execArgv, script, ...commandLine(options, paths.instance)], {
      detached: true,
      stdio: ['ignore', words, words],
      env,
    });
    closeSync(words);
    return child;
  } catch (error) {
    if (error instanceof TroupeError) throw error;
    throw new TroupeError('internal', `troupe cannot write to ${paths.logs}: ${sentence(error)}; set TROUPE_STATE`);
  }
}

function commandLine({ config, http }: UpOptions, instance: string | undefined): string[] {
  const given = Object.entries({ config, http, instance });
  return ['up', ...given.flatMap(([option, value]) => (value === undefined ? [] : [`--${option}`, value]))];
}

async function untilReady({ paths }: Cli, exited: Promise<number>, wordsFile: string): Promise<Status> {
  const from = performance.now();
  const deadline = from + READY_MS;
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
    const pause = sleep(Math.max(LOOK_MS, (performance.now() - from) * LOOK_SHARE));
    await (code === undefined ? Promise.race([pause, exited]) : pause);
  }
  throw new TroupeError(
    'timeout',
    `troupe was not ready within ${READY_MS / 1000} s and is still starting; see \`troupe status\` and \`troupe logs\``,
  );
}

/** Waits for servers that are opening, so that the count of ready ones is true; but not long for one that hangs. */
const isSettled = ({ servers }: Status, runningSince: number): boolean =>
  performance.now() - runningSince > SETTLE_MS || servers.every(({ state }) => state !== 'opening');

/** The last lines of the child's output: they say why it ended. */
function reasonOf(code: number, wordsFile: string): string {
  const words = readFileSync(wordsFile, 'utf8').trim().split('\n').slice(-REASON_LINES).join('\n');
  return words === '' ? `troupe ended with code ${code} before it was ready` : words.replace(/^troupe: /, '');
}

function greeting(output: Output, { daemon, bus, http, servers }: Status): string {
  const ready = servers.filter(({ state }) => state === 'ready').length;
  const to = daemon.instance ? ` --instance ${daemon.instance}` : '';
  return [
    `troupe is running (pid ${daemon.pid}): ${ready} of ${servers.length} servers ready, bus ${bus.state} ${bus.url ?? ''}`.trim(),
    ...(bus.state === 'online' || !bus.lastError ? [] : [`       ${flat(bus.lastError)}`]),
    ...(http?.url ? [`${output.paint('dim', 'hosts ')} ${http.url}/mcp · troupe install <host>`] : []),
    ...(http?.insteadOf ? [`       not on ${http.insteadOf}, which is taken, or was when this port was chosen`] : []),
    `${output.paint('dim', 'look  ')} troupe status${to} · troupe tools${to} · troupe logs -f${to}`,
    `${output.paint('dim', 'call  ')} troupe call <server> <tool> key=value${to}`,
    `${output.paint('dim', 'stop  ')} troupe down${to}`,
  ].join('\n');
}

function alreadyRunning(output: Output, { daemon }: Status, options: UpOptions = {}): number {
  const who = daemon.instance ? `troupe "${daemon.instance}"` : 'troupe';
  const since = new Date(daemon.startedAt).toLocaleString('sv-SE');
  if (output.json) output.print(JSON.stringify({ started: false, daemon }));
  else output.print(`${who} is already running (pid ${daemon.pid}, since ${since}); nothing to start`);
  const given = [options.http !== undefined && '--http', options.config !== undefined && '--config'].filter(Boolean);
  if (given.length > 0) output.say(`${given.join(' and ')} is for the next start: troupe down first`);
  return OK;
}
