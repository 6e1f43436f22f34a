// Reads the servers that other hosts have configured, so that they can be taken over.
// Nothing is changed here. A server that cannot be taken over is listed with the reason.

import { existsSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { TroupeError } from '../../protocol/failures.ts';
import { formatComplaint } from '../complaints.ts';
import { isObject, type Raw } from '../definition.ts';
import { readDocument } from '../file/document.ts';
import { mendName } from '../names.ts';
import type { ServerDefinition } from '../schema.ts';
import { translate } from './translate.ts';

/** Where the files of hosts are looked for. */
export type Machine = {
  readonly home: string;
  readonly cwd: string;
  readonly platform: NodeJS.Platform;
  readonly env: NodeJS.ProcessEnv;
};

export type ForeignServer = { readonly name: string; readonly definition: ServerDefinition; readonly notes: string[] };
export type Foreign = {
  /** The files that were found and read. */
  readonly from: string[];
  readonly servers: ForeignServer[];
  readonly skipped: { readonly name: string; readonly why: string }[];
};

type Found = Omit<Foreign, 'from'>;

/** A file and the part of it to read; `workspace` is the folder that a project's own file belongs to. */
type Source = { readonly file: string; readonly part: 'root' | 'project'; readonly workspace?: string };

export function readForeign(source: 'claude' | 'cursor' | 'vscode' | (string & {}), machine: Machine): Foreign {
  const known = sourcesOf(source, machine);
  const sources = known ?? sourcesIn(resolve(machine.cwd, source), machine);
  const [from, broken] = [new Set<string>(), new Map<string, string>()];
  const found: Found = { servers: [], skipped: [] };
  const disabled = source === 'claude' ? disabledByClaude(machine) : new Set<string>();
  for (const each of sources.filter(({ file }) => !known || existsSync(file))) {
    const { value, complaints } = readDocument(each.file);
    const [complaint] = complaints;
    if (complaint && !known && !existsSync(each.file))
      throw new TroupeError('invalid', `there is no file ${each.file}; import knows claude, cursor, vscode, or a file`);
    if (complaint && !known) throw new TroupeError('invalid', `It cannot be read: ${formatComplaint(complaint)}.`);
    if (complaint) broken.set(each.file, formatComplaint(complaint));
    else from.add(each.file);
    const project = { home: machine.home, folder: each.workspace ?? machine.cwd, isProject: !!each.workspace };
    for (const [name, raw] of Object.entries(complaint ? {} : serversIn(value, each, machine))) {
      const definition = disabled.has(name) && isObject(raw) ? { ...raw, disabled: true } : raw;
      take(found, name, translate(definition, project));
    }
  }
  const unreadable = [...broken].map(([name, why]) => ({ name, why }));
  return { from: [...from], servers: found.servers, skipped: [...unreadable, ...found.skipped] };
}

function take({ servers, skipped }: Found, original: string, translated: ReturnType<typeof translate>): void {
  if ('why' in translated) {
    skipped.push({ name: original, why: translated.why });
    return;
  }
  const { definition, notes } = translated;
  const name = mendName(original);
  const taken = servers.find((server) => server.name === name);
  if (!taken) {
    servers.push({
      name,
      definition,
      notes: name === original ? notes : [`renamed from ${JSON.stringify(original)}`, ...notes],
    });
  } else if (!isDeepStrictEqual(taken.definition, definition)) {
    skipped.push({ name: original, why: `another server called "${name}" was found first` });
  }
}

/** The files of a host, the one that counts most first. */
function sourcesOf(name: string, { home, cwd, platform, env }: Machine): Source[] | undefined {
  const settings = settingsFolder(home, platform, env);
  const root = (file: string): Source => ({ file, part: 'root' });
  const project = (...names: string[]): Source => ({ file: join(cwd, ...names), part: 'root', workspace: cwd });
  const claude = join(home, '.claude.json');
  if (name === 'claude') {
    const local: Source = { file: claude, part: 'project', workspace: cwd };
    return [local, project('.mcp.json'), root(claude), root(join(settings, 'Claude', 'claude_desktop_config.json'))];
  }
  if (name === 'cursor') return [project('.cursor', 'mcp.json'), root(join(home, '.cursor', 'mcp.json'))];
  if (name === 'vscode') return [project('.vscode', 'mcp.json'), root(join(settings, 'Code', 'User', 'mcp.json'))];
  return undefined;
}

/** A file that was named by its path, which also tells whether it is a project's own. */
function sourcesIn(file: string, { home, cwd }: Machine): Source[] {
  const folder = dirname(file);
  const isInside = ['.vscode', '.cursor', '.zed'].includes(basename(folder));
  const workspace = isInside ? dirname(folder) : folder;
  const isProject = (isInside || basename(file) === '.mcp.json') && workspace !== home;
  return [
    { file, part: 'project', workspace: cwd },
    { file, part: 'root', ...(isProject && { workspace }) },
  ];
}

/** The folder in which programs keep a person's settings. */
export function settingsFolder(home: string, platform: NodeJS.Platform, env: NodeJS.ProcessEnv): string {
  if (platform === 'darwin') return join(home, 'Library', 'Application Support');
  if (platform === 'win32') return env.APPDATA || join(home, 'AppData', 'Roaming');
  return env.XDG_CONFIG_HOME || join(home, '.config');
}

function serversIn(value: unknown, { part }: Source, { cwd }: Machine): Raw {
  const root = part === 'root' ? value : projectOf(value, cwd);
  if (!isObject(root)) return {};
  // VS Code once kept them in its settings, below `mcp`; Zed still does, as `context_servers`.
  const older = isObject(root.mcp) ? root.mcp.servers : undefined;
  const found = [root.mcpServers, root.servers, older, root.context_servers].find(isObject);
  return found ?? {};
}

/** Claude Code keeps what a person set for one project in ~/.claude.json, below the path of the project. */
function projectOf(value: unknown, cwd: string): unknown {
  return isObject(value) && isObject(value.projects) ? value.projects[cwd] : undefined;
}

function disabledByClaude({ home, cwd }: Machine): Set<string> {
  const project = projectOf(readDocument(join(home, '.claude.json')).value, cwd);
  if (!isObject(project)) return new Set();
  return new Set([project.disabledMcpServers, project.disabledMcpjsonServers].flat().map(String));
}
