// Where the door listens. A port that was only preferred gives way to any free one; an address that was asked for does not.

import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { sentence, TroupeError } from '../../failures.ts';
import { inUrl } from './gate.ts';

export type Address = {
  readonly host: string;
  /** 0 picks one. */
  readonly port: number;
  /** Nobody asked for this port: if it is taken, another will do. */
  readonly isPreferred?: boolean;
};

/** Resolves with the port, once it is open. */
export async function listen(server: Server, { host, port, isPreferred = false }: Address): Promise<number> {
  try {
    return await bind(server, host, port);
  } catch (cause) {
    if (isPreferred && codeOf(cause) === 'EADDRINUSE') return listen(server, { host, port: 0 });
    throw new TroupeError('unavailable', complaint(cause, host, port), { cause });
  }
}

function bind(server: Server, host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host, port }, () => {
      server.off('error', reject);
      resolve((server.address() as AddressInfo).port);
    });
  });
}

function complaint(cause: unknown, host: string, port: number): string {
  const where = `${inUrl(host)}:${port}`;
  switch (codeOf(cause)) {
    case 'EADDRINUSE':
      return `${where} is taken; stop what listens there, or choose another address with --http HOST:PORT`;
    case 'EACCES':
      return `${where} needs more rights than troupe has; choose a port above 1023 with --http HOST:PORT`;
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return `${host} is no address of this machine; choose another with --http HOST:PORT`;
    default:
      return `cannot listen on ${where}: ${sentence(cause)}`;
  }
}

const codeOf = (cause: unknown): unknown => (cause instanceof Error && 'code' in cause ? cause.code : undefined);
