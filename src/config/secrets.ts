// Which values of a configuration are secrets: whatever stands under a name that says so, and in `env` and `headers` also what
// looks like one. A word, a number, a path or a plain address is none: to mask it would only make the log unreadable.

import { jsonOf } from '../protocol/json.ts';
import { urlOf } from './addresses.ts';
import { isObject } from './definition.ts';
import type { Config, RemoteServer, StdioServer } from './schema.ts';

const SAYS_SO = /key|token|secret|passw|passphrase|auth|credential|cookie|(^|[_-])pat$/i;
/** `TOKEN_FILE` and `AUTH_URL` say where something is, and not what it is. */
const SAYS_WHERE = /[_-]?(file|path|dir|directory|sock|socket|url|uri|host|port|type|method|mode|name|enabled|ttl)$/i;
const SHORTEST_NAMED = 4;
const SHORTEST = 8;
/** The variables by which troupe itself is let in somewhere. */
const OUR_VARIABLES = ['NATS_URL', 'NATS_TOKEN', 'NATS_PASSWORD', 'TROUPE_TOKEN'];

/** Every value that must not be seen, as it is after variables were filled in. `env` is the daemon's own environment. */
export function secretsOf({ servers, plugins, nats, http }: Config, env: NodeJS.ProcessEnv): Set<string> {
  const found = new Set<string>();
  for (const server of servers) for (const secret of secretsOfServer(server, env)) found.add(secret);
  const rest = [
    ...plugins.flatMap(({ options }) => deep('', options)),
    ...Object.values(http.tokens),
    ...inUrl(nats.url ?? ''),
    ...OUR_VARIABLES.flatMap((name) => (env[name] ? named(name, env[name]) : [])),
  ];
  for (const secret of rest) found.add(secret);
  return found;
}

const secretsOfServer = (server: StdioServer | RemoteServer, env: NodeJS.ProcessEnv): string[] =>
  server.transport === 'stdio'
    ? [
        ...Object.entries({ ...passed(server, env), ...server.env }).flatMap(([name, value]) => named(name, value)),
        ...inArguments(server.args),
        ...filledIn([server.command, ...server.args], env),
      ]
    : [
        ...Object.entries(server.headers).flatMap(([name, value]) => named(name, value)),
        ...inUrl(server.url),
        ...filledIn([server.url], env),
        ...[server.oauth.clientSecret, server.oauth.privateKey].flatMap((value) => (value ? parts(value) : [])),
      ];

/** Variables of the daemon that the server is given by name; of those that it merely inherits, the ones that say so. */
function passed({ settings }: StdioServer, env: NodeJS.ProcessEnv): Record<string, string> {
  if (settings.env === 'minimal') return {};
  const names = settings.env === 'inherit' ? Object.keys(env).filter(saysSo) : settings.env;
  return Object.fromEntries(names.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])));
}

/** `${VARIABLE}` has been replaced by its value; a variable whose value is there and is a secret was most likely meant. */
const filledIn = (texts: readonly string[], env: NodeJS.ProcessEnv): string[] =>
  Object.entries(env).flatMap(([name, value]) =>
    value && isSecret(name, value) && texts.some((text) => text.includes(value)) ? parts(value) : [],
  );

/** `--api-key x`, `--token=x`, `-e TOKEN=x`, `--header "Authorization: Bearer x"`, and addresses with a password. */
const inArguments = (args: readonly string[]): string[] =>
  args.flatMap((arg, index) => {
    const [, name = '', value = ''] = /^-{0,2}([\w.-]+)(?:=|:\s+)([\s\S]+)$/.exec(arg) ?? [];
    if (saysSo(name)) return named(name, value);
    const before = args[index - 1] ?? '';
    if (/^--?\w/.test(before) && !before.includes('=') && saysSo(before) && !arg.startsWith('-'))
      return named(before, arg);
    return inUrl(arg);
  });

/** Of options that a plugin defines only the names tell. */
function deep(name: string, value: unknown): string[] {
  if (typeof value === 'string') return saysSo(name) ? named(name, value) : inUrl(value);
  if (Array.isArray(value)) return value.flatMap((each) => deep(name, each));
  return isObject(value) ? Object.entries(value).flatMap(([key, each]) => deep(key, each)) : [];
}

function named(name: string, value: string): string[] {
  if (/^\s*[{[]/.test(value)) return [...deep(name, jsonOf(value)), ...(isSecret(name, value) ? [value] : [])];
  return [...inUrl(value), ...(isSecret(name, value) ? parts(value) : [])];
}

const saysSo = (name: string): boolean => SAYS_SO.test(name) && !SAYS_WHERE.test(name);

function isSecret(name: string, value: string): boolean {
  if (saysSo(name)) return value.length >= SHORTEST_NAMED && !WORDS_OF_SETTINGS.test(value);
  return value.length >= SHORTEST && !PLAIN.some((plain) => plain.test(value));
}

const WORDS_OF_SETTINGS =
  /^(true|false|none|null|auto|basic|bearer|digest|default|required|optional|enabled|disabled|oauth2?|undefined)$/i;
const PLAIN = [
  /^(~|\.{1,2})?[\\/]/, // a path
  /^[A-Za-z]:[\\/]/,
  /^[a-z][a-z\d+.-]*:/i, // an address; its password is looked for by itself
  /^-/, // options
  /^[\d\s.,:+-]+$/, // numbers, versions, times
  /^[a-z]{1,15}([-_.:,@/]([a-z]{1,15}|\w{1,3}|\d{1,8}))*$/i, // words, hosts, e-mail addresses, regions, models
];

/** A secret of several lines, such as a key in PEM form, may be said line by line; of `Bearer x`, the `x` is said alone. */
function parts(value: string): string[] {
  const [, scheme = '', credentials = ''] = /^(bearer|basic|token|apikey)\s+(\S+)$/i.exec(value) ?? [];
  const decoded = /^basic$/i.test(scheme) ? Buffer.from(credentials, 'base64').toString() : '';
  const password = decoded.slice(decoded.indexOf(':') + 1);
  const lines = value.split(/\r?\n/).filter((line) => line.length >= 16 && !line.startsWith('-----'));
  return [value, value.trim(), credentials, password, ...(lines.length > 1 ? lines : [])].filter(
    (part) => part.length >= SHORTEST_NAMED,
  );
}

/** The password or the lone user of an address, and what its query has under a name that says so. */
export function inUrl(text: string): string[] {
  if (!/^[a-z][a-z\d+.-]*:\/\//i.test(text)) return [];
  const url = urlOf(text);
  if (!url) return [];
  const login = url.password || (url.username.length >= 16 ? url.username : '');
  const queried = [...url.searchParams].flatMap(([name, value]) => (saysSo(name) ? [value] : []));
  return [...(login ? [login, decoded(login)] : []), ...queried].filter((part) => part.length >= SHORTEST_NAMED);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // a percent sign that means itself
  }
}
