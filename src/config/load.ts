// From a file to a configuration with every default filled in, or to the list of everything that is wrong with it.
// Never throws, and never gives up at the first mistake: every problem of every server is reported.

import { statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { type Complaint, check, didYouMean, written } from './complaints.ts';
import {
  complete,
  expand,
  expandTexts,
  isObject,
  isRemote,
  type Raw,
  type Surroundings,
  withoutRepeats,
} from './definition.ts';
import { type Document, openReport, type Report, readDocument } from './file/document.ts';
import { isServerName, mendName, NAME_RULE } from './names.ts';
import { readRemote } from './remote.ts';
import {
  type Config,
  definitionSchema,
  ROOT_KEYS,
  type ServerConfig,
  type StdioServer,
  settingsSchema,
  troupeSchema,
} from './schema.ts';

export type { Complaint } from './complaints.ts';

export type Loaded =
  | { readonly ok: true; readonly config: Config; readonly warnings: Complaint[] }
  | { readonly ok: false; readonly complaints: Complaint[] };

export function loadConfig(path: string, env: NodeJS.ProcessEnv): Loaded {
  const document = readDocument(path);
  const report = openReport(document);
  const config = document.tree && readConfig(document, env, report);
  const { complaints, warnings } = report;
  return config && complaints.length === 0 ? { ok: true, config, warnings } : { ok: false, complaints };
}

function readConfig({ path, value }: Document, env: NodeJS.ProcessEnv, report: Report): Config | undefined {
  if (!isObject(value)) {
    report.complain({ keys: [], at: 'value', message: 'the file must hold an object such as { "mcpServers": {} }' });
    return undefined;
  }
  warnOfUnknownKeys(value, report);
  const troupe = readTroupe(value['x-troupe'] ?? {}, path, env, report.about(['x-troupe'], ''));
  const definitions = value.mcpServers ?? {};
  if (!isObject(definitions)) {
    report.complain({ keys: ['mcpServers'], at: 'value', message: 'mcpServers must be an object of servers by name' });
    return undefined;
  }
  const surroundings = { path, env, defaults: defaultsOf(value['x-troupe']) };
  const servers = Object.entries(definitions).flatMap(([name, definition]) => {
    const about = report.about(['mcpServers', name], `server ${JSON.stringify(name)}: `);
    return readServer(name, definition, surroundings, about) ?? [];
  });
  if (troupe) checkProfiles(troupe.profiles, Object.keys(definitions), report.about(['x-troupe', 'profiles'], ''));
  return troupe && { ...troupe, servers, path };
}

function warnOfUnknownKeys(root: Raw, report: Report): void {
  for (const key of Object.keys(root)) {
    if (ROOT_KEYS.some((known) => known === key)) continue;
    const message = `${written([key])} is kept, but troupe does not use it${didYouMean(key, ROOT_KEYS)}`;
    report.warn({ keys: [key], at: 'key', message });
  }
}

/** The sections in which variables are expanded: they hold tokens, keys and paths. */
const EXPANDED = ['http', 'plugins', 'roots'] as const;

function readTroupe(
  raw: unknown,
  path: string,
  env: NodeJS.ProcessEnv,
  report: Report,
): Omit<Config, 'servers' | 'path'> | undefined {
  const quiet = withoutRepeats(report);
  const expanded = EXPANDED.filter((key) => isObject(raw) && Object.hasOwn(raw, key)).map((key) => [
    key,
    expandTexts((raw as Raw)[key], [key], env, quiet, 'x-troupe'),
  ]);
  const candidate = isObject(raw) ? { ...raw, ...Object.fromEntries(expanded) } : raw;
  const { data, findings } = check(troupeSchema, candidate, 'x-troupe');
  quiet.tell(findings);
  const url = isObject(raw) && isObject(raw.nats) ? readUrl(raw.nats.url, env, report) : undefined;
  if (!data) return undefined;
  const { servers: _, plugins, nats, roots, ...rest } = data;
  const from = resolve(dirname(path));
  const absolute = (written: string) => resolve(from, written);
  return {
    ...rest,
    plugins: Object.entries(plugins).map(([name, { required, ...options }]) => ({ name, from, options, required })),
    nats: { ...nats, ...(url !== undefined && { url }) },
    roots: { list: roots.list.map(absolute), allow: roots.allow.map(absolute) },
  };
}

/** A profile must name servers of this file: its hosts would be the first to notice that it is empty. */
function checkProfiles(profiles: Config['profiles'], known: readonly string[], report: Report): void {
  for (const [name, { servers }] of Object.entries(profiles)) {
    if (!isServerName(name)) {
      const message = `profile ${JSON.stringify(name)}: its name must match ${NAME_RULE}; call it "${mendName(name)}"`;
      report.complain({ keys: [name], at: 'key', message });
    }
    for (const [index, server] of servers.entries()) {
      if (known.includes(server)) continue;
      const hint = didYouMean(server, known) || '; add it, or take it out of the profile';
      const message = `profile "${name}": there is no server ${JSON.stringify(server)} in this file${hint}`;
      report.complain({ keys: [name, 'servers', index], at: 'value', message });
    }
  }
}

/** The address may carry a password, so variables are expanded here too and the address is never shown. */
function readUrl(url: unknown, env: NodeJS.ProcessEnv, report: Report): string | undefined {
  if (typeof url !== 'string' || url === '') return undefined;
  const { text, problems } = expand(url, env);
  const isAddress = text.split(',').every((part) => /^((nats|tls):\/\/)?[^\s/]+$/.test(part.trim()));
  if (problems.length === 0 && !isAddress) problems.push('must be an address such as "nats://127.0.0.1:4222"');
  for (const problem of problems) {
    report.complain({ keys: ['nats', 'url'], at: 'value', message: `x-troupe.nats.url ${problem}` });
  }
  return text;
}

/** `x-troupe.servers`, unless it has a mistake: that was complained of once, and need not be again for every server. */
function defaultsOf(troupe: unknown): Raw {
  const defaults = isObject(troupe) ? troupe.servers : undefined;
  return isObject(defaults) && settingsSchema.safeParse(defaults).success ? defaults : {};
}

const FORM = { known: Object.keys(definitionSchema.shape), expanded: ['command', 'args', 'env', 'cwd'] };

function readServer(name: string, raw: unknown, surroundings: Surroundings, report: Report): ServerConfig | undefined {
  if (!isServerName(name)) {
    report.complain({ keys: [], at: 'key', message: `its name must match ${NAME_RULE}; call it "${mendName(name)}"` });
  }
  return isObject(raw) && isRemote(raw)
    ? readRemote(name, raw, surroundings, report)
    : readStdio(name, raw, surroundings, report);
}

function readStdio(name: string, raw: unknown, surroundings: Surroundings, report: Report): StdioServer | undefined {
  const candidate = isObject(raw) ? complete(raw, FORM, surroundings, report) : raw;
  const { data, findings } = check(definitionSchema, candidate);
  for (const finding of findings) report.complain(finding);
  const cwd = isObject(candidate) ? directoryOf(candidate.cwd, surroundings.path) : undefined;
  if (cwd !== undefined && isObject(raw) && !isDirectory(cwd)) complainOfDirectory(raw.cwd, surroundings, report);
  if (!data) return undefined;
  const { command, args = [], env = {}, 'x-troupe': settings } = data;
  return { transport: 'stdio', name, command, args, env, ...(cwd !== undefined && { cwd }), settings };
}

/** Relative to the file, because the daemon may run anywhere. */
function directoryOf(cwd: unknown, path: string): string | undefined {
  return typeof cwd === 'string' ? resolve(dirname(path), cwd) : undefined;
}

/** The sentence shows the text as written, so that no variable's value appears. */
function complainOfDirectory(cwd: unknown, { env }: Surroundings, report: Report): void {
  const written = String(cwd);
  if (expand(written, env).problems.length > 0) return; // the variable was complained of already
  const hint = written.startsWith('~') ? `write \${HOME} instead of ~` : 'create it or correct the path';
  report.complain({ keys: ['cwd'], at: 'value', message: `cwd ${JSON.stringify(cwd)} is not a directory; ${hint}` });
}

function isDirectory(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false; // missing or forbidden: no process could be launched there
  }
}
