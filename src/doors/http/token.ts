// The token that the HTTP door wants as soon as it listens beyond this machine and nobody has configured one. It is made
// once, kept in a file of the owner's alone, and shown by `troupe env` only.

import { randomBytes } from 'node:crypto';
import { linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isLoopback } from '../../config/addresses.ts';
import type { Paths } from '../../config/paths.ts';
import type { HttpSettings } from '../../config/schema.ts';
import { makeDirectory } from '../../store/directory.ts';

const OWNER = '_';
const TOKEN_BYTES = 32;

/** The settings with a token in them wherever one is needed: all daemons on a state directory have the same. */
export function withToken(settings: HttpSettings, host: string, paths: Paths): HttpSettings {
  if (isLoopback(host) || Object.keys(settings.tokens).length > 0) return settings;
  return { ...settings, tokens: { [OWNER]: ownToken(paths) } };
}

/** The one for whoever owns this daemon, or else any: the owner may read the configuration anyway. */
export const tokenToShow = ({ tokens }: Pick<HttpSettings, 'tokens'>): string | undefined =>
  tokens[OWNER] ?? Object.values(tokens)[0];

function ownToken({ state }: Paths): string {
  const path = join(state, 'http-token');
  const known = read(path);
  if (known) return known;
  makeDirectory(state);
  const draft = `${path}.${randomBytes(8).toString('hex')}`;
  writeFileSync(draft, randomBytes(TOKEN_BYTES).toString('base64url'), { mode: 0o600, flush: true });
  try {
    linkSync(draft, path); // whole or not at all, and only by the first
  } catch {} // another daemon was first: its token is the token
  rmSync(draft);
  return readFileSync(path, 'utf8');
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8').trim() || undefined;
  } catch {
    return undefined; // the first time
  }
}
