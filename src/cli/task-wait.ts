// Waiting for one task: its progress and its questions are told meanwhile, and whoever stops waiting leaves it running.

import { setTimeout as wait } from 'node:timers/promises';
import type { AskView } from '../asks/ask.ts';
import type { TaskView } from '../calls/call.ts';
import { TroupeError } from '../protocol/failures.ts';
import type { Control } from './control.ts';
import { openAsks } from './inbox.ts';
import { showProgress } from './progress.ts';
import { ago } from './table.ts';
import { pageOf } from './task-find.ts';
import { isOpen, taskCommand } from './task-words.ts';
import type { Cli } from './verb.ts';

/** What it came to; nothing when the user pressed Ctrl-C. */
export type Came = { readonly result: Buffer } | { readonly failed: TroupeError } | undefined;
export type Waiting = { readonly task: TaskView; readonly verb: string; readonly timeoutMs: number | undefined };

const QUIET_MS = 200;

export async function waitFor(cli: Cli, control: Control, { task, verb, timeoutMs }: Waiting): Promise<Came> {
  const { output, paths } = cli;
  const again = taskCommand(verb, task.taskId, paths.instance);
  const leaving = new AbortController();
  let why: 'interrupted' | 'late' | undefined;
  const leave = (reason: 'interrupted' | 'late') => (): void => {
    why ??= reason;
    control.close(); // whatever waits for an answer fails
  };
  const interrupt = leave('interrupted');
  process.on('SIGINT', interrupt);
  const timer = timeoutMs === undefined ? undefined : setTimeout(leave('late'), timeoutMs);
  const pending = control.request('taskResult', { id: task.taskId });
  const progress = showProgress(output, { server: task.server, instance: paths.instance });
  void attend(cli, { control, task, progress, signal: leaving.signal }).catch(() => {}); // the result says what is wrong
  try {
    return { result: await pending.result };
  } catch (error) {
    progress.end();
    if (!(error instanceof TroupeError)) throw error;
    if (why === 'interrupted') return void output.say(`\nthe task goes on; \`${again}\` waits for it again`);
    if (why === 'late')
      throw new TroupeError('timeout', `not done after ${ago(timeoutMs ?? 0)}; it goes on: \`${again}\``);
    // A call that was lost comes with what is known of it; without that it is the daemon that is gone.
    if (error.code === 'lost' && error.cause === undefined)
      throw new TroupeError('unavailable', `troupe went away; the task is kept, and \`${again}\` waits for it again`);
    return { failed: error };
  } finally {
    leaving.abort();
    clearTimeout(timer);
    process.off('SIGINT', interrupt);
    progress.end();
  }
}

type Attended = {
  readonly control: Control;
  readonly task: TaskView;
  readonly progress: ReturnType<typeof showProgress>;
  readonly signal: AbortSignal;
};

async function attend({ output }: Cli, { control, task, progress, signal }: Attended): Promise<void> {
  const id = task.taskId;
  let wasTold = false;
  for (
    let { version } = await pageOf(control);
    !signal.aborted;
    version = (await pageOf(control, { since: version })).version
  ) {
    const now = await control.ask('taskGet', { id });
    const asks = now.status === 'input_required' ? await asksOf(control, id) : [];
    if (signal.aborted || !isOpen(now)) return;
    for (const { id: ask, kind } of asks) progress.onNotice({ method: 'ask', params: { ask, kind } });
    if (now.status === 'input_required' && asks.length === 0 && !wasTold) {
      output.say('it waits for an answer; see `troupe inbox`');
      wasTold = true;
    }
    if (now.progress && now.status === 'working') progress.onNotice({ method: 'progress', params: now.progress });
    await wait(QUIET_MS, undefined, { signal });
  }
}

/** The questions that it waits for. */
export async function asksOf(control: Control, id: string): Promise<AskView[]> {
  const { asks } = await openAsks(control);
  return asks.filter(({ task }) => task === id);
}
