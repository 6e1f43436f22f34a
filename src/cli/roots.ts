// `roots`: the directories that servers may know of. The list says who named each, and what is wrong with one that is no use.

import { resolve } from 'node:path';
import { oneLine } from './answer-words.ts';
import { withControl } from './control.ts';
import { usage } from './output.ts';
import { table } from './table.ts';
import { type Cli, OK } from './verb.ts';

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
  return verb === 'add' ? add(cli, resolve(path), options) : remove(cli, resolve(path));
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
    ...[oneLine(uri), oneLine(name), oneLine(from)],
    ...(hasProblems ? [{ text: oneLine(problem), style: 'yellow' as const }] : []),
  ]);
  return table(output, hasProblems ? [...columns, { title: 'PROBLEM', elastic: true }] : columns, rows);
}

async function add({ output, paths }: Cli, path: string, { name }: RootsOptions): Promise<number> {
  const params = { path, ...(name !== undefined && { name }) };
  const raw = await withControl(paths.socket, (control) => control.request('rootsAdd', params).result);
  if (output.json) output.print(raw);
  else output.print(`servers are told of ${oneLine(uriOf(raw))}`);
  return OK;
}

async function remove({ output, paths }: Cli, path: string): Promise<number> {
  const raw = await withControl(paths.socket, (control) => control.request('rootsRemove', { path }).result);
  const { wasThere } = JSON.parse(raw.toString()) as { wasThere: boolean };
  if (output.json) output.print(raw);
  else if (wasThere) output.print(`servers are no longer told of ${oneLine(uriOf(raw))}`);
  else output.print(`${oneLine(uriOf(raw))} was not added here; \`troupe roots\` says who named what`);
  return OK;
}

const uriOf = (raw: Buffer): string => String(JSON.parse(raw.toString()).uri);
