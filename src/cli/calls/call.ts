// `call`, `read`, `prompt`, `complete`: one request to one server, with its progress, and with Ctrl-C as cancellation.

import type { TaskView } from '../../calls/call.ts';
import { sentence, TroupeError } from '../../protocol/failures.ts';
import { isEnded } from '../../protocol/tasks.ts';
import { type Control, withControl } from '../control.ts';
import { taskCommand } from '../tasks/words.ts';
import { showProgress } from '../terminal/progress.ts';
import { type Cli, durationMs, INTERRUPTED, OK, type Output, TOOL_ERROR, usage } from '../verb.ts';
import { argumentsJson, stringArguments } from './arguments.ts';
import { isToolError, printContents, printPrompt, printToolResult } from './content.ts';

type CallOptions = TaskOptions & { readonly args?: string };
type Request = { readonly server: string; readonly method: string; readonly params: Buffer; readonly timeout?: string };

const CANCEL_MS = 2000;

export async function call(
  cli: Cli,
  { server, tool, pairs, options }: { server: string; tool: string; pairs: string[]; options: CallOptions },
): Promise<number> {
  checkTaskOptions(options);
  return withControl(cli.paths.socket, async (control) => {
    const schema = pairs.length > 0 ? await inputSchema(control, server, tool) : undefined;
    const args = argumentsJson(pairs, options.args, schema);
    const params = Buffer.concat([Buffer.from(`{"name":${JSON.stringify(tool)},"arguments":`), args, Buffer.from('}')]);
    if (options.task) return createTask(cli, control, { server, tool, params }, options);
    const result = await perform(cli, control, { server, method: 'tools/call', params, ...timeoutOf(options) });
    return result ? printOutcome(cli, result, { server, tool }) : INTERRUPTED;
  });
}

/** Prints the result of a tool, and returns its exit code. */
export function printOutcome(
  { output }: Cli,
  result: Buffer,
  { server, tool }: { server: string; tool: string },
): number {
  if (output.json) output.print(result);
  else printToolResult(output, result);
  if (!isToolError(result)) return OK;
  output.say(output.paint('red', `${tool} of ${server} answered with an error`));
  return TOOL_ERROR;
}

export async function read(cli: Cli, server: string, uri: string, options: CallOptions): Promise<number> {
  return simple(cli, { server, method: 'resources/read', params: json({ uri }), ...timeoutOf(options) }, printContents);
}

export async function prompt(
  cli: Cli,
  { server, name, pairs, options }: { server: string; name: string; pairs: string[]; options: CallOptions },
): Promise<number> {
  const params = json({ name, ...(pairs.length > 0 ? { arguments: stringArguments(pairs) } : {}) });
  return simple(cli, { server, method: 'prompts/get', params, ...timeoutOf(options) }, printPrompt);
}

/** The first pair is to be completed; those after it are what the user has filled in already. */
export async function complete(
  cli: Cli,
  { server, ref, pairs, options }: { server: string; ref: string; pairs: string[]; options: CallOptions },
): Promise<number> {
  const [[name, value] = [], ...known] = Object.entries(stringArguments(pairs));
  if (name === undefined) throw usage('complete wants the argument to complete, as name=beginning');
  const context = known.length > 0 ? { context: { arguments: Object.fromEntries(known) } } : {};
  const params = json({ ref: reference(ref), argument: { name, value }, ...context });
  return simple(cli, { server, method: 'completion/complete', params, ...timeoutOf(options) }, (output, result) => {
    const { completion = {} } = JSON.parse(result.toString());
    for (const each of completion.values ?? []) output.print(String(each));
    if (completion.hasMore) output.say(`there are more${completion.total ? ` (${completion.total} in all)` : ''}`);
  });
}

async function simple(cli: Cli, request: Request, show: (output: Output, result: Buffer) => void): Promise<number> {
  return withControl(cli.paths.socket, async (control) => {
    const result = await perform(cli, control, request);
    if (!result) return INTERRUPTED;
    if (cli.output.json) cli.output.print(result);
    else show(cli.output, result);
    return OK;
  });
}

/** The bytes of the result, or nothing when the user interrupted. */
async function perform({ output, paths }: Cli, control: Control, request: Request): Promise<Buffer | undefined> {
  const { server, method, params, timeout } = request;
  const timeoutMs = timeout === undefined ? '' : `,"timeoutMs":${durationMs(timeout, '--timeout')}`;
  const head = `{"server":${JSON.stringify(server)},"method":${JSON.stringify(method)}${timeoutMs},"params":`;
  const body = Buffer.concat([Buffer.from(head), params, Buffer.from('}')]);
  const progress = showProgress(output, { server, instance: paths.instance });
  // The listener comes first: from the moment the call is sent, Ctrl-C must cancel it.
  const interrupt = onInterrupt(output, () => pending.cancel());
  const pending = control.request('call', body, progress.onNotice);
  try {
    const result = await Promise.race([pending.result, interrupt.givenUp]);
    return interrupt.happened() ? undefined : result;
  } catch (error) {
    if (!interrupt.happened()) throw error;
    output.say(sentence(error)); // it says whether the call had been sent
    return undefined;
  } finally {
    interrupt.forget();
    progress.end();
  }
}

/** The first Ctrl-C cancels and waits a little for the outcome; the second leaves at once. */
function onInterrupt(output: Output, cancel: () => void) {
  let timer: NodeJS.Timeout | undefined;
  let giveUp = (_: undefined): void => {};
  const givenUp = new Promise<undefined>((resolve) => {
    giveUp = resolve;
  });
  const listener = (): void => {
    if (timer) process.exit(INTERRUPTED);
    output.say('\ncancelling; Ctrl-C again leaves at once');
    cancel();
    timer = setTimeout(() => giveUp(undefined), CANCEL_MS);
  };
  process.on('SIGINT', listener);
  const forget = (): void => {
    process.off('SIGINT', listener);
    clearTimeout(timer);
  };
  return { givenUp, happened: () => timer !== undefined, forget };
}

/** The tool's inputSchema if the catalog has it; without it the call is made all the same, and its answer says what is wrong. */
async function inputSchema(control: Control, server: string, tool: string): Promise<unknown> {
  try {
    const { items } = await control.ask('list', { kind: 'tools', server });
    return items.find(({ item }) => item.name === tool)?.item.inputSchema;
  } catch (error) {
    if (error instanceof TroupeError && error.code !== 'lost') return undefined;
    throw error;
  }
}

function reference(ref: string): object {
  const [, kind, rest = ''] = /^(prompt|resource):(.+)$/.exec(ref) ?? [];
  if (kind === 'prompt') return { type: 'ref/prompt', name: rest };
  if (kind === 'resource' && !rest.startsWith('//')) return { type: 'ref/resource', uri: rest };
  return ref.includes('://') ? { type: 'ref/resource', uri: ref } : { type: 'ref/prompt', name: ref };
}

const json = (value: object): Buffer => Buffer.from(JSON.stringify(value));
const timeoutOf = ({ timeout }: CallOptions) => (timeout === undefined ? {} : { timeout });

type TaskOptions = {
  readonly task?: boolean;
  readonly ttl?: string;
  readonly key?: string;
  readonly timeout?: string;
};
type Order = { readonly server: string; readonly tool: string; readonly params: Buffer };

/** Options that contradict each other are refused before anything is sent. */
function checkTaskOptions({ task, ttl, key, timeout }: TaskOptions): void {
  if (!task && ttl !== undefined) throw usage('--ttl goes with --task');
  if (!task && key !== undefined) throw usage('--key goes with --task');
  if (task && timeout !== undefined) throw usage('--timeout does not go with --task; --ttl says how long it may live');
  if (ttl !== undefined) durationMs(ttl, '--ttl');
  if (key === '') throw usage('--key wants a word that only this call has');
}

/** `call --task`: a call that outlives this process. The id alone goes to stdout, so that a script can keep it. */
async function createTask({ output, paths }: Cli, control: Control, order: Order, options: TaskOptions) {
  const { ttl, key } = options;
  const named = {
    server: order.server,
    tool: order.tool,
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
  output.print(taskId);
  const [get, result] = ['get', 'result'].map((verb) => taskCommand(verb, taskId, paths.instance));
  const isKnown = key !== undefined && isEnded(status);
  output.say(
    isKnown
      ? `this key has a task already, which is ${status}: \`${result}\` shows what it came to; another key makes another task`
      : `\`${get}\` shows it, \`${result}\` waits for it`,
  );
  return OK;
}
