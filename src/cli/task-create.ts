// `call --task`: makes a call that outlives this process. The id alone goes to stdout, so that a script can keep it.

import type { TaskView } from '../calls/call.ts';
import { isEnded } from '../protocol/tasks.ts';
import type { Control } from './control.ts';
import { usage } from './output.ts';
import { taskCommand } from './task-words.ts';
import { type Cli, durationMs, OK } from './verb.ts';

export type TaskOptions = {
  readonly task?: boolean;
  readonly ttl?: string;
  readonly key?: string;
  readonly timeout?: string;
};
export type Order = { readonly server: string; readonly tool: string; readonly params: Buffer };

/** What cannot be meant is said before anything is sent. */
export function checkTaskOptions({ task, ttl, key, timeout }: TaskOptions): void {
  if (!task && ttl !== undefined) throw usage('--ttl goes with --task');
  if (!task && key !== undefined) throw usage('--key goes with --task');
  if (task && timeout !== undefined) throw usage('--timeout does not go with --task; --ttl says how long it may live');
  if (ttl !== undefined) durationMs(ttl, '--ttl');
  if (key === '') throw usage('--key wants a word that only this call has');
}

export async function createTask({ output, paths }: Cli, control: Control, order: Order, options: TaskOptions) {
  const { ttl, key } = options;
  const named = {
    ...{ server: order.server, tool: order.tool },
    ...(ttl !== undefined && { ttlMs: durationMs(ttl, '--ttl') }),
    ...(key !== undefined && { key }),
  };
  const head = `${JSON.stringify(named).slice(0, -1)},"params":`;
  const body = Buffer.concat([Buffer.from(head), order.params, Buffer.from('}')]);
  const raw = await control.request('taskCreate', body).result;
  if (output.json) {
    output.print(raw);
    return OK;
  }
  const { taskId, status } = JSON.parse(raw.toString()) as TaskView;
  output.print(output.safe(taskId));
  const [get, result] = ['get', 'result'].map((verb) => taskCommand(verb, taskId, paths.instance));
  const isKnown = key !== undefined && isEnded(status);
  output.say(
    isKnown
      ? `this key has a task already, which is ${status}: \`${result}\` shows what it came to; another key makes another task`
      : `\`${get}\` shows it, \`${result}\` waits for it`,
  );
  return OK;
}
