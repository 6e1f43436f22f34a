// The port that hosts know this daemon by. They have it in their configuration, so that a daemon which could choose comes
// back on the one it had, if it is still free.

import { readFileSync, writeFileSync } from 'node:fs';
import type { HttpAddress } from '../../config/http.ts';
import type { Paths } from '../../config/paths.ts';

/** The ports to try, in this order; the last one that fails is the answer. 0 is any that is free. */
export function portsToTry({ port, isExplicit }: HttpAddress, { httpPort }: Paths): number[] {
  if (isExplicit && port !== 0) return [port];
  const known = rememberedPort(httpPort);
  return [...new Set([...(known ? [known] : []), port, 0])];
}

export function rememberPort({ httpPort }: Paths, port: number): void {
  try {
    writeFileSync(httpPort, String(port), { mode: 0o600 });
  } catch {} // the disk is full: the next life may come back elsewhere
}

function rememberedPort(path: string): number | undefined {
  try {
    const port = Number(readFileSync(path, 'utf8'));
    return Number.isInteger(port) && port > 0 && port < 65_536 ? port : undefined;
  } catch {
    return undefined; // the first life
  }
}
