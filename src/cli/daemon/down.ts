// `down`: asks the daemon to drain and stop, and returns when its process is gone. Processes that a killed daemon left behind
// are ended too. With `--all` every daemon on the state directory is stopped.

import { instanceOfLock, type Paths, realPathsOf } from '../../config/paths.ts';
import { TroupeError } from '../../protocol/failures.ts';
import { withControl } from '../control.ts';
import { type Cli, OK } from '../verb.ts';
import { isAlive, notedPid, untilGone } from './running.ts';

const DOWN_MS = 90_000;
const CLOSING_MS = 10_000;

export async function down(cli: Cli, { all = false }: { readonly all?: boolean } = {}): Promise<number> {
  const { output, paths } = cli;
  if (all) return downAll(cli);
  const pid = await stop(paths);
  if (pid === undefined) return nothingRuns(cli);
  if (output.json) output.print(JSON.stringify({ stopped: true, pid }));
  else output.print(`${nameOf(paths)} has stopped (pid ${pid})`);
  return OK;
}

/** All at once: each drains its own calls, and the last one takes the nats-server with it. */
async function downAll(cli: Cli): Promise<number> {
  const { output, paths } = cli;
  const stopped = await Promise.all(
    (await daemonsBeside(cli, () => true)).map(async (each) => ({ paths: each, pid: await stop(each) })),
  );
  const gone = stopped.filter(({ pid }) => pid !== undefined);
  const ended = await leftovers(paths);
  const daemons = gone.map(({ paths: { instance = null }, pid }) => ({ instance, pid }));
  if (output.json) output.print(JSON.stringify({ stopped: gone.length > 0, daemons, ended }));
  for (const { paths: each, pid } of output.json ? [] : gone) output.print(`${nameOf(each)} has stopped (pid ${pid})`);
  if (!output.json && (gone.length === 0 || ended.length > 0)) output.print(nothingStopped(paths, ended));
  return OK;
}

/** The daemons on this state directory that hold their lock, whether they answer or not. */
async function daemonsBeside({ env, paths }: Cli, isMeant: (beside: Paths) => boolean): Promise<Paths[]> {
  const { isHeld, locksIn } = await import('../../store/lock.ts');
  return locksIn(paths.state, 'daemon')
    .map((lock) => realPathsOf(env, { config: paths.config, instance: instanceOfLock(lock) ?? '' }))
    .filter((beside) => isMeant(beside) && isHeld(beside.state, beside.lock));
}

/** The pid of the daemon that is gone now, or nothing when none ran. */
async function stop(paths: Paths): Promise<number | undefined> {
  const pid = await askToStop(paths);
  if (pid !== undefined && !(await untilGone(pid, DOWN_MS)))
    throw stuck(pid, `is still stopping after ${DOWN_MS / 1000} s`);
  return pid;
}

async function askToStop(paths: Paths): Promise<number | undefined> {
  try {
    return await withControl(paths.socket, async (control) => {
      const { daemon } = await control.ask('status');
      await control.ask('down');
      return daemon.pid;
    });
  } catch (error) {
    if (!(error instanceof TroupeError)) throw error;
    if (error.code === 'lost') return notedPid(paths); // it stopped while we asked
    const pid = error.code === 'timeout' ? notedPid(paths) : undefined;
    if (pid !== undefined) throw stuck(pid, 'does not answer');
    if (error.code !== 'unavailable') throw error;
    return undefined;
  }
}

const stuck = (pid: number, how: string): TroupeError =>
  new TroupeError(
    'timeout',
    `troupe (pid ${pid}) ${how}; \`kill -9 ${pid}\` ends it, and the next start sweeps its servers`,
  );

async function nothingRuns(cli: Cli): Promise<number> {
  const { output, paths } = cli;
  const ended = await leftovers(paths);
  if (output.json) output.print(JSON.stringify({ stopped: false, ended }));
  else output.print(nothingStopped(paths, ended));
  const others = await daemonsBeside(cli, ({ lock }) => lock !== paths.lock);
  if (others.length > 0)
    output.say(`${others.map(nameOf).join(', ')} still runs here; \`troupe down --all\` stops every one`);
  return OK;
}

/** Ends what a killed daemon left. A daemon whose socket is closed may be in its last moments, which are waited for. */
async function leftovers(paths: Paths): Promise<string[]> {
  const deadline = performance.now() + CLOSING_MS;
  for (let pid = notedPid(paths); pid && isAlive(pid) && performance.now() < deadline; pid = notedPid(paths))
    await untilGone(pid, 100);
  const { endLeftovers } = await import('../../daemon/leftovers.ts');
  return endLeftovers(paths);
}

function nothingStopped(paths: Paths, ended: readonly string[]): string {
  if (ended.length === 0) return `${nameOf(paths)} is not running; nothing to stop`;
  return `${nameOf(paths)} was not running; ended what an earlier one had left: ${ended.join(', ')}`;
}

const nameOf = ({ instance }: Paths): string => (instance === undefined ? 'troupe' : `troupe "${instance}"`);
