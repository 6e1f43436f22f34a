// `install`: puts troupe into a host's own configuration. It shows the difference, asks, keeps what was there before
// beside the file, and changes nothing the second time.

import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { isObject } from '../config/definition.ts';
import { readDocument } from '../config/file/document.ts';
import { readHostFile, replaceHostFile } from '../config/hosts/file.ts';
import { type Access, type HostKind, hostKind } from '../config/hosts/hosts.ts';
import { realPathsOf } from '../config/paths.ts';
import { TroupeError } from '../protocol/failures.ts';
import { agrees } from './agree.ts';
import { withControl } from './control.ts';
import { unified } from './install-difference.ts';
import { usage } from './output.ts';
import { type Cli, OK } from './verb.ts';

export type InstallOptions = {
  readonly server?: string;
  readonly name?: string;
  readonly url?: boolean;
  readonly print?: boolean;
  readonly yes?: boolean;
};

const MAIN = fileURLToPath(new URL('../main.js', import.meta.url));

const ASKS = 'install asks before it writes; without a terminal say --yes, or --print to only look';

export async function install(cli: Cli, hostName: string, options: InstallOptions): Promise<number> {
  const { output, env } = cli;
  const { server: scope = '', name = 'troupe' } = options;
  const host = hostKind(hostName, env, process.platform);
  if (!/^[\w-]{1,64}$/.test(name)) throw usage(`--name wants letters, digits, - and _ only, not '${name}'`);
  refuseUnknown(cli, scope);
  const access = options.url ? await byAddress(cli, scope) : byCommand(cli, scope);
  const before = readHostFile(host.path);
  const after = host.install(before, name, access);
  const facts = { host: hostName, file: host.path, name };
  if (after === before) {
    if (output.json) output.print(JSON.stringify({ ...facts, changed: false }));
    else output.print(`troupe is already installed in ${host.title}, in ${host.path}`);
    return OK;
  }
  const difference = unified(host.path, before, after);
  if (!output.json) output.print(difference);
  if (options.print) {
    if (output.json) output.print(JSON.stringify({ ...facts, changed: false, difference }));
    return OK;
  }
  if (!options.yes && !(await agrees(cli, `write this to ${host.path}?`, ASKS))) {
    output.say('nothing was changed');
    return OK;
  }
  const backup = replaceHostFile(host.path, before, after);
  if (output.json) output.print(JSON.stringify({ ...facts, changed: true, backup: backup ?? null, difference }));
  else output.print(done(host, backup, access));
  return OK;
}

function done({ title, path }: HostKind, backup: string | undefined, access: Access): string {
  return [
    `troupe is installed in ${title}; restart it to use it`,
    ...(backup ? [`what ${path} said before is in ${backup}`] : []),
    ...('url' in access && access.isGuarded
      ? [`${title} needs TROUPE_TOKEN in its environment; see \`troupe env\``]
      : []),
  ].join('\n');
}

/** A host has no shell of ours around it: what decides which daemon is meant goes into its file. */
function byCommand({ env, paths }: Cli, scope: string): Access {
  const usual = realPathsOf({ HOME: env.HOME });
  const instance = paths.instance === undefined ? [] : ['--instance', paths.instance];
  return {
    command: process.execPath,
    args: [MAIN, 'connect', ...instance, ...(scope === '' ? [] : [scope])],
    env: {
      ...(paths.state !== usual.state && { TROUPE_STATE: paths.state }),
      ...(paths.config !== usual.config && { TROUPE_CONFIG: paths.config }),
    },
  };
}

async function byAddress({ paths }: Cli, scope: string): Promise<Access> {
  const ask = { TROUPE_HTTP: '', TROUPE_TOKEN: '' };
  const known = await withControl(paths.socket, (control) => control.ask<Partial<typeof ask>>('env'));
  if (!known.TROUPE_HTTP)
    throw new TroupeError('unavailable', 'troupe listens on no HTTP address; see `troupe status`, or leave out --url');
  const url = `${known.TROUPE_HTTP}/mcp${scope === '' ? '' : `/${scope}`}`;
  return { url, isGuarded: known.TROUPE_TOKEN !== undefined };
}

/** Also of a file that troupe would not run as it is; one that cannot be read, or is not there, says nothing. */
function refuseUnknown({ paths: { config } }: Cli, scope: string): void {
  if (scope === '' || !existsSync(config)) return;
  const root = readDocument(config).value;
  if (!isObject(root)) return;
  const troupe = isObject(root['x-troupe']) ? root['x-troupe'] : {};
  const names = scope.startsWith('@') ? troupe.profiles : root.mcpServers;
  if (isObject(names) && Object.hasOwn(names, scope.replace(/^@/, ''))) return;
  const what = scope.startsWith('@') ? `profile ${scope}` : `server ${scope}`;
  throw new TroupeError('unknownServer', `there is no ${what} in ${config}; correct --server`);
}
