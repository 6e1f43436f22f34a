// `add`, `rm`: one server of the configuration. A running daemon takes the change up at once.

import { existsSync, renameSync, rmSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { defaultConfig } from '../../config/defaults.ts';
import { isObject } from '../../config/definition.ts';
import { readDocument } from '../../config/file/document.ts';
import { addServer, removeServer } from '../../config/file/edit.ts';
import type { ServerDefinition } from '../../config/schema.ts';
import { sentence, TroupeError } from '../../protocol/failures.ts';
import { withControl } from '../control.ts';
import { type ServerStatus, statusOf } from '../daemon/running.ts';
import { troubleText } from '../daemon/trouble.ts';
import { type Cli, OK, usage } from '../verb.ts';

type Reload = Readonly<Record<'added' | 'removed' | 'relaunched' | 'retuned', readonly string[]>>;

export type AddOptions = {
  readonly env?: readonly string[];
  readonly cwd?: string;
  readonly url?: string;
  readonly header?: readonly string[];
  readonly type?: string;
  readonly config?: string;
};

export async function add(cli: Cli, name: string, words: readonly string[], options: AddOptions): Promise<number> {
  const definition = options.url === undefined ? launched(name, words, options) : remote(options.url, words, options);
  const file = await configFile(cli, options.config);
  const isFirst = !existsSync(file) && (await statusOf(cli.paths))?.daemon.config === null;
  if (isFirst) addWithReference(cli, file, name, definition);
  else addServer(file, name, definition);
  return tellDaemon(cli, { done: `added ${name} to ${file}`, change: { added: [name], config: file } });
}

function launched(name: string, words: readonly string[], { env, cwd, header, type }: AddOptions): ServerDefinition {
  const [command, ...args] = words;
  if (command === undefined)
    throw usage(`add wants a command or a url: troupe add ${name} -- npx -y <package>, troupe add ${name} --url <url>`);
  if (header?.length || type !== undefined) throw usage('--header and --type go with --url');
  return {
    command,
    ...(args.length > 0 && { args }),
    ...(env?.length && { env: pairs(env, '--env') }),
    ...(cwd !== undefined && { cwd }),
  };
}

function remote(url: string, words: readonly string[], { env, cwd, header, type }: AddOptions): ServerDefinition {
  if (words.length > 0 || env?.length || cwd !== undefined)
    throw usage('a server behind a url has no command, --env or --cwd; leave them out, or the url');
  return {
    ...(type !== undefined && { type }),
    url,
    ...(header?.length && { headers: pairs(header, '--header') }),
  };
}

/** The reference servers, which run while there is no file, are written too. It is one step, so that no reload sees half of it. */
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
  const [profile] = profilesWith(name, readDocument(file).value);
  if (profile !== undefined)
    throw usage(`profile ${JSON.stringify(profile)} of ${file} names ${name}; take it out of the profile first`);
  removeServer(file, name);
  return tellDaemon(cli, { done: `removed ${name} from ${file}`, change: { removed: [name], config: file } });
}

/** The profiles that name the server: without it the file would be refused. */
function profilesWith(name: string, document: unknown): string[] {
  const troupe = isObject(document) ? document['x-troupe'] : undefined;
  const profiles = isObject(troupe) && isObject(troupe.profiles) ? troupe.profiles : {};
  return Object.entries(profiles).flatMap(([profile, value]) =>
    isObject(value) && Array.isArray(value.servers) && value.servers.includes(name) ? [profile] : [],
  );
}

/** The file to change: the one named, else the running daemon's own, else the default. */
export async function configFile({ env, paths }: Cli, named: string | undefined): Promise<string> {
  if (named !== undefined || env.TROUPE_CONFIG) return named ?? paths.config;
  return (await statusOf(paths))?.daemon.config ?? paths.config;
}

/** After an edit the running daemon reloads before anything is printed, so that what is printed is true. */
export async function tellDaemon(cli: Cli, { done, change }: { done: string; change: object }): Promise<number> {
  const { output } = cli;
  let reload: Reload | undefined;
  let trouble: string | undefined;
  try {
    reload = await withControl(cli.paths.socket, (socket) => socket.ask('reload'));
  } catch (error) {
    if (!(error instanceof TroupeError)) throw error;
    if (error.code !== 'unavailable') trouble = sentence(error);
  }
  if (!output.json) output.print(done);
  const servers = reload ? await firstStates(cli, [...reload.added, ...reload.relaunched]) : [];
  if (output.json) output.print(JSON.stringify({ ...change, reload: reload ?? null, servers: servers.map(stateOf) }));
  if (trouble !== undefined) throw new TroupeError('invalid', `${done}, but the running daemon refused it: ${trouble}`);
  output.say(
    reload ? `the running daemon has taken it up${servers.map(wellOf).join('')}` : 'it takes effect with `troupe up`',
  );
  const isTroubled = ({ state }: ServerStatus): boolean => !WELL.has(state);
  if (!output.json && servers.some(isTroubled)) output.say(await tellTrouble(cli, servers.filter(isTroubled)));
  return OK;
}

const FIRST_STATE_MS = 5_000;
const LOOK_MS = 50;
const WELL = new Set<string>(['ready', 'asleep', 'stopped']);

/** What has become of servers that are new: a file that was written says nothing of whether they are there. */
async function firstStates({ paths }: Cli, names: readonly string[]): Promise<readonly ServerStatus[]> {
  const deadline = performance.now() + FIRST_STATE_MS;
  for (;;) {
    const servers = (await statusOf(paths))?.servers.filter(({ name }) => names.includes(name)) ?? [];
    if (servers.every(({ state }) => state !== 'opening') || performance.now() > deadline) return servers;
    await sleep(LOOK_MS);
  }
}

const stateOf = ({ name, state, lastError }: ServerStatus) => ({ name, state, lastError });
const wellOf = ({ name, state, tools }: ServerStatus): string =>
  state === 'ready' ? `; ${name} is ready${tools ? `, with ${tools} tool${tools === 1 ? '' : 's'}` : ''}` : ''; // its list may not be read yet

async function tellTrouble({ output, paths }: Cli, servers: readonly ServerStatus[]): Promise<string> {
  const opening = servers.filter(({ state }) => state === 'opening').map(({ name }) => name);
  const late =
    opening.length > 0 ? [`${opening.join(', ')} is still starting; \`troupe ps\` shows what becomes of it`] : [];
  const trouble = await troubleText(
    output,
    servers.filter(({ state }) => state !== 'opening'),
    paths.logFile,
  );
  return [...late, ...(trouble ? [trouble] : [])].join('\n');
}

/** The complaint does not repeat the text, because a value may be a secret. */
function pairs(texts: readonly string[], option: string): Record<string, string> {
  const entries = texts.map((text) => {
    const at = text.indexOf('=');
    if (at < 1) throw usage(`${option} wants NAME=value`);
    return [text.slice(0, at), text.slice(at + 1)];
  });
  return Object.fromEntries(entries);
}
