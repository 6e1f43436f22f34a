// One server's definition, from the form of its host into ours. Variables of the host are written out, keys that have no
// meaning here become notes, and a definition that cannot run here is refused with the reason.

import { basename, isAbsolute, resolve } from 'node:path';
import { check } from '../complaints.ts';
import { isObject, isRemote, type Raw } from '../definition.ts';
import { judgeAddress } from '../remote.ts';
import { ADDRESS_KEYS, definitionSchema, remoteSchema, type ServerDefinition } from '../schema.ts';

/** The folder that a definition belongs to, of a project or of the person. */
type Project = { readonly home: string; readonly folder: string; readonly isProject: boolean };
type Translated = { readonly definition: ServerDefinition; readonly notes: string[] } | { readonly why: string };

const EVERYWHERE = ['type', 'source', 'enabled', 'disabled', 'x-troupe'];
const UNDERSTOOD = [...EVERYWHERE, 'command', 'args', 'env', 'cwd'];
const UNDERSTOOD_OF_REMOTE = [...EVERYWHERE, ...ADDRESS_KEYS, 'headers', 'oauth', 'auth'];

/** Writes a text of the host with our variables. */
type Say = (value: unknown) => unknown;

export function translate(raw: unknown, project: Project): Translated {
  if (!isObject(raw)) return { why: 'its definition is not an object' };
  const notes: string[] = [];
  const say: Say = (value) => (typeof value === 'string' ? inOurWords(value, project, notes) : value);
  if (isRemote(raw)) return translateRemote(raw, say, notes);
  const flat = flattened(raw);
  if (flat.command === undefined) return { why: 'it has no command' };
  const candidate = {
    command: say(flat.command),
    ...(flat.args !== undefined && { args: Array.isArray(flat.args) ? flat.args.map(say).map(textOf) : flat.args }),
    ...(flat.env !== undefined && { env: isObject(flat.env) ? named('env', flat.env, say, notes) : flat.env }),
    ...directoryOf(say(flat.cwd), project, notes),
    ...common(flat),
  };
  const [finding] = check(definitionSchema, candidate).findings;
  if (finding) return { why: finding.message };
  for (const key of Object.keys(flat).filter((key) => !UNDERSTOOD.includes(key))) notes.push(notCarried(key));
  // The check above is the proof of the type.
  return { definition: candidate as ServerDefinition, notes: [...new Set(notes)] };
}

function translateRemote(raw: Raw, say: Say, notes: string[]): Translated {
  const key = ADDRESS_KEYS.find((each) => raw[each] !== undefined) ?? 'url';
  const oauth = registration(raw, say);
  const own = isObject(raw['x-troupe']) ? raw['x-troupe'] : {};
  const { headers } = raw;
  const candidate = {
    ...(raw.type !== undefined && { type: raw.type }),
    url: say(raw[key]),
    ...(headers !== undefined && { headers: isObject(headers) ? named('headers', headers, say, notes) : headers }),
    ...common(raw),
    ...(oauth && { 'x-troupe': { ...own, oauth } }),
  };
  const { data, findings } = check(remoteSchema, candidate);
  if (!data) return { why: findings[0]?.message ?? 'it cannot be read' };
  const judged = data.url.includes('${') ? undefined : judgeAddress(data.url, data.type, '<server>');
  if (judged && 'problem' in judged) return { why: `${key} ${judged.problem}` };
  for (const each of Object.keys(raw).filter((each) => !UNDERSTOOD_OF_REMOTE.includes(each)))
    notes.push(notCarried(each));
  return { definition: candidate as unknown as ServerDefinition, notes: [...new Set(notes)] }; // as checked above
}

function common(raw: Raw): Raw {
  return {
    ...((raw.disabled === true || raw.enabled === false) && { disabled: true }),
    ...(raw['x-troupe'] !== undefined && { 'x-troupe': raw['x-troupe'] }),
  };
}

/** A client that the person registered: `oauth` of Claude Code, `auth` of Cursor. */
function registration({ oauth, auth }: Raw, say: Say): Raw | undefined {
  if (isObject(oauth)) {
    const { clientId, callbackPort } = oauth;
    const port = Number(callbackPort);
    return { ...(clientId !== undefined && { clientId: say(clientId) }), ...(port > 0 && { redirectPort: port }) };
  }
  if (!isObject(auth)) return undefined;
  const { CLIENT_ID, CLIENT_SECRET, scopes } = auth;
  return {
    ...(CLIENT_ID !== undefined && { clientId: say(CLIENT_ID) }),
    ...(CLIENT_SECRET !== undefined && { clientSecret: say(CLIENT_SECRET) }),
    ...(scopes !== undefined && { scopes }),
  };
}

/** An older form of Zed has path, arguments and environment inside `command`. */
function flattened(raw: Raw): Raw {
  if (!isObject(raw.command)) return raw;
  const { path, args, env } = raw.command;
  return { ...raw, command: path, ...(args !== undefined && { args }), ...(env !== undefined && { env }) };
}

/** ${env:X} is ${X} here; what the editor knows of the project is written out; what it would ask becomes a variable. */
function inOurWords(text: string, { home, folder }: Project, notes: string[]): string {
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

/** Variables or headers by name. */
function named(key: string, values: Raw, say: Say, notes: string[]): Raw {
  const entries = Object.entries(values).filter(([name, value]) => {
    if (value === null) notes.push(`${key}.${name} was null and is left out`);
    return value !== null;
  });
  return Object.fromEntries(entries.map(([name, value]) => [name, textOf(say(value))]));
}

/** Hosts are lenient with numbers and booleans where a text belongs. */
function textOf(value: unknown): unknown {
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : value;
}

/** A project's server runs in the folder of the project; the daemon runs elsewhere, so this is made explicit. */
function directoryOf(cwd: unknown, { folder, isProject }: Project, notes: string[]): { cwd?: unknown } {
  if (cwd === undefined && !isProject) return {};
  if (cwd === undefined) notes.push(`runs in ${folder}, the folder of its project`);
  const isRelative = typeof cwd === 'string' && !isAbsolute(cwd) && !cwd.startsWith('${');
  return { cwd: isRelative ? resolve(folder, cwd) : (cwd ?? folder) };
}

function notCarried(key: string): string {
  if (key === 'headersHelper') return '"headersHelper" is not run; put what it prints into headers';
  if (key === 'envFile') return '"envFile" is not read; put its variables into env';
  return `${JSON.stringify(key)} has no meaning here and is left out`;
}
