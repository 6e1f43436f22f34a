// `install`: puts troupe into a host's own configuration. It shows the difference, asks, keeps a backup beside the file, and
// changes nothing the second time.

import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { isObject } from '../../config/definition.ts';
import { readDocument } from '../../config/file/document.ts';
import { readHostFile, replaceHostFile } from '../../config/hosts/file.ts';
import { type Access, type HostKind, hostKind } from '../../config/hosts/hosts.ts';
import { realPathsOf } from '../../config/paths.ts';
import { TroupeError } from '../../protocol/failures.ts';
import { bundled } from '../../protocol/version.ts';
import { withControl } from '../control.ts';
import { agrees } from '../terminal/dialog.ts';
import { type Cli, OK, usage } from '../verb.ts';

type InstallOptions = {
  readonly server?: string;
  readonly name?: string;
  readonly url?: boolean;
  readonly print?: boolean;
  readonly yes?: boolean;
};

const MAIN = fileURLToPath(bundled('troupe'));

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

/** A host does not have the variables of this shell: those that tell which daemon is meant are written into its file. */
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
  const { http } = await withControl(paths.socket, (control) => control.ask('status'));
  if (!http.url)
    throw new TroupeError('unavailable', 'troupe listens on no HTTP address; see `troupe status`, or leave out --url');
  return { url: `${http.url}/mcp${scope === '' ? '' : `/${scope}`}`, isGuarded: http.needsToken === true };
}

/** Refuses a server or profile that the configuration does not have. A file that is missing or cannot be read refuses nothing. */
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

const CONTEXT = 3;
/** Of a longer line, as in a minified file, only the part near the change is shown. */
const LONG = 400;

/** A change of one file as `diff -u` prints it: one hunk, from the first line that differs to the last. */
export function unified(path: string, before: string, after: string): string {
  const [old, next] = [linesOf(before), linesOf(after)];
  const top = commonLength(old, next);
  const tail = Math.min(commonLength(old.toReversed(), next.toReversed()), Math.min(old.length, next.length) - top);
  const from = Math.max(0, top - CONTEXT);
  const [oldTo, nextTo] = [old.length - tail, next.length - tail];
  const below = old.slice(oldTo, oldTo + CONTEXT);
  const [removed, added] = [old.slice(top, oldTo), next.slice(top, nextTo)];
  const above = old.slice(from, top);
  const count = (lines: readonly string[]): number => above.length + lines.length + below.length;
  const start = (lines: readonly string[]): number => (count(lines) === 0 ? 0 : from + 1);
  const near = commonLength([...(removed[0] ?? '')], [...(added[0] ?? '')]);
  return [
    `--- ${before === '' ? '/dev/null' : path}`,
    `+++ ${path}`,
    `@@ -${start(removed)},${count(removed)} +${start(added)},${count(added)} @@`,
    ...above.map((line) => ` ${short(line, 0)}`),
    ...removed.map((line) => `-${short(line, near)}`),
    ...added.map((line) => `+${short(line, near)}`),
    ...below.map((line) => ` ${short(line, 0)}`),
  ].join('\n');
}

const linesOf = (text: string): string[] => (text === '' ? [] : text.replace(/\r?\n$/, '').split(/\r?\n/));

function commonLength(one: readonly string[], other: readonly string[]): number {
  const differs = one.findIndex((each, index) => each !== other[index]);
  return differs < 0 ? Math.min(one.length, other.length) : differs;
}

function short(line: string, near: number): string {
  if (line.length <= LONG) return line;
  const from = Math.max(0, Math.min(near - LONG / 4, line.length - LONG));
  return `${from > 0 ? '…' : ''}${line.slice(from, from + LONG)}${from + LONG < line.length ? '…' : ''}`;
}
