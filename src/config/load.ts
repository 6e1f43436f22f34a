// From a file to a configuration with every default filled in, or to the list of everything that is wrong with it.
// Never throws, and never gives up at the first mistake.

import { dirname, resolve } from 'node:path';
import { type Complaint, check, didYouMean, written } from './complaints.ts';
import { expandTexts, isObject, type Raw, withoutEchoes } from './definition.ts';
import { type Document, readDocument } from './document.ts';
import { expand } from './expand.ts';
import { isServerName, mendName, NAME_RULE } from './names.ts';
import { openReport, type Report } from './report.ts';
import { type Config, ROOT_KEYS, settingsSchema, troupeSchema } from './schema.ts';
import { readServer } from './servers.ts';

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

/** Where tokens, keys and paths stand. */
const EXPANDED = ['http', 'plugins', 'roots'] as const;

function readTroupe(
  raw: unknown,
  path: string,
  env: NodeJS.ProcessEnv,
  report: Report,
): Omit<Config, 'servers' | 'path'> | undefined {
  const quiet = withoutEchoes(report);
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
  const absolute = (written: string) => resolve(dirname(path), written);
  return {
    ...rest,
    plugins: Object.entries(plugins).map(([name, { required, ...options }]) => ({ name, options, required })),
    nats: { ...nats, ...(url !== undefined && { url }) },
    roots: { list: roots.list.map(absolute), allow: roots.allow.map(absolute) },
  };
}

/** A profile that names nobody is a mistake, and one that names a stranger would be found empty only by its hosts. */
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

/** Defaults with a mistake were complained about once; they are not repeated for every server. */
function defaultsOf(troupe: unknown): Raw {
  const defaults = isObject(troupe) ? troupe.servers : undefined;
  return isObject(defaults) && settingsSchema.safeParse(defaults).success ? defaults : {};
}
