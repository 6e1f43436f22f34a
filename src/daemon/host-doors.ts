// The doors that hosts reach over HTTP: Streamable HTTP, HTTP+SSE and WebSocket on one address. A door that cannot be
// opened, because its port is taken, is a state of the daemon and no reason to serve nobody; one that was asked for is.

import { isLoopback } from '../config/addresses.ts';
import { addressOf } from '../config/http.ts';
import type { HttpSettings } from '../config/schema.ts';
import { needsToken } from '../doors/http/gate.ts';
import { peersOf } from '../doors/http/peers.ts';
import { ownersToken, portsToTry, rememberPort, withOwnersToken } from '../doors/http/port-and-token.ts';
import { type HttpDoor, openHttp } from '../doors/http/server.ts';
import { websocketDoor } from '../doors/websocket.ts';
import type { HttpStatus } from '../operations/status.ts';
import { sentence } from '../protocol/failures.ts';
import { serversSockets } from '../servers/stdio/descendants.ts';
import type { Hosting } from '../sessions/hosting.ts';
import { realWorld } from '../world/world.ts';
import { familyOf } from './leftovers.ts';
import type { SharedOptions } from './options.ts';

export type HostDoors = {
  readonly status: HttpStatus;
  /** What the owner shows to the door where a token is needed. */
  readonly token: string | undefined;
  /** How many connections there are, and may be. */
  readonly connections: () => ReturnType<HttpDoor['connections']> | undefined;
  close(): Promise<void>;
};

const OFF: HostDoors = {
  status: { state: 'off', url: null },
  token: undefined,
  connections: () => undefined,
  close: async () => {},
};

export async function openHostDoors(options: SharedOptions, { sessions, declarations }: Hosting): Promise<HostDoors> {
  const { paths, config, log, shares } = options;
  const address = addressOf(options.http, config.http, paths.instance);
  if (!address) return OFF;
  const settings: HttpSettings = withOwnersToken(config.http, paths);
  const standingOf = peersOf({
    owner: process.geteuid?.() ?? -1,
    serversSockets: serversSockets(options.mark, familyOf(paths.state)),
  });
  const websocket = websocketDoor({ world: realWorld, sessions, settings, logger: log.logger });
  let door: HttpDoor | undefined;
  let failure: unknown;
  for (const port of portsToTry(address, paths)) {
    if (door) break;
    try {
      door = await openHttp({
        world: realWorld,
        address: { host: address.host, port },
        settings,
        standingOf,
        sessions,
        logger: log.logger,
        onUpgrade: websocket.upgrade,
        headerDeclarations: declarations,
        maxConnections: shares.hosts,
        maxArriving: shares.arriving,
      });
    } catch (cause) {
      failure = cause;
    }
  }
  if (!door && address.isExplicit) throw failure;
  if (!door) {
    const error = sentence(failure);
    log.logger.error(error);
    return { ...OFF, status: { state: 'failed', url: null, error }, close: websocket.close };
  }
  const { url } = door;
  const port = Number(new URL(url).port);
  // A port that a person chose is in the configuration, and not remembered.
  if (!address.isExplicit || address.port === 0) rememberPort(paths, port);
  const isElsewhere = !address.isExplicit && address.port !== 0 && port !== address.port;
  log.logger.info({ url }, 'listening');
  return {
    status: {
      ...{ state: 'listening', url },
      ...(isElsewhere && { insteadOf: address.port }),
      ...(!isLoopback(address.host) && { isOpen: true }),
      ...(needsToken(address.host, settings, standingOf) && { needsToken: true }),
    },
    token: ownersToken(settings),
    connections: door.connections,
    close: async () => void (await Promise.all([door.close(), websocket.close()])),
  };
}
