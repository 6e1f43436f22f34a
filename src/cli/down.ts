// `down`: asks the daemon to drain and stop, and returns when its process is gone. After it nothing of ours runs: what a
// killed daemon had left is ended too.

import { TroupeError } from '../failures.ts';
import { withControl } from './control.ts';
import { isAlive, notedPid, type Status, untilGone } from './daemon-status.ts';
import { type Cli, OK } from './verb.ts';

const DOWN_MS = 90_000;
const CLOSING_MS = 10_000;

export async function down(cli: Cli): Promise<number> {
  const pid = await askToStop(cli);
  if (pid === undefined) return nothingRuns(cli);
  if (!(await untilGone(pid, DOWN_MS))) throw stuck(pid, `is still stopping after ${DOWN_MS / 1000} s`);
  if (cli.output.json) cli.output.print(JSON.stringify({ stopped: true, pid }));
  else cli.output.print(`troupe has stopped (pid ${pid})`);
  return OK;
}

async function askToStop({ paths }: Cli): Promise<number | undefined> {
  try {
    return await withControl(paths.socket, async (control) => {
      const { daemon } = await control.ask<Status>('status');
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

/** The socket is shut: never started, crashed, or in its last moments, for which we wait. */
async function nothingRuns({ output, paths }: Cli): Promise<number> {
  const deadline = performance.now() + CLOSING_MS;
  for (let pid = notedPid(paths); pid && isAlive(pid) && performance.now() < deadline; pid = notedPid(paths))
    await untilGone(pid, 100);
  const { endLeftovers } = await import('../leftovers.ts');
  const ended = await endLeftovers(paths);
  if (output.json) output.print(JSON.stringify({ stopped: false, ended }));
  else if (ended.length === 0) output.print('troupe is not running; nothing to stop');
  else output.print(`troupe was not running; ended what an earlier one had left: ${ended.join(', ')}`);
  return OK;
}
