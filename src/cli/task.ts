// `task get|result|wait|cancel`: one task, named by its id or by how that begins. `result` prints what `call` would have printed
// and ends as it would have; `wait` only says how it ended: 0 completed, 5 the tool returned an error, 1 failed or cancelled.

import type { TaskView } from '../calls/call.ts';
import { answerCommand, oneLine } from './answer-words.ts';
import { barCell } from './bars.ts';
import { printOutcome } from './call.ts';
import { isToolError } from './content.ts';
import { type Control, withControl } from './control.ts';
import { usage } from './output.ts';
import { ago } from './table.ts';
import { findTask } from './task-find.ts';
import { asksOf, waitFor } from './task-wait.ts';
import { callText, isOpen, OWNER, statusText, styleOf } from './task-words.ts';
import { type Cli, durationMs, FAILED, INTERRUPTED, OK, TOOL_ERROR } from './verb.ts';

export type TaskVerbOptions = { readonly timeout?: string };
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
  const rows: [string, string][] = [
    ['id', oneLine(id)],
    ['call', callText(now)],
    ...(now.principal === OWNER ? [] : ([['for', oneLine(now.principal)]] as [string, string][])),
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
  if ('failed' in came && isOpen(now)) throw came.failed; // the waiting has failed, and not the task
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
