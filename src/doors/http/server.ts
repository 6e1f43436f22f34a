// The HTTP door: one listening socket for Streamable HTTP, for old HTTP+SSE hosts and for whoever becomes a WebSocket.
// Nobody is served who was not let in by the gate, and nobody may take for ever to say what he wants.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Logger } from 'pino';
import { inUrl, isLoopback } from '../../config/addresses.ts';
import type { HttpSettings } from '../../config/schema.ts';
import { FAILURES, sentence, TroupeError } from '../../protocol/failures.ts';
import type { Sessions } from '../../sessions/host.ts';
import { type Address, listen } from './address.ts';
import { closeServer } from './close.ts';
import { preflight } from './cors.ts';
import { createPatience } from './exchange.ts';
import { createGate, isWildcard, NO_HEADERS } from './gate.ts';
import { createLegacy } from './legacy.ts';
import { end, get } from './listen.ts';
import { post } from './post.ts';
import { createReaders } from './readers.ts';
import { ALLOWED, type Route, routeOf } from './routes.ts';
import { serverFor } from './socket.ts';
import { type OnUpgrade, takeUpgrades } from './upgrade.ts';
import {
  type HeaderDeclarations,
  type House,
  INVALID_REQUEST,
  invalid,
  refuse,
  refuseThrown,
  type Timing,
  type Visit,
} from './visit.ts';

export type HttpOptions = {
  readonly address: Address;
  readonly settings: HttpSettings;
  readonly sessions: Sessions;
  readonly logger: Logger;
  /** Takes over a connection that asks for /ws, after everything was checked that is checked here. */
  readonly onUpgrade?: OnUpgrade;
  /** What tools want repeated in `Mcp-Param-*`; without it such headers are ignored. */
  readonly headerDeclarations?: HeaderDeclarations;
  readonly timing?: Partial<Timing>;
};
export type HttpDoor = { readonly url: string; close(): Promise<void> };

const TIMING: Timing = {
  ...{ patienceMs: 60, rotateMs: 15 * 60_000, drainMs: 10_000 },
  ...{ headMs: 10_000, bodyMs: 30_000, checkMs: 2_000 },
};

export async function openHttp(options: HttpOptions): Promise<HttpDoor> {
  const { address, settings, sessions, logger, onUpgrade, headerDeclarations } = options;
  const timing = { ...TIMING, ...options.timing };
  const house: House = {
    ...{ sessions, settings, logger, timing, readers: createReaders(settings.maxStreams), owed: { count: 0 } },
    patience: createPatience(),
    onFault: (error) => logger.error({ door: 'http' }, `a request failed: ${sentence(error)}`),
    ...(headerDeclarations && { headerDeclarations }),
  };
  const legacy = createLegacy(house);
  if (!isLoopback(address.host) && Object.keys(settings.tokens).length === 0)
    throw new TroupeError(
      'unauthorized',
      `${address.host} can be reached from elsewhere; set a token in x-troupe.http.tokens, or listen on 127.0.0.1`,
    );
  const server = serverFor(timing);
  const port = await listen(server, address);
  // No descriptor is left for one more connection, for instance: those that are there go on.
  server.on('error', (error) => logger.error({ door: 'http' }, `the listening socket: ${sentence(error)}`));
  const gate = createGate({ host: address.host, port, settings });
  let isClosing = false;

  function handle(req: IncomingMessage, res: ServerResponse): void {
    const admission = gate(req);
    if (admission.is === 'refused') {
      const { status, message, headers } = admission;
      const rpc = status === 400 ? INVALID_REQUEST : FAILURES.unauthorized.rpc;
      return refuse(strangerOf(req, res, NO_HEADERS), status, { rpc, message, headers });
    }
    const route = routeOf(req.url ?? '');
    if (!route) return invalid(strangerOf(req, res, admission.cors), 404, 'there is nothing here; MCP is at /mcp');
    // Before anything is looked for: it is answered alike whether there is such a server or not.
    if (admission.is === 'preflight' || req.method === 'OPTIONS')
      return preflight(strangerOf(req, res, admission.cors), route.place);
    const visit: Visit = { req, res, principal: admission.principal, scope: route.scope, cors: admission.cors };
    if (isClosing) {
      const headers = ['Connection', 'close', 'Retry-After', '2'];
      return refuse(visit, 503, {
        rpc: FAILURES.unavailable.rpc,
        message: 'troupe is stopping; come back soon',
        headers,
      });
    }
    try {
      serve(visit, route);
    } catch (error) {
      refuseThrown(visit, house, error);
    }
  }

  function serve(visit: Visit, { place, scope }: Route): void {
    const { method } = visit.req;
    if (!sessions.hasScope(scope)) {
      const message = `there is no ${scope.startsWith('@') ? 'profile' : 'server'} ${JSON.stringify(scope)} here`;
      return refuse(visit, 404, { rpc: FAILURES.unknownServer.rpc, message });
    }
    if (place === 'mcp' && method === 'POST') return post(house, visit);
    if (place === 'mcp' && method === 'GET') return get(house, visit);
    if (place === 'mcp' && method === 'DELETE') return void end(house, visit);
    if (place === 'sse' && method === 'GET') return legacy.open(visit);
    if (place === 'messages' && method === 'POST') return legacy.message(visit);
    if (place === 'ws' && method === 'GET') {
      const headers = ['Upgrade', 'websocket'];
      return refuse(visit, 426, { rpc: INVALID_REQUEST, message: 'this is the place of WebSockets', headers });
    }
    const message = `${method} is not for here; there are ${ALLOWED[place]}`;
    refuse(visit, 405, { rpc: INVALID_REQUEST, message, headers: ['Allow', ALLOWED[place]] });
  }

  server.on('request', handle);
  const upgrades = takeUpgrades({ server, gate, sessions, onUpgrade });
  const shown = isWildcard(address.host) ? (address.host === '::' ? '::1' : '127.0.0.1') : address.host;

  return {
    url: `http://${inUrl(shown)}:${port}`,
    close(): Promise<void> {
      isClosing = true;
      upgrades.refuseFurther();
      return closeServer({ server, house, legacy, upgrades });
    },
  };
}

/** Somebody of whom nothing is known, or needed. */
const strangerOf = (req: IncomingMessage, res: ServerResponse, cors: readonly string[]): Visit => ({
  ...{ req, res, cors, principal: '', scope: '' },
});
