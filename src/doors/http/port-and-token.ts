// What the HTTP door keeps in the state directory: the port that hosts have in their configuration, and the owner's token, for
// programs of the owner that cannot be known by their uid.

import { randomBytes } from 'node:crypto';
import { linkSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { HttpAddress } from '../../config/http.ts';
import type { Paths } from '../../config/paths.ts';
import type { HttpSettings } from '../../config/schema.ts';
import { ownDirectory, readOwn, writeOwn } from '../../files/own.ts';

// ── The port ─────────────────────────────────────────────────────────────────

/**
 * The ports to try, in this order: a daemon that could choose comes back on the one it had. The failure of the last is the
 * door's. 0 is any that is free.
 */
export function portsToTry({ port, isExplicit }: HttpAddress, { httpPort }: Paths): number[] {
  if (isExplicit && port !== 0) return [port];
  const known = rememberedPort(httpPort);
  return [...new Set([...(known ? [known] : []), port, 0])];
}

export function rememberPort({ httpPort }: Paths, port: number): void {
  try {
    writeOwn(httpPort, String(port));
  } catch {} // the disk is full: the next life may come back elsewhere
}

function rememberedPort(path: string): number | undefined {
  try {
    const port = Number(String(readOwn(path)));
    return Number.isInteger(port) && port > 0 && port < 65_536 ? port : undefined;
  } catch {
    return undefined; // not ours: it is not believed, and the next one takes its place
  }
}

// ── The token ────────────────────────────────────────────────────────────────

const OWNER = '_';
const TOKEN_BYTES = 32;

/** The settings with the owner's token in them: all daemons on a state directory have the same, unless one is configured. */
export function withOwnersToken(settings: HttpSettings, paths: Paths): HttpSettings {
  if (ownersToken(settings) !== undefined) return settings;
  return { ...settings, tokens: { ...settings.tokens, [OWNER]: ownToken(paths) } };
}

export const ownersToken = ({ tokens }: Pick<HttpSettings, 'tokens'>): string | undefined => tokens[OWNER];

function ownToken({ state }: Paths): string {
  const path = join(state, 'http-token');
  const known = readToken(path);
  if (known) return known;
  ownDirectory(state);
  const draft = `${path}.${randomBytes(8).toString('hex')}`;
  writeFileSync(draft, randomBytes(TOKEN_BYTES).toString('base64url'), { mode: 0o600, flag: 'wx', flush: true });
  try {
    linkSync(draft, path); // the file appears whole, and only the first daemon makes it
  } catch {} // another daemon was first: its token is the token
  rmSync(draft);
  return readToken(path) ?? '';
}

const readToken = (path: string): string | undefined => readOwn(path)?.toString('utf8').trim() || undefined;
