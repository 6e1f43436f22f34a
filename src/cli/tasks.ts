// `tasks`: the calls that outlive their callers, newest last; with `-f` as they change; and `tasks prune`, which forgets those
// that have ended.

import type { TaskView } from '../calls/call.ts';
import { type Control, withControl } from './control.ts';
import { usage } from './output.ts';
import { pages } from './task-find.ts';
import { taskTable } from './task-words.ts';
import { followTasks } from './tasks-follow.ts';
import { type Cli, durationMs, OK } from './verb.ts';

export type TasksOptions = { readonly follow?: boolean; readonly all?: boolean; readonly older?: string };

const NONE = 'no tasks; `troupe call <server> <tool> --task` makes one';
/** More than this a person does not read. */
const MOST = 1_000;

export async function tasks(cli: Cli, verb: string | undefined, options: TasksOptions): Promise<number> {
  const { follow, all, older } = options;
  if (verb !== undefined && verb !== 'prune') throw usage(`tasks knows prune, not '${verb}'`);
  if (verb === undefined && older !== undefined) throw usage('--older goes with tasks prune');
  if (verb === 'prune' && (follow || all)) throw usage(`${follow ? '-f' : '--all'} does not go with tasks prune`);
  const olderMs = older === undefined ? 0 : durationMs(older, '--older');
  return withControl(cli.paths.socket, (control) => {
    if (verb === 'prune') return prune(cli, control, olderMs);
    if (follow) return followTasks(cli, control, NONE);
    return cli.output.json ? printAll(cli, control) : list(cli, control, all ? Number.POSITIVE_INFINITY : MOST);
  });
}

async function list({ output }: Cli, control: Control, most: number): Promise<number> {
  const found: TaskView[] = [];
  let hasMore = false;
  for await (const { tasks: some, next } of pages(control)) {
    hasMore = found.length + some.length > most || next !== undefined;
    found.push(...some.slice(0, most - found.length));
    if (found.length >= most) break;
  }
  if (found.length > 0) output.print(taskTable(output, found.reverse()));
  else output.say(NONE);
  if (hasMore) output.say(`these are the newest ${found.length}; \`troupe tasks --all\` lists every one`);
  return OK;
}

/** A program gets all of them, as the daemon wrote them. */
async function printAll({ output }: Cli, control: Control): Promise<number> {
  const found: Buffer[] = [];
  for await (const { raw } of pages(control)) found.push(...raw);
  output.print(`[${found.reverse().join(',')}]`);
  return OK;
}

async function prune({ output }: Cli, control: Control, olderMs: number): Promise<number> {
  const raw = await control.request('tasksPrune', { olderMs }).result;
  const { removed } = JSON.parse(raw.toString()) as { removed: number };
  if (output.json) output.print(raw);
  else output.print(removed === 1 ? '1 task removed' : `${removed} tasks removed`);
  return OK;
}
