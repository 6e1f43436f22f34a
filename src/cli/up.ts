// `up` in the foreground is the daemon itself; Ctrl-C drains it, a second one stops it at once.
// Whoever comes second on a state directory is told who runs, and starts nothing.

import { setTimeout as sleep } from 'node:timers/promises';
import { isHttpFlag } from '../config/http.ts';
import { TroupeError } from '../protocol/failures.ts';
import { type Status, statusOf, untilGone } from './daemon-status.ts';
import { alreadyRunning, detach, type UpOptions } from './detach.ts';
import { usage } from './output.ts';
import { type Cli, INTERRUPTED } from './verb.ts';

const DRAIN_MS = 60_000;
const ANSWER_MS = 10_000;

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
  // The terminal may go before the daemon does; it drains all the same.
  for (const stream of [process.stdout, process.stderr]) stream.removeAllListeners('error').on('error', () => {});
  // A limit on the size of files is like a full disk: the write fails, and whoever wrote deals with that.
  process.on('SIGXFSZ', () => {});
  const { runDaemon } = await import('../daemon/daemon.ts');
  const announce = (line: string): void => (output.json ? output.say(line) : output.print(line));
  const daemon = await runDaemon({ paths, env, announce, ...(http !== undefined && { http }) });
  signals.pass(() => daemon.stop());
  daemon.ready.then(
    () => output.json && output.print(JSON.stringify({ started: true, daemon: { pid: process.pid } })),
    () => {}, // `stopped` tells how it ended
  );
  const code = await daemon.stopped;
  // Everything is closed by now; a handle somebody forgot must not keep the process.
  setTimeout(() => process.exit(code), 1000).unref();
  return code;
}

/** Ctrl-C counts from the first moment: one while the daemon is being made stops it then, a second one leaves at once. */
function stopSignals() {
  let early = 0;
  let stop = (): void => {
    if (++early > 1) process.exit(INTERRUPTED);
  };
  // A closed terminal must not leave children behind either.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => stop());
  return {
    pass(to: () => void): void {
      stop = to;
      if (early > 0) stop();
    },
  };
}

/** The daemon that runs here, if one does; one that is on its way out is waited for. */
async function settled({ output, paths }: Cli): Promise<Status | undefined> {
  const running = await statusOf(paths);
  if (!running || !['draining', 'stopping', 'stopped'].includes(running.daemon.state)) return running;
  output.say(`waiting for pid ${running.daemon.pid} to finish stopping`);
  return (await untilGone(running.daemon.pid, DRAIN_MS)) ? undefined : running;
}

/** The other one may not listen yet; it is given a moment to say who it is. */
async function lostTheRace(cli: Cli, error: TroupeError): Promise<number> {
  const deadline = performance.now() + ANSWER_MS;
  do {
    const running = await statusOf(cli.paths);
    if (running) return alreadyRunning(cli.output, running);
    await sleep(50);
  } while (performance.now() < deadline);
  throw error;
}
