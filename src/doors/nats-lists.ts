// The list of one kind as a server has it, one page at a time: what a caller's own process offers, or else what is known of
// the server. A list that nobody has seen yet is no empty one.

import type { Request } from '../bus/subjects.ts';
import type { Catalog } from '../catalog/catalog.ts';
import { isKind, KINDS } from '../catalog/kinds.ts';
import { pageOf } from '../catalog/pages.ts';
import { TroupeError } from '../protocol/failures.ts';
import type { Fleet } from '../servers/fleet.ts';
import { mustOffer } from '../servers/policy.ts';
import { cursorOf } from './requests.ts';

type World = { readonly fleet: Fleet; readonly catalog: Catalog };

export function listPage({ fleet, catalog }: World, request: Request, body: Buffer, maxBytes: number): Buffer {
  const { server, caller, tail: kind } = request;
  if (!isKind(kind)) throw new TroupeError('invalid', 'ask for tools, resources, templates or prompts');
  const member = fleet.knownFor(server, caller);
  const own = catalog.get(member?.name ?? server, kind);
  const listing = own.hash ? own : catalog.get(server, kind);
  mustOffer(member, KINDS[kind].method);
  if (!listing.hash && member?.state !== 'ready')
    throw new TroupeError(
      'unavailable',
      `server ${server} is ${member?.state}: ${member?.why || 'its lists are not known yet'}`,
    );
  return pageOf(listing, kind, cursorOf(body), maxBytes);
}
