// `task get|result|wait|cancel`: one task, named by its id or the beginning of it. `result` prints what `call` would have
// printed, with the same exit code; `wait` prints only how the task ended: exit code 0 completed, 5 the tool returned an
// error, 1 failed or cancelled.

import { setTimeout as sleep } from 'node:timers/promises';
import type { AskView } from '../../asks/ask.ts';
import type { TaskView } from '../../calls/call.ts';
import { TroupeError } from '../../protocol/failures.ts';
import { openAsks } from '../answer/inbox.ts';
import { printOutcome } from '../calls/call.ts';
import { isToolError } from '../calls/content.ts';
import { type Control, withControl } from '../control.ts';
import { barCell, showProgress } from '../terminal/progress.ts';
import { ago } from '../terminal/table.ts';
import { answerCommand, oneLine } from '../terminal/words.ts';
import { type Cli, durationMs, FAILED, INTERRUPTED, OK, TOOL_ERROR, usage } from '../verb.ts';
import { findTask, pageOf } from './find.ts';
import { callText, isOpen, OWNER, statusText, styleOf, taskCommand } from './words.ts';

type TaskVerbOptions = { readonly timeout?: string };
type Doing = {
  readonly control: Control;
  readonly task: TaskView;
  readonly timeoutMs: number | undefined;
};

export async function task(cli: Cli, verb: string, id: string, { timeout }: TaskVerbOptions): Promise<number> {
  const verbs: Record<string, (cli: Cli, doing: Doing) => Promise<number>> = { get, result, wait, cancel };
  const work = Object.hasOwn(verbs, verb) ? verbs[verb] : undefined;
  if (!work) throw usage(`task knows ${Object.keys(verbs).join(', ')}, not '${verb}'`);
  if (timeout !== undefined && work !== wait && work !== result)
    throw usage('--timeout goes with task wait and result');
  const timeoutMs = timeout === undefined ? undefined : durationMs(timeout, '--timeout');
  return withControl(cli.paths.socket, async (control) =>
    work(cli, { control, task: await findTask(control, id), timeoutMs }),
  );
}

async function get({ output, paths }: Cli, { control, task: found }: Doing): Promise<number> {
  const id = found.taskId;
  const raw = await control.request('taskGet', { id }).result;
  if (output.json) {
    output.print(raw);
    return OK;
  }
  const now = JSON.parse(raw.toString()) as TaskView;
  const asks = now.status === 'input_required' ? await asksOf(control, id) : [];
  const answers = asks.map((ask) => answerCommand(ask.id, paths.instance)).join(', ') || 'see `troupe inbox`';
  const rows: readonly (readonly [string, string])[] = [
    ['id', oneLine(id)],
    ['call', callText(now)],
    ['for', now.principal === OWNER ? '' : oneLine(now.principal)],
    ['status', output.paint(styleOf(now), statusText(now)) + (now.attempt > 1 ? `  sent ${now.attempt} times` : '')],
    ['message', oneLine(now.statusMessage ?? '')],
    ['progress', now.progress ? barCell(now.progress, 24) : ''],
    ['answer', now.status === 'input_required' ? answers : ''],
    ['created', timeText(now.createdAt)],
    ['updated', timeText(now.lastUpdatedAt)],
    ['kept', `for ${ago(now.ttl)} from its creation`],
  ];
  const filled = rows.filter(([, text]) => text !== '');
  output.print(filled.map(([title, text]) => `${output.paint('dim', title.padEnd(8))} ${text}`).join('\n'));
  return OK;
}

const timeText = (iso: string): string => `${oneLine(iso)}, ${ago(Date.now() - Date.parse(iso))} ago`;

async function result(cli: Cli, { control, task: found, timeoutMs }: Doing): Promise<number> {
  const came = await waitFor(cli, control, { task: found, verb: 'result', timeoutMs });
  if (!came) return INTERRUPTED;
  if ('failed' in came) throw came.failed;
  return printOutcome(cli, came.result, found);
}

async function wait(cli: Cli, { control, task: found, timeoutMs }: Doing): Promise<number> {
  const { output } = cli;
  const came = await waitFor(cli, control, { task: found, verb: 'wait', timeoutMs });
  if (!came) return INTERRUPTED;
  const raw = await control.request('taskGet', { id: found.taskId }).result;
  const now = JSON.parse(raw.toString()) as TaskView;
  if ('failed' in came && isOpen(now)) throw came.failed; // the waiting failed, not the task
  output.print(output.json ? raw : statusText(now));
  if ('result' in came) return isToolError(came.result) ? TOOL_ERROR : OK;
  output.say(oneLine(came.failed.message));
  return FAILED;
}

async function cancel({ output }: Cli, { control, task: found }: Doing): Promise<number> {
  const raw = await control.request('taskCancel', { id: found.taskId }).result;
  const fate = found.phase === 'queued' ? 'it had not been sent' : `${oneLine(found.server)} is told to stop`;
  output.print(output.json ? raw : `cancelled ${callText(found)}; ${fate}`);
  return OK;
}

/** How the task ended; nothing when the user pressed Ctrl-C. */
type Came = { readonly result: Buffer } | { readonly failed: TroupeError } | undefined;
type Waiting = { readonly task: TaskView; readonly verb: string; readonly timeoutMs: number | undefined };

const QUIET_MS = 200;

/** Shows the task's progress and questions meanwhile. Ctrl-C and `--timeout` end the waiting, not the task. */
async function waitFor(cli: Cli, control: Control, { task, verb, timeoutMs }: Waiting): Promise<Came> {
  const { output, paths } = cli;
  const again = taskCommand(verb, task.taskId, paths.instance);
  const leaving = new AbortController();
  let why: 'interrupted' | 'late' | undefined;
  const leave = (reason: 'interrupted' | 'late') => (): void => {
    why ??= reason;
    control.close(); // every request that is still unanswered fails
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
    // A lost call has details in its error; `lost` without details means that the daemon is gone.
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
    await sleep(QUIET_MS, undefined, { signal });
  }
}

/** The open questions of a task. */
async function asksOf(control: Control, id: string): Promise<AskView[]> {
  const { asks } = await openAsks(control);
  return asks.filter(({ task }) => task === id);
}
