// The link to a server on the network, by the transport its configuration names. One that is said to speak Streamable HTTP
// and turns out to be older is spoken to as the older one.

import type { Catalog } from '../../catalog/catalog.ts';
import type { RemoteServer } from '../../config/schema.ts';
import type { Link, LinkEvents } from '../link.ts';
import type { Member } from '../member.ts';
import { addressOf } from './address.ts';
import { type Authorizer, staticAuthorizer } from './authorizer.ts';
import { createClient } from './client.ts';
import { failures } from './failures.ts';
import { httpLink } from './http.ts';
import { mirroredHeaders } from './mirrored.ts';
import { sseLink } from './sse.ts';
import { webSocketLink } from './websocket.ts';

export type RemoteWorld = {
  readonly catalog: Catalog;
  /** Who we are to that server; without it the headers of the configuration say so. */
  readonly authorizerOf?: ((member: Member) => Authorizer) | undefined;
};

/** Each request takes a connection of its own while it is not answered. */
const MAX_POSTS = 256;

export function remoteLink(world: RemoteWorld, member: Member, config: RemoteServer, events: LinkEvents): Link {
  const address = addressOf(config);
  if (typeof address === 'string') return deadLink(address, events);
  const authorizer = world.authorizerOf?.(member) ?? staticAuthorizer(config);
  if (config.transport === 'ws') return webSocketLink({ address, config, authorizer, events });

  const { settings } = config;
  const shared = {
    ...{ address, events, client: createClient(address, config, authorizer), maxBytes: settings.maxFrameBytes },
    say: failures(member.server, address.where),
    maxPosts: Math.min(settings.maxInFlight, MAX_POSTS),
    onDebug: (text: string) => member.logger.debug(text),
  };
  const close = (why: string): void => events.onClosed(why, false);
  if (config.transport === 'sse') return sseLink({ ...shared, onRefused: close });

  let link: Link = httpLink({
    ...shared,
    goodbyeMs: settings.stdinMs,
    headersOf: (call) => mirroredHeaders(call, world.catalog.get(member.name, 'tools').entries),
    onLegacy({ frame, id, call }, giveUp) {
      link = sseLink({ ...shared, onRefused: giveUp });
      link.request(frame, id, call);
    },
  });
  return {
    request: (...sent) => link.request(...sent),
    notify: (...sent) => link.notify(...sent),
    reply: (frame) => link.reply(frame),
    drop: (id) => link.drop(id),
    negotiated: (era) => link.negotiated(era),
    hasRoom: () => link.hasRoom(),
    pause: () => link.pause(),
    resume: () => link.resume(),
    close: () => link.close(),
    kill: () => link.kill(),
  };
}

/** For an address that is none: it is said once, as soon as somebody listens. */
function deadLink(why: string, events: LinkEvents): Link {
  const said = setImmediate(() => events.onClosed(why, true));
  const nothing = (): void => {};
  return {
    ...{ request: nothing, notify: nothing, reply: () => true, drop: () => false, negotiated: nothing },
    ...{ hasRoom: () => false, pause: nothing, resume: nothing, close: nothing },
    kill: () => clearImmediate(said),
  };
}
