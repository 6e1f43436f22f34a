// The servers of a file: the variables of each definition are expanded, its settings layered, the whole checked.
// Every problem of every server is reported, and a server that another host reaches over the network is skipped.

import { statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { check, didYouMean, written } from './complaints.ts';
import { expand } from './expand.ts';
import { isServerName, mendName, NAME_RULE } from './names.ts';
import type { Report } from './report.ts';
import { ADDRESS_KEYS, definitionSchema, type ServerConfig } from './schema.ts';

export type Raw = Record<string, unknown>;

export type Surroundings = {
  readonly path: string;
  readonly env: NodeJS.ProcessEnv;
  /** `x-troupe.servers`: settings for every server that does not say otherwise. */
  readonly defaults: Raw;
};

const REMOTE_TYPES = ['http', 'streamable-http', 'streamableHttp', 'sse', 'ws', 'websocket'];
const DEFINITION_KEYS = Object.keys(definitionSchema.shape);
const EXPANDED_KEYS = ['command', 'args', 'env', 'cwd'];

export function readServer(name: string, raw: unknown, surroundings: Surroundings, report: Report) {
  if (isObject(raw) && isRemote(raw)) {
    report.warn({
      keys: [],
      at: 'key',
      message: 'it is reached over the network, this version runs stdio servers only; skipped',
    });
    return undefined;
  }
  if (!isServerName(name)) {
    report.complain({ keys: [], at: 'key', message: `its name must match ${NAME_RULE}; call it "${mendName(name)}"` });
  }
  const candidate = isObject(raw) ? complete(raw, surroundings, report) : raw;
  const { data, findings } = check(definitionSchema, candidate);
  for (const finding of findings) report.complain(finding);
  const cwd = isObject(candidate) ? directoryOf(candidate.cwd, surroundings.path) : undefined;
  if (cwd !== undefined && isObject(raw) && !isDirectory(cwd)) complainOfDirectory(raw.cwd, surroundings, report);
  if (!data) return undefined;
  const { command, args = [], env = {}, 'x-troupe': settings } = data;
  return { name, command, args, env, ...(cwd !== undefined && { cwd }), settings } satisfies ServerConfig;
}

/** Whether a definition, of whatever host, is that of a server behind an address. */
export function isRemote({ type, command, ...rest }: Raw): boolean {
  if (type !== undefined) return REMOTE_TYPES.includes(String(type));
  return command === undefined && ADDRESS_KEYS.some((key) => Object.hasOwn(rest, key));
}

export function isObject(value: unknown): value is Raw {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function complete(raw: Raw, { env, defaults }: Surroundings, report: Report): Raw {
  for (const key of Object.keys(raw).filter((key) => !DEFINITION_KEYS.includes(key))) {
    const message = `${written([key])} is kept, but troupe does not use it${didYouMean(key, DEFINITION_KEYS)}`;
    report.warn({ keys: [key], at: 'key', message });
  }
  const expanded = EXPANDED_KEYS.filter((key) => Object.hasOwn(raw, key)).map((key) => {
    return [key, expandTexts(raw[key], [key], env, report)] as const;
  });
  return { ...raw, ...Object.fromEntries(expanded), 'x-troupe': layered(raw, defaults) };
}

function expandTexts(value: unknown, keys: (string | number)[], env: NodeJS.ProcessEnv, report: Report): unknown {
  if (Array.isArray(value)) return value.map((item, index) => expandTexts(item, [...keys, index], env, report));
  if (isObject(value)) {
    return Object.fromEntries(
      Object.entries(value).map(([key, item]) => [key, expandTexts(item, [...keys, key], env, report)]),
    );
  }
  if (typeof value !== 'string') return value;
  const { text, problems } = expand(value, env);
  for (const problem of problems) report.complain({ keys, at: 'value', message: `${written(keys)} ${problem}` });
  return text;
}

/** Defaults of the file, then the host's own `disabled`, then `x-troupe`: a server may be off elsewhere and on here. */
function layered(raw: Raw, defaults: Raw): unknown {
  const own = raw['x-troupe'] ?? {};
  if (!isObject(own)) return own;
  const merged: Raw = { ...defaults, ...(typeof raw.disabled === 'boolean' && { enabled: !raw.disabled }), ...own };
  for (const key of ['restart', 'tools']) {
    if (isObject(defaults[key]) && isObject(own[key])) merged[key] = { ...defaults[key], ...own[key] };
  }
  return merged;
}

/** Relative to the file, because the daemon may run anywhere. */
function directoryOf(cwd: unknown, path: string): string | undefined {
  return typeof cwd === 'string' ? resolve(dirname(path), cwd) : undefined;
}

/** Shows the text as written, so that no variable's value appears. */
function complainOfDirectory(cwd: unknown, { env }: Surroundings, report: Report): void {
  const written = String(cwd);
  if (expand(written, env).problems.length > 0) return; // said already
  const hint = written.startsWith('~') ? `write \${HOME} instead of ~` : 'create it or correct the path';
  report.complain({ keys: ['cwd'], at: 'value', message: `cwd ${JSON.stringify(cwd)} is not a directory; ${hint}` });
}

function isDirectory(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false; // whatever the reason, no process could be launched there
  }
}
