// The bus that the user already chose: NATS_URL and its companions, else the selected context of the `nats` CLI (ADR-21).
// Without a choice troupe runs its own nats-server; a choice that cannot be followed is an error, because any other bus is wrong.

import { homedir } from 'node:os';
import { join } from 'node:path';
import { type ConnectionOptions, credsAuthenticator, nkeyAuthenticator } from 'nats';
import { readRegular } from '../files/regular.ts';
import { TroupeError } from '../protocol/failures.ts';
import type { Environment } from './acquire.ts';

export type ChosenBus = { readonly servers: string[]; readonly options: ConnectionOptions };

export function natsFromEnvironment(env: Environment): ChosenBus | undefined {
  if (!env.NATS_URL) return fromContext(env);
  return chosen(env.NATS_URL, {
    token: env.NATS_TOKEN,
    user: env.NATS_USER,
    password: env.NATS_PASSWORD,
    creds: env.NATS_CREDS,
  });
}

type Settings = Readonly<
  Partial<
    Record<
      'token' | 'user' | 'password' | 'creds' | 'nkey' | 'ca' | 'cert' | 'key' | 'inbox_prefix',
      string | undefined
    >
  >
>;

function fromContext(env: Environment): ChosenBus | undefined {
  const home = env.HOME || homedir();
  const folder = join(env.XDG_CONFIG_HOME || join(home, '.config'), 'nats');
  const name = env.NATS_CONTEXT || readIfThere(join(folder, 'context.txt'))?.trim();
  if (!name) return undefined;
  const path = join(folder, 'context', `${name}.json`);
  const { url, ...settings } = parseContext(path);
  const inHome = (file: string | undefined) => file?.replace(/^~(?=\/)/, home);
  const files = Object.fromEntries(
    (['creds', 'nkey', 'ca', 'cert', 'key'] as const).map((key) => [key, inHome(settings[key])]),
  );
  return url ? chosen(url, { ...settings, ...files }) : undefined;
}

function parseContext(path: string): Settings & { url?: string } {
  try {
    return JSON.parse(readRegular(path).toString('utf8'));
  } catch (cause) {
    const message = `The nats context ${path} cannot be read; repair it, run \`nats context select\`, or set NATS_URL.`;
    throw new TroupeError('invalid', message, { cause });
  }
}

function chosen(list: string, settings: Settings): ChosenBus {
  const urls = list.split(',').flatMap((text) => (text.trim() ? [toUrl(text.trim())] : []));
  const signed = urls.find((url) => url.username);
  const isTls = urls.some((url) => url.protocol === 'tls:');
  return {
    servers: urls.map((url) => url.host || 'localhost'),
    options: {
      ...(signed && inUrl(signed)),
      ...credentials(settings),
      ...(settings.inbox_prefix && { inboxPrefix: settings.inbox_prefix }),
      ...((isTls || settings.ca || settings.cert) && { tls: tls(settings) }),
    },
  };
}

function toUrl(text: string): URL {
  try {
    return new URL(text.includes('://') ? text : `nats://${text}`);
  } catch {
    // The text may hold a password: it is not repeated.
    throw new TroupeError('invalid', 'The NATS URL is not one; write nats://host:port, several separated by commas.');
  }
}

/** `user:password@`, or a lone token. */
function inUrl({ username, password }: URL): ConnectionOptions {
  if (!password) return { token: decodeURIComponent(username) };
  return { user: decodeURIComponent(username), pass: decodeURIComponent(password) };
}

function credentials({ creds, nkey, token, user, password }: Settings): ConnectionOptions {
  if (creds) return { authenticator: credsAuthenticator(secretFile(creds)) };
  if (nkey) return { authenticator: nkeyAuthenticator(secretFile(nkey)) };
  if (token) return { token };
  return user ? { user, ...(password && { pass: password }) } : {};
}

const tls = ({ ca, cert, key }: Settings) => ({
  ...(ca && { caFile: ca }),
  ...(cert && { certFile: cert }),
  ...(key && { keyFile: key }),
});

function secretFile(path: string): Uint8Array {
  try {
    return Buffer.from(readRegular(path).toString('utf8').trim());
  } catch (cause) {
    const message = `The NATS credentials file ${path} cannot be read; correct the path or its permissions.`;
    throw new TroupeError('invalid', message, { cause });
  }
}

function readIfThere(path: string): string | undefined {
  try {
    return readRegular(path).toString('utf8');
  } catch {
    return undefined; // nothing was selected
  }
}
