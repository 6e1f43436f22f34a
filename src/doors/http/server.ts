// The HTTP door: one listening socket for Streamable HTTP, for old HTTP+SSE hosts and for requests that become a WebSocket.
// No request is served that the gate has not let in, and none may take for ever to arrive.

import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Logger } from 'pino';
import { inUrl, isLoopback } from '../../config/addresses.ts';
import type { HttpSettings } from '../../config/schema.ts';
import { FAILURES, sentence, TroupeError } from '../../protocol/failures.ts';
import type { Sessions } from '../../sessions/host.ts';
import type { World } from '../../world/world.ts';
import { createReaders, createTally, type HeaderDeclarations, type HttpContext, type Timing } from './context.ts';
import { createPatience } from './exchange.ts';
import { createGate, type Gate, isWildcard, NO_HEADERS, type Verdict } from './gate.ts';
import { createLegacy, type Legacy } from './legacy.ts';
import { type Address, listen, serverFor } from './listening.ts';
import type { StandingOf } from './peers.ts';
import { end, post } from './post.ts';
import { get } from './reading.ts';
import {
  ALLOWED,
  type Endpoint,
  type HttpRequest,
  INVALID_REQUEST,
  invalid,
  type Route,
  refuse,
  refuseThrown,
  routeOf,
  sendEmpty,
} from './request.ts';
import type { Room } from './room.ts';
import { type OnUpgrade, takeUpgrades, type Upgrades } from './upgrade.ts';

export type HttpOptions = {
  readonly world: World;
  readonly address: Address;
  readonly settings: HttpSettings;
  /** Whose a connection from this machine is; nothing where the system does not tell, and then everybody needs a token. */
  readonly standingOf: StandingOf | undefined;
  readonly sessions: Sessions;
  readonly logger: Logger;
  /** Takes over a connection that asks for /ws, after everything was checked that is checked here. */
  readonly onUpgrade?: OnUpgrade;
  /** What tools want repeated in `Mcp-Param-*`; without it such headers are ignored. */
  readonly headerDeclarations?: HeaderDeclarations;
  readonly timing?: Partial<Timing>;
  /** How many connections there may be, whatever they are used for. */
  readonly maxConnections?: number;
  /** How many bytes of requests may be on their way in at once. */
  readonly maxArriving?: number;
};
export type HttpDoor = {
  readonly url: string;
  /** How many connections there are, and may be. */
  connections(): { readonly used: number; readonly most: number };
  close(): Promise<void>;
};

const MAX_CONNECTIONS = 4_096;
const MAX_ARRIVING = 128 * 1024 * 1024;

const TIMING: Timing = {
  patienceMs: 60,
  returnMs: 30_000,
  rotateMs: 15 * 60_000,
  drainMs: 10_000,
  headMs: 10_000,
  bodyMs: 30_000,
  checkMs: 2_000,
};

/** What a request may come to. */
type Parts = {
  readonly door: HttpContext;
  readonly gate: Gate;
  readonly room: Room;
  readonly legacy: Legacy;
  isClosing: boolean;
};

export async function openHttp(options: HttpOptions): Promise<HttpDoor> {
  const { world, address, settings, standingOf, sessions, logger, onUpgrade, headerDeclarations } = options;
  const { host } = address;
  const timing = { ...TIMING, ...options.timing };
  const door: HttpContext = {
    world,
    sessions,
    settings,
    timing,
    logger,
    onFault: (error) => logger.error({ door: 'http' }, `a request failed: ${sentence(error)}`),
    readers: createReaders(settings.maxStreams, { world, returnMs: timing.returnMs }),
    patience: createPatience(),
    owed: createTally(),
    arriving: { bytes: 0, most: Math.max(options.maxArriving ?? MAX_ARRIVING, settings.maxBodyBytes) },
    headerDeclarations,
  };
  if (!isLoopback(host) && Object.keys(settings.tokens).length === 0)
    throw new TroupeError(
      'unauthorized',
      `${host} can be reached from elsewhere; set a token in x-troupe.http.tokens, or listen on 127.0.0.1`,
    );
  const { maxConnections = MAX_CONNECTIONS } = options;
  const { server, room } = serverFor({ world, timing: door.timing, maxConnections });
  const port = await listen(server, address);
  server.on('error', troubleLog(world, logger));
  const gate = createGate({ host, port, settings, standingOf });
  const parts: Parts = { door, gate, room, legacy: createLegacy(door), isClosing: false };
  server.on('request', (req: IncomingMessage, res: ServerResponse) => handle(parts, req, res));
  const upgrades = takeUpgrades({ server, gate, room, sessions, onUpgrade });
  const shown = isWildcard(host) ? (host === '::' ? '::1' : '127.0.0.1') : host;

  return {
    url: `http://${inUrl(shown)}:${port}`,
    connections: () => ({ used: room.count, most: maxConnections }),
    close(): Promise<void> {
      parts.isClosing = true;
      upgrades.refuseFurther();
      return closeServer({ server, door, legacy: parts.legacy, upgrades });
    },
  };
}

const TROUBLE_MS = 10_000;

/** No descriptor is left for one more connection, for instance: those that are there go on. Told from time to time. */
function troubleLog(world: World, logger: Logger): (error: unknown) => void {
  let toldAt = Number.NEGATIVE_INFINITY;
  return (error) => {
    if (world.now() - toldAt < TROUBLE_MS) return;
    toldAt = world.now();
    logger.error({ door: 'http' }, `the listening socket: ${sentence(error)}`);
  };
}

// ── One request ──────────────────────────────────────────────────────────────

function handle(parts: Parts, req: IncomingMessage, res: ServerResponse): void {
  if (parts.room.isRefused(req.socket)) return refuse(withoutPrincipal(req, res, NO_HEADERS), 503, FULL);
  const verdict = parts.gate(req);
  if (verdict instanceof Promise) void verdict.then((found) => judged(parts, req, res, found));
  else judged(parts, req, res, verdict);
}

function judged(parts: Parts, req: IncomingMessage, res: ServerResponse, admission: Verdict): void {
  if (res.destroyed || req.socket.destroyed) return; // the client has left meanwhile, and nothing was begun
  if (admission.is === 'refused') {
    const { status, message, headers } = admission;
    const rpc = status === 400 ? INVALID_REQUEST : FAILURES.unauthorized.rpc;
    return refuse(withoutPrincipal(req, res, NO_HEADERS), status, { rpc, message, headers });
  }
  const { cors } = admission;
  const route = routeOf(req.url ?? '');
  if (!route) return invalid(withoutPrincipal(req, res, cors), 404, 'there is nothing here; MCP is at /mcp');
  // Before the server is looked for: a preflight is answered alike whether there is such a server or not.
  if (admission.is === 'preflight' || req.method === 'OPTIONS')
    return preflight(withoutPrincipal(req, res, cors), route.endpoint);
  const http: HttpRequest = { req, res, principal: admission.principal, scope: route.scope, cors };
  if (parts.isClosing) return refuse(http, 503, STOPPING);
  try {
    serve(parts, http, route);
  } catch (error) {
    refuseThrown(http, parts.door, error);
  }
}

const FULL = {
  rpc: FAILURES.busy.rpc,
  message: 'troupe has as many connections as it can take (ulimit -n); close some, or try again soon',
  headers: ['Connection', 'close', 'Retry-After', '5'],
};

const STOPPING = {
  rpc: FAILURES.unavailable.rpc,
  message: 'troupe is stopping; come back soon',
  headers: ['Connection', 'close', 'Retry-After', '2'],
};

function serve({ door, legacy }: Parts, http: HttpRequest, { endpoint, scope }: Route): void {
  const { method } = http.req;
  if (!door.sessions.hasScope(scope)) {
    const message = `there is no ${scope.startsWith('@') ? 'profile' : 'server'} ${JSON.stringify(scope)} here`;
    return refuse(http, 404, { rpc: FAILURES.unknownServer.rpc, message });
  }
  if (endpoint === 'mcp' && method === 'POST') return post(door, http);
  if (endpoint === 'mcp' && method === 'GET') return get(door, http);
  if (endpoint === 'mcp' && method === 'DELETE') return void end(door, http);
  if (endpoint === 'sse' && method === 'GET') return legacy.open(http);
  if (endpoint === 'messages' && method === 'POST') return legacy.message(http);
  if (endpoint === 'ws' && method === 'GET') {
    const headers = ['Upgrade', 'websocket'];
    return refuse(http, 426, { rpc: INVALID_REQUEST, message: 'this is the place of WebSockets', headers });
  }
  const message = `${method} is not for here; there are ${ALLOWED[endpoint]}`;
  refuse(http, 405, { rpc: INVALID_REQUEST, message, headers: ['Allow', ALLOWED[endpoint]] });
}

/** For an answer that needs no more than the request itself. */
const withoutPrincipal = (req: IncomingMessage, res: ServerResponse, cors: readonly string[]): HttpRequest => ({
  req,
  res,
  cors,
  principal: '',
  scope: '',
});

// ── What a browser is told before it lets a page of a configured origin in ───

const MCP_HEADERS =
  'Authorization, Content-Type, Accept, Last-Event-ID, Mcp-Session-Id, MCP-Protocol-Version, Mcp-Method, Mcp-Name';
const A_DAY = '86400';
const MOST_PARAMS = 32;

/** Without a configured origin it is a plain answer to OPTIONS, which no browser takes for permission. */
function preflight(http: HttpRequest, endpoint: Endpoint): void {
  if (http.cors.length === 0) return sendEmpty(http, 204, ['Allow', ALLOWED[endpoint]]);
  const wanted = http.req.headers['access-control-request-headers'] ?? '';
  sendEmpty(http, 204, [
    'Access-Control-Allow-Methods',
    ALLOWED[endpoint],
    'Access-Control-Max-Age',
    A_DAY,
    'Access-Control-Allow-Headers',
    [MCP_HEADERS, ...paramsIn(wanted)].join(', '),
  ]);
}

/** Tools name these headers, so there is no list of them. */
const paramsIn = (wanted: string): string[] =>
  (wanted.match(/\bmcp-param-[\w!#$%&'*+.^`|~-]+/gi) ?? []).slice(0, MOST_PARAMS);

// ── Closing ──────────────────────────────────────────────────────────────────

type Closing = {
  readonly server: Server;
  readonly door: HttpContext;
  readonly legacy: Legacy;
  readonly upgrades: Upgrades;
};

const LOOK_MS = 20;
/** For the last words to leave; a connection on which no request came is not waited for longer. */
const GOODBYE_MS = 200;

/** Answers that come in time are waited for, and streams are ended with the word to come back. */
async function closeServer({ server, door, legacy, upgrades }: Closing): Promise<void> {
  const { world, readers, owed, timing } = door;
  const waiting = (ms: number) => new Promise<void>((resolve) => void world.after(ms, resolve));
  const closed = new Promise<void>((resolve) => void server.close(() => resolve()));
  const idle = Promise.all([legacy.drain(), owed.whenNone(), upgrades.whenNone()]);
  // Node closes the connections that are idle now, not those that become so later.
  const stopLooking = world.every(LOOK_MS, () => server.closeIdleConnections());
  readers.retireStanding();
  await Promise.race([closed, idle, waiting(timing.drainMs)]);
  readers.retireAll();
  legacy.finish();
  upgrades.destroyAll();
  await Promise.race([closed, waiting(GOODBYE_MS)]);
  stopLooking();
  server.closeAllConnections();
}
