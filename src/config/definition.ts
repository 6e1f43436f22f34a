// What definitions of all kinds of servers have in common: variables in their texts, unknown keys, and settings in layers.
// ${VAR}, ${VAR:-default}, and ${env:VAR} as VS Code and Cursor write it, are expanded; $VAR is left to the shell, and so is
// every other form. A value is never expanded a second time.

import { didYouMean, type Finding, type Keys, written } from './complaints.ts';
import type { Report } from './file/document.ts';
import { ADDRESS_KEYS, REMOTE_TYPES } from './schema.ts';

export type Raw = Record<string, unknown>;

export type Surroundings = {
  readonly path: string;
  readonly env: NodeJS.ProcessEnv;
  /** `x-troupe.servers`: settings for every server that does not say otherwise. */
  readonly defaults: Raw;
};

/** Which keys a kind of definition has, and in which of them variables are expanded. */
type Form = { readonly known: readonly string[]; readonly expanded: readonly string[] };

export function isObject(value: unknown): value is Raw {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Whether a definition, of any host, is that of a server behind an address. */
export function isRemote({ type, command, ...rest }: Raw): boolean {
  if (type !== undefined) return REMOTE_TYPES.some((known) => known === type);
  return command === undefined && ADDRESS_KEYS.some((key) => Object.hasOwn(rest, key));
}

/** The definition as it will be checked: variables expanded, settings layered, unknown keys warned of. */
export function complete(raw: Raw, form: Form, { env, defaults }: Surroundings, report: Report): Raw {
  for (const key of Object.keys(raw).filter((key) => !form.known.includes(key))) {
    const message = `${written([key])} is kept, but troupe does not use it${didYouMean(key, form.known)}`;
    report.warn({ keys: [key], at: 'key', message });
  }
  const expanded = form.expanded
    .filter((key) => Object.hasOwn(raw, key))
    .map((key) => [key, expandTexts(raw[key], [key], env, report)] as const);
  return { ...raw, ...Object.fromEntries(expanded), 'x-troupe': layered(raw, defaults) };
}

/** The value with the variables of every text in it expanded, however deep; a variable that is not set is complained of. */
export function expandTexts(value: unknown, keys: Keys, env: NodeJS.ProcessEnv, report: Report, owner = ''): unknown {
  if (Array.isArray(value)) return value.map((item, index) => expandTexts(item, [...keys, index], env, report, owner));
  if (isObject(value)) {
    return Object.fromEntries(
      Object.entries(value).map(([key, item]) => [key, expandTexts(item, [...keys, key], env, report, owner)]),
    );
  }
  if (typeof value !== 'string') return value;
  const { text, problems } = expand(value, env);
  for (const problem of problems) {
    report.complain({ keys, at: 'value', message: `${written(keys, owner)} ${problem}` });
  }
  return text;
}

/** A report that remembers where a variable was not set: the schema's finding at the same keys only follows from that. */
export function withoutRepeats(report: Report): Report & { tell(findings: readonly Finding[]): void } {
  const places = new Set<string>();
  return {
    ...report,
    complain(finding) {
      places.add(written(finding.keys));
      report.complain(finding);
    },
    tell(findings) {
      for (const finding of findings) if (!places.has(written(finding.keys))) report.complain(finding);
    },
  };
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

type Expansion = {
  readonly text: string;
  /** Each is the end of a sentence that begins with the key; no value is part of it. */
  readonly problems: string[];
};

const VARIABLE = /\$\{(?:env:)?([A-Za-z_]\w*)(?::-([^}]*))?\}/g;
const QUESTION = /\$\{input:([^}]*)\}/g;

export function expand(text: string, env: NodeJS.ProcessEnv): Expansion {
  const problems: string[] = [];
  for (const [question] of text.matchAll(QUESTION)) {
    problems.push(`uses ${question}, which only VS Code can ask for; use a variable such as \${TOKEN} instead`);
  }
  const expanded = text.replace(VARIABLE, (written: string, name: string, fallback: string | undefined) => {
    if (fallback?.includes('${')) {
      problems.push(`gives \${${name}} a default that holds another variable, which cannot be expanded`);
      return written;
    }
    const value = variableOf(env, name);
    // As in a shell, an empty variable takes the default too.
    if (fallback !== undefined) return value || fallback;
    if (value === undefined) problems.push(unset(name));
    return value ?? written;
  });
  return { text: expanded, problems };
}

const unset = (name: string): string =>
  `uses \${${name}}, which is not set; set it in the daemon's environment or write \${${name}:-default}`;

// `constructor` and its like are inherited even by process.env.
function variableOf(env: NodeJS.ProcessEnv, name: string): string | undefined {
  return Object.hasOwn(env, name) ? env[name] : undefined;
}
