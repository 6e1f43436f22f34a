// A server as a NATS micro service (ADR-32): `nats micro ls`, `info` and `stats` know it. Written by hand, because the
// client's own services cannot forget an endpoint, miscount errors, and answer nothing when the description grows too big.

import { createHash } from 'node:crypto';
import type { Msg, NatsConnection } from 'nats';
import { nuid } from 'nats';
import { isInbox } from './subjects.ts';

export type Endpoint = {
  readonly name: string;
  readonly subject: string;
  readonly queue_group: string;
  readonly metadata: Readonly<Record<string, string>>;
  num_requests: number;
  num_errors: number;
  last_error: string;
  /** Nanoseconds, from request to reply. */
  processing_time: number;
};

export type ServiceDescription = {
  /** The server's own name; the service is called `mcp-<server>`. */
  readonly server: string;
  readonly version: () => string;
  readonly description: string;
  /** Asked for each reply, like the endpoints: tools come and go, states change. */
  readonly metadata: () => Readonly<Record<string, string>>;
  readonly endpoints: () => readonly Endpoint[];
  /** Listed while there are at most 256; they need no subscription of their own. */
  readonly tools: () => readonly Endpoint[];
};
export type MicroService = { readonly name: string; readonly id: string; stop(): Promise<void> };

const MAX_TOOLS = 256;

export function microService(nc: NatsConnection, service: ServiceDescription): MicroService {
  const name = serviceName(service.server);
  const id = nuid.next();
  const started = new Date().toISOString();
  const identity = () => ({ name, id, version: semver(service.version()) });
  const { description } = service;

  const ping = () => [{ ...type('ping'), ...identity(), metadata: service.metadata() }];
  const info = () => views(service).map((view) => ({ ...type('info'), ...identity(), description, ...view(describe) }));
  const stats = () => views(service).map((view) => ({ ...type('stats'), ...identity(), started, ...view(count) }));

  // Exactly these nine. A wildcard would swallow the fast "no responders" that asking for an absent service deserves.
  const subscriptions = Object.entries({ PING: ping, INFO: info, STATS: stats }).flatMap(([verb, answer]) =>
    [`$SRV.${verb}`, `$SRV.${verb}.${name}`, `$SRV.${verb}.${name}.${id}`].map((subject) =>
      nc.subscribe(subject, { callback: (error, msg) => void (error ?? reply(nc, msg, answer())) }),
    ),
  );
  return {
    name,
    id,
    async stop() {
      if (!nc.isClosed()) await Promise.all(subscriptions.map((subscription) => subscription.drain()));
    },
  };
}

export const newEndpoint = (
  name: string,
  subject: string,
  queueGroup: string,
  metadata: Endpoint['metadata'] = {},
): Endpoint => ({
  name,
  subject,
  queue_group: queueGroup,
  metadata,
  num_requests: 0,
  num_errors: 0,
  last_error: '',
  processing_time: 0,
});

export function countRequest(stats: Endpoint, nanoseconds: number, error?: string): void {
  stats.num_requests++;
  stats.processing_time += nanoseconds;
  if (error === undefined) return;
  stats.num_errors++;
  stats.last_error = error;
}

// ── Responses ────────────────────────────────────────────────────────────────

const type = (kind: 'ping' | 'info' | 'stats') => ({ type: `io.nats.micro.v1.${kind}_response` });

const describe = ({ name, subject, queue_group, metadata }: Endpoint) => ({
  name,
  subject,
  queue_group,
  metadata,
});

const count = ({ metadata: _, ...stats }: Endpoint) => ({
  ...stats,
  average_processing_time: stats.num_requests ? Math.round(stats.processing_time / stats.num_requests) : 0,
});

type View = (show: (endpoint: Endpoint) => object) => { metadata: object; endpoints: object[] };

/** Descriptions, the fullest first; the first one that fits into a message is sent. */
function views({ metadata, endpoints, tools }: ServiceDescription): View[] {
  const fixed = endpoints();
  const all = tools();
  const shortened = { ...metadata(), tools_truncated: 'true' };
  const bare: View[] = [
    (show) => ({ metadata: shortened, endpoints: fixed.map(show) }),
    () => ({ metadata: { tools_truncated: 'true' }, endpoints: [] }),
  ];
  if (all.length > MAX_TOOLS) return bare;
  const named = endpointNames([...fixed, ...all]);
  return [(show) => ({ metadata: metadata(), endpoints: named.map(show) }), ...bare];
}

function reply(nc: NatsConnection, msg: Msg, candidates: object[]): void {
  if (!msg.reply || !isInbox(msg.reply)) return;
  const limit = nc.info?.max_payload ?? 2 ** 20;
  for (const candidate of candidates) {
    const body = Buffer.from(JSON.stringify(candidate));
    if (body.length <= limit) return void (nc.isClosed() || nc.isDraining() || nc.publish(msg.reply, body));
  }
}

// ── Names ────────────────────────────────────────────────────────────────────

/** One bad name makes the whole service invisible to the `nats` CLI. */
const sanitise = (name: string): string => name.replace(/[^A-Za-z0-9_-]/g, '_') || '_';
const withHash = (name: string): string =>
  `${sanitise(name)}_${createHash('sha256').update(name).digest('hex').slice(0, 8)}`;

/** All instances of a server share the name of its service, so it depends on the server's name only. */
const serviceName = (server: string): string => `mcp-${sanitise(server) === server ? server : withHash(server)}`;

/** Of two endpoints with one sanitised name the first keeps it: fixed endpoints, then tools that need no change, then others. */
function endpointNames(endpoints: readonly Endpoint[]): Endpoint[] {
  const owners = new Map<string, Endpoint>();
  const isPlain = (endpoint: Endpoint) => sanitise(endpoint.name) === endpoint.name;
  for (const endpoint of [...endpoints.filter(isPlain), ...endpoints])
    if (!owners.has(sanitise(endpoint.name))) owners.set(sanitise(endpoint.name), endpoint);
  return endpoints.map((endpoint) => {
    const name = sanitise(endpoint.name);
    return { ...endpoint, name: owners.get(name) === endpoint ? name : withHash(endpoint.name) };
  });
}

/** Servers call their versions all sorts of things; the CLI takes semver only. */
function semver(version: string): string {
  const [, major = 0, minor = 0, patch = 0, rest = ''] =
    /^\D*(\d{1,9})(?:\.(\d{1,9}))?(?:\.(\d{1,9}))?(-[0-9A-Za-z][0-9A-Za-z.-]*)?/.exec(version) ?? [];
  const isLegal = rest
    .slice(1)
    .split('.')
    .every((part) => part !== '' && !/^0\d+$/.test(part));
  return `${Number(major)}.${Number(minor)}.${Number(patch)}${isLegal ? rest : ''}`;
}
