// The link to a server on the network, by the transport its configuration names. A server of 2024-11-05 that is configured for
// Streamable HTTP is spoken to over HTTP+SSE.

import type { Catalog } from '../../catalog/catalog.ts';
import type { RemoteServer } from '../../config/schema.ts';
import { VIA } from '../../protocol/version.ts';
import type { Link, LinkEvents } from '../connection/link.ts';
import type { Member } from '../member.ts';
import { daemonOf } from '../stdio/mark.ts';
import { addressOf } from './address.ts';
import { type Authorizer, staticAuthorizer } from './authorizer.ts';
import { Client } from './client.ts';
import { failures } from './failures.ts';
import { HttpLink } from './http.ts';
import { mirroredHeaders } from './mirrored.ts';
import { SseLink } from './sse.ts';
import { WebSocketLink } from './websocket.ts';

export type RemoteWorld = {
  readonly catalog: Catalog;
  /** The name of this daemon: a daemon that is configured to serve itself recognizes itself by it. */
  readonly daemon: string;
  /** The authorizer of a server that may need a login; without it the headers of the configuration are sent. */
  readonly authorizerOf?: ((member: Member) => Authorizer) | undefined;
};

/** A request takes a connection of its own until it is answered. */
const MAX_POSTS = 256;

export function remoteLink(world: RemoteWorld, member: Member, config: RemoteServer, events: LinkEvents): Link {
  const address = addressOf(config);
  if (typeof address === 'string') return deadLink(address, events);
  const authorizer = world.authorizerOf?.(member) ?? staticAuthorizer(config);
  const headers = { ...config.headers, [VIA]: daemonOf(world.daemon) };
  if (config.transport === 'ws') {
    const link = new WebSocketLink({ address, config, headers, authorizer, events });
    return bound(() => link);
  }

  const { settings } = config;
  const shared = {
    address,
    events,
    client: new Client(address, headers, authorizer),
    maxBytes: settings.maxFrameBytes,
    say: failures(member.server, address.where),
    maxPosts: Math.min(settings.maxInFlight, MAX_POSTS),
    onDebug: (text: string) => member.logger.debug(text),
  };
  if (config.transport === 'sse') {
    const link = new SseLink({ onRefused: (why) => events.onClosed(why, false), ...shared });
    return bound(() => link);
  }

  let link: Link = new HttpLink({
    goodbyeMs: settings.stdinMs,
    headersOf: (call) => mirroredHeaders(call, world.catalog.get(member.name, 'tools').entries),
    onLegacy({ frame, id, call }, giveUp) {
      link = new SseLink({ onRefused: giveUp, ...shared });
      link.request(frame, id, call);
    },
    ...shared,
  });
  return bound(() => link);
}

/** A link whose methods can be passed around by themselves, and lead to the link that there is by then. */
function bound(current: () => Link): Link {
  return {
    request: (frame, id, call) => current().request(frame, id, call),
    notify: (frame, method) => current().notify(frame, method),
    reply: (frame) => current().reply(frame),
    drop: (id) => current().drop(id),
    negotiated: (era) => current().negotiated(era),
    hasRoom: () => current().hasRoom(),
    pause: () => current().pause(),
    resume: () => current().resume(),
    close: () => current().close(),
    kill: () => current().kill(),
  };
}

/** For an address that is none: the link closes in the next turn, when its events can be heard. */
function deadLink(why: string, events: LinkEvents): Link {
  const closing = setImmediate(() => events.onClosed(why, true));
  const nothing = (): void => {};
  return {
    request: nothing,
    notify: nothing,
    reply: () => true,
    drop: () => false,
    negotiated: nothing,
    hasRoom: () => false,
    pause: nothing,
    resume: nothing,
    close: nothing,
    kill: () => clearImmediate(closing),
  };
}
