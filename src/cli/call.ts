// `call`, `read`, `prompt`, `complete`: one request to one server, with its progress, and with Ctrl-C as cancellation.

import { sentence, TroupeError } from '../protocol/failures.ts';
import { argumentsJson, stringArguments } from './arguments.ts';
import { isToolError, printContents, printPrompt, printToolResult } from './content.ts';
import { type Control, withControl } from './control.ts';
import { type Output, usage } from './output.ts';
import { showProgress } from './progress.ts';
import { checkTaskOptions, createTask, type TaskOptions } from './task-create.ts';
import { type Cli, durationMs, INTERRUPTED, OK, TOOL_ERROR } from './verb.ts';

export type CallOptions = TaskOptions & { readonly args?: string };
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

/** What a tool came to, and the exit code that says so. */
export function printOutcome(
  { output }: Cli,
  result: Buffer,
  { server, tool }: { server: string; tool: string },
): number {
  if (output.json) output.print(result);
  else printToolResult(output, result);
  if (!isToolError(result)) return OK;
  output.say(output.paint('red', `${output.safe(tool)} of ${output.safe(server)} answered with an error`));
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
    for (const each of completion.values ?? []) output.print(output.safe(String(each)));
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

/** The result as it came, or nothing when the user interrupted. */
async function perform({ output, paths }: Cli, control: Control, request: Request): Promise<Buffer | undefined> {
  const { server, method, params, timeout } = request;
  const timeoutMs = timeout === undefined ? '' : `,"timeoutMs":${durationMs(timeout, '--timeout')}`;
  const head = `{"server":${JSON.stringify(server)},"method":${JSON.stringify(method)}${timeoutMs},"params":`;
  const body = Buffer.concat([Buffer.from(head), params, Buffer.from('}')]);
  const progress = showProgress(output, { server, instance: paths.instance });
  // Listening comes first: once the call is out, Ctrl-C must find somebody to cancel it.
  const interrupt = onInterrupt(output, () => pending.cancel());
  const pending = control.request('call', body, progress.onNotice);
  try {
    const result = await Promise.race([pending.result, interrupt.givenUp]);
    return interrupt.happened() ? undefined : result;
  } catch (error) {
    if (!interrupt.happened()) throw error;
    output.say(sentence(error)); // whether it had been sent is what the caller must know now
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

/** The tool's inputSchema if the catalog has it; else the call goes out without, and says itself what is wrong. */
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
