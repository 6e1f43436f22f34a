// One server's definition, from the form of its host into ours. What the host's words mean is written out,
// what has no meaning here becomes a note, and what cannot run here is refused with the reason.

import { basename, isAbsolute, resolve } from 'node:path';
import { check } from './complaints.ts';
import { definitionSchema, type ServerDefinition } from './schema.ts';
import { isObject, isRemote, type Raw } from './servers.ts';

type Surroundings = { readonly home: string; readonly folder: string; readonly isProject: boolean };
type Translated = { readonly definition: ServerDefinition; readonly notes: string[] } | { readonly why: string };

const UNDERSTOOD = ['type', 'source', 'enabled', 'disabled', 'command', 'args', 'env', 'cwd', 'x-troupe'];

export function translate(raw: unknown, surroundings: Surroundings): Translated {
  if (!isObject(raw)) return { why: 'its definition is not an object' };
  if (isRemote(raw)) return { why: 'it is reached over the network, and this version runs stdio servers only' };
  const flat = flattened(raw);
  if (flat.command === undefined) return { why: 'it has no command' };
  const notes: string[] = [];
  const say = (value: unknown) => (typeof value === 'string' ? inOurWords(value, surroundings, notes) : value);
  const candidate = {
    command: say(flat.command),
    ...(flat.args !== undefined && { args: Array.isArray(flat.args) ? flat.args.map(say).map(textOf) : flat.args }),
    ...(flat.env !== undefined && { env: isObject(flat.env) ? variables(flat.env, say, notes) : flat.env }),
    ...directoryOf(say(flat.cwd), surroundings, notes),
    ...((flat.disabled === true || flat.enabled === false) && { disabled: true }),
    ...(flat['x-troupe'] !== undefined && { 'x-troupe': flat['x-troupe'] }),
  };
  const [finding] = check(definitionSchema, candidate).findings;
  if (finding) return { why: finding.message };
  for (const key of Object.keys(flat).filter((key) => !UNDERSTOOD.includes(key))) notes.push(notCarried(key));
  // The check above is the proof of the type.
  return { definition: candidate as ServerDefinition, notes: [...new Set(notes)] };
}

/** An older form of Zed has path, arguments and environment inside `command`. */
function flattened(raw: Raw): Raw {
  if (!isObject(raw.command)) return raw;
  const { path, args, env } = raw.command;
  return { ...raw, command: path, ...(args !== undefined && { args }), ...(env !== undefined && { env }) };
}

/** ${env:X} is ${X} here; what the editor knows of the project is written out; what it would ask becomes a variable. */
function inOurWords(text: string, { home, folder }: Surroundings, notes: string[]): string {
  const known = new Map([
    ['workspaceFolder', folder],
    ['workspaceFolderBasename', basename(folder)],
    ['userHome', home],
    ['pathSeparator', '/'],
    ['/', '/'],
  ]);
  return text
    .replaceAll(/\$\{(?:env:)?([^}:]+)\}/g, (_, name: string) => known.get(name) ?? `\${${name}}`)
    .replaceAll(/\$\{input:([^}]+)\}/g, (_, id: string) => {
      const name = id
        .toUpperCase()
        .replaceAll(/\W/g, '_')
        .replace(/^(?=\d)/, '_');
      notes.push(`its host asks for "${id}"; set ${name} in the daemon's environment instead`);
      return `\${${name}}`;
    });
}

function variables(env: Raw, say: (value: unknown) => unknown, notes: string[]): Raw {
  const entries = Object.entries(env).filter(([name, value]) => {
    if (value === null) notes.push(`env.${name} was null and is left out`);
    return value !== null;
  });
  return Object.fromEntries(entries.map(([name, value]) => [name, textOf(say(value))]));
}

/** Hosts are lenient with numbers and booleans where a text belongs. */
function textOf(value: unknown): unknown {
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : value;
}

/** A project's server runs in the folder of the project; the daemon runs elsewhere, so this is made explicit. */
function directoryOf(cwd: unknown, { folder, isProject }: Surroundings, notes: string[]): { cwd?: unknown } {
  if (cwd === undefined && !isProject) return {};
  if (cwd === undefined) notes.push(`runs in ${folder}, the folder of its project`);
  const isRelative = typeof cwd === 'string' && !isAbsolute(cwd) && !cwd.startsWith('${');
  return { cwd: isRelative ? resolve(folder, cwd) : (cwd ?? folder) };
}

function notCarried(key: string): string {
  if (key === 'envFile') return '"envFile" is not read; put its variables into env';
  return `${JSON.stringify(key)} has no meaning here and is left out`;
}
