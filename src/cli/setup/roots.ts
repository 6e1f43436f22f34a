// `roots`: the directories that servers may know of. The list says where each comes from, and why one is not used.

import { resolve } from 'node:path';
import { TroupeError } from '../../protocol/failures.ts';
import { type Control, withControl } from '../control.ts';
import { table } from '../terminal/table.ts';
import { oneLine } from '../terminal/words.ts';
import { type Cli, FAILED, OK, usage } from '../verb.ts';

export type RootsOptions = { readonly name?: string };
type Root = {
  readonly uri: string;
  readonly name?: string;
  readonly from: 'config' | 'owner' | 'host';
  readonly problem?: string;
};

export async function roots(
  cli: Cli,
  verb: string | undefined,
  path: string | undefined,
  options: RootsOptions,
): Promise<number> {
  if (options.name !== undefined && verb !== 'add') throw usage('--name goes with roots add');
  if (verb === undefined) return list(cli);
  if (verb !== 'add' && verb !== 'rm') throw usage(`roots knows add and rm, not '${verb}'`);
  if (path === undefined) throw usage(`roots ${verb} wants a directory`);
  // A URI, as the list prints it, is taken too; the daemon reads it.
  const directory = /^file:/i.test(path) ? path : resolve(path);
  return verb === 'add' ? add(cli, directory, options) : remove(cli, directory);
}

async function list({ output, paths }: Cli): Promise<number> {
  const raw = await withControl(paths.socket, (control) => control.request('roots', {}).result);
  if (output.json) {
    output.print(raw);
    return OK;
  }
  const { roots: all } = JSON.parse(raw.toString()) as { roots: readonly Root[] };
  if (all.length === 0) output.say('servers are told of no directory; name one with `troupe roots add <directory>`');
  else output.print(rootsTable(output, all));
  return OK;
}

function rootsTable(output: Cli['output'], all: readonly Root[]): string {
  const hasProblems = all.some(({ problem }) => problem);
  const columns = [{ title: 'URI', elastic: true }, { title: 'NAME', elastic: true }, { title: 'FROM' }];
  const rows = all.map(({ uri, name = '', from, problem = '' }) => [
    oneLine(uri),
    oneLine(name),
    oneLine(from),
    ...(hasProblems ? [{ text: oneLine(problem), style: 'yellow' as const }] : []),
  ]);
  // Only a terminal limits the width.
  const wide = output.isTerminal ? output : { ...output, width: Number.POSITIVE_INFINITY };
  return table(wide, hasProblems ? [...columns, { title: 'PROBLEM', elastic: true }] : columns, rows);
}

async function add({ output, paths }: Cli, path: string, { name }: RootsOptions): Promise<number> {
  const params = { path, ...(name !== undefined && { name }) };
  const raw = await withControl(paths.socket, (control) => control.request('rootsAdd', params).result);
  if (output.json) output.print(raw);
  else output.print(`servers are told of ${oneLine(uriOf(raw))}`);
  return OK;
}

async function remove({ output, paths }: Cli, path: string): Promise<number> {
  return withControl(paths.socket, async (control) => {
    const raw = await control.request('rootsRemove', { path }).result;
    const { wasThere, uri } = JSON.parse(raw.toString()) as { wasThere: boolean; uri: string };
    if (output.json) output.print(raw);
    else if (wasThere) output.print(`servers are no longer told of ${oneLine(uri)}`);
    else throw new TroupeError('unknownName', await whyNot(control, [path, uri]));
    return wasThere ? OK : FAILED;
  });
}

async function whyNot(control: Control, names: readonly string[]): Promise<string> {
  const { roots: all } = await control.ask('roots');
  const offered = all.find(({ uri, from }) => from === 'host' && names.includes(uri));
  if (offered) return `${oneLine(offered.uri)} comes from a host and goes with it`;
  return `${oneLine(names.at(-1) ?? '')} was not added here; \`troupe roots\` says who named what`;
}

const uriOf = (raw: Buffer): string => String(JSON.parse(raw.toString()).uri);
