// `add`, `rm`: one server of the configuration. A running daemon takes the change up at once.

import { existsSync, renameSync, rmSync } from 'node:fs';
import { defaultConfig } from '../config/defaults.ts';
import { addServer, removeServer } from '../config/edit.ts';
import type { ServerDefinition } from '../config/schema.ts';
import { sentence, TroupeError } from '../failures.ts';
import { withControl } from './control.ts';
import { statusOf } from './daemon-status.ts';
import { usage } from './output.ts';
import { type Cli, OK } from './verb.ts';

type Reload = Readonly<Record<'added' | 'removed' | 'relaunched' | 'retuned', readonly string[]>>;

export type AddOptions = { readonly env?: readonly string[]; readonly cwd?: string; readonly config?: string };

export async function add(cli: Cli, name: string, words: readonly string[], options: AddOptions): Promise<number> {
  const [command, ...args] = words;
  if (command === undefined)
    throw usage(`add wants the command after two dashes: troupe add ${name} -- npx -y <package>`);
  const env = Object.fromEntries((options.env ?? []).map(variable));
  const definition = {
    command,
    ...(args.length > 0 ? { args } : {}),
    ...(options.env?.length ? { env } : {}),
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
  };
  const file = await configFile(cli, options.config);
  const isFirst = !existsSync(file) && (await statusOf(cli.paths))?.daemon.config === null;
  if (isFirst) addWithReference(cli, file, name, definition);
  else addServer(file, name, definition);
  return tellDaemon(cli, { done: `added ${name} to ${file}`, change: { added: [name], config: file } });
}

/** What runs without a file goes on running: all is written in one step, so that no reload sees half of it. */
function addWithReference({ output, paths }: Cli, file: string, name: string, definition: ServerDefinition): void {
  const draft = `${file}.draft`;
  try {
    for (const { name: known, command, args, env } of defaultConfig(paths).servers)
      addServer(draft, known, { command, args, ...(Object.keys(env).length > 0 && { env }) });
    addServer(draft, name, definition);
    renameSync(draft, file);
  } finally {
    rmSync(draft, { force: true });
  }
  output.say(`wrote the reference servers to ${file} too; troupe rm takes them out again`);
}

export async function remove(cli: Cli, name: string, options: { readonly config?: string }): Promise<number> {
  const file = await configFile(cli, options.config);
  removeServer(file, name);
  return tellDaemon(cli, { done: `removed ${name} from ${file}`, change: { removed: [name], config: file } });
}

/** The file that counts: the one named, else the running daemon's own, else the default. */
export async function configFile({ env, paths }: Cli, named: string | undefined): Promise<string> {
  if (named !== undefined || env.TROUPE_CONFIG) return named ?? paths.config;
  return (await statusOf(paths))?.daemon.config ?? paths.config;
}

/** After an edit the running daemon reloads at once, so that what is said here is already true. */
export async function tellDaemon(cli: Cli, { done, change }: { done: string; change: object }): Promise<number> {
  const { output, paths } = cli;
  let reload: Reload | undefined;
  let trouble: string | undefined;
  try {
    reload = await withControl(paths.socket, (socket) => socket.ask<Reload>('reload'));
  } catch (error) {
    if (!(error instanceof TroupeError)) throw error;
    if (error.code !== 'unavailable') trouble = sentence(error);
  }
  if (output.json) output.print(JSON.stringify({ ...change, reload: reload ?? null }));
  else output.print(done);
  if (trouble !== undefined) throw new TroupeError('invalid', `${done}, but the running daemon refused it: ${trouble}`);
  output.say(reload ? 'the running daemon has taken it up' : 'it takes effect with `troupe up`');
  return OK;
}

function variable(text: string): [string, string] {
  const at = text.indexOf('=');
  if (at < 1) throw usage(`--env wants NAME=value, not '${text}'`);
  return [text.slice(0, at), text.slice(at + 1)];
}
