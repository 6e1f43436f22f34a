// Where the door listens, and the sentence that says why it cannot listen there.

import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { inUrl } from '../../config/addresses.ts';
import { sentence, TroupeError } from '../../protocol/failures.ts';

export type Address = {
  readonly host: string;
  /** 0 picks one. */
  readonly port: number;
};

/** Resolves with the port, once it is open. */
export async function listen(server: Server, { host, port }: Address): Promise<number> {
  try {
    return await bind(server, host, port);
  } catch (cause) {
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
