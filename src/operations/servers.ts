// What is asked of the servers beside calls: to start and stop them, what they offer, and to listen to their resources.

import type { Catalog } from '../catalog/catalog.ts';
import { ALL_KINDS, isKind, KINDS, type Kind } from '../catalog/kinds.ts';
import { pageOf } from '../catalog/pages.ts';
import { TroupeError } from '../protocol/failures.ts';
import type { Fleet } from '../servers/fleet.ts';
import { unlisted } from '../servers/lists.ts';
import type { Member } from '../servers/member.ts';
import { mustOffer } from '../servers/policy.ts';
import { meaningOf, type ServerState } from '../servers/states.ts';
import { LEASE_MS } from '../servers/subscriptions.ts';
import { type Caller, type Given, type Json, OWNER } from './parameters.ts';
import { serverStatus } from './status.ts';

type Servers = { readonly fleet: Fleet; readonly catalog: Catalog };

/** A command has come to its end, well or not: the server is where it was sent, or only a person can bring it back. */
const isEndOf = (type: 'start' | 'stop' | 'restart', state: ServerState): boolean =>
  meaningOf(state).isDown || (type !== 'stop' && state === 'ready');
/** Beyond what the settings of a server allow its opening and closing to take. */
const MARGIN_MS = 2_000;

export function knownServer(fleet: Pick<Fleet, 'member'>, name: string): Member {
  const member = fleet.member(name);
  if (!member) throw new TroupeError('unknownServer', `there is no server ${name}; troupe ps lists them`);
  return member;
}

/** Resolves when the server is where the command sends it, or has had the time for it. */
export async function commandServer(
  { fleet, catalog }: Servers,
  type: 'start' | 'stop' | 'restart',
  server: string,
): Promise<ReturnType<typeof serverStatus>> {
  const member = knownServer(fleet, server);
  const before = member.since;
  fleet.tell(member.name, { type });
  // A server that is already in the wanted state stays there; every other one has left its state by now.
  const isThere = () => isEndOf(type, member.state) && (member.since !== before || type !== 'restart');
  const { openMs, drainMs, stdinMs, termMs } = member.config.settings;
  await untilNews([fleet.watch], isThere, openMs + drainMs + stdinMs + termMs + MARGIN_MS);
  return serverStatus(member, catalog);
}

/** Tells a listener of changes until the listener leaves. */
type Watch = (listener: () => void) => () => void;

/** Resolves when the condition holds, which is checked again at each change; or when the time is over. */
export function untilNews(watches: readonly Watch[], isSo: () => boolean, limitMs: number): Promise<void> {
  if (isSo()) return Promise.resolve();
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      for (const leave of leaves) leave();
      resolve();
    };
    const leaves = watches.map((watch) => watch(() => isSo() && end()));
    const timer = setTimeout(end, limitMs);
  });
}

type Listed = {
  readonly items: readonly { readonly server: string; readonly item: Readonly<Record<string, unknown>> }[];
  readonly missing: readonly { readonly server: string; readonly state: string; readonly why: string }[];
};

export function kindOf({ fields: { kind, server } }: Given): { kind: Kind; server?: string } {
  if (!isKind(String(kind))) throw new TroupeError('invalid', `kind must be one of ${ALL_KINDS.join(', ')}`);
  return { kind: kind as Kind, ...(server !== undefined && { server: String(server) }) };
}

/** The definitions as their servers wrote them, and which servers have not been heard of yet, or give no list. */
export async function listAll({ fleet, catalog }: Servers, kind: Kind, server?: string): Promise<Json<Listed>> {
  const members = server === undefined ? fleet.members() : [knownServer(fleet, server)];
  const own = members.filter((member) => member.name === member.server);
  await Promise.all(own.map((member) => lookAgain(fleet, member, kind)));
  const items = own.flatMap(({ name }) =>
    catalog.get(name, kind).entries.map(({ bytes }) => `{"server":${JSON.stringify(name)},"item":${bytes.toString()}}`),
  );
  const missing = own
    .filter(({ name }) => catalog.get(name, kind).hash === '')
    .map(({ name, state, why }) => ({ server: name, state, why: catalog.get(name, kind).trouble?.why ?? why }));
  return Buffer.from(`{"items":[${items.join(',')}],"missing":${JSON.stringify(missing)}}`);
}

/** A server in an outage is tried again, and a list that could not be read is read again. */
async function lookAgain(fleet: Fleet, member: Member, kind: Kind): Promise<void> {
  fleet.expect(member);
  await member.relist?.(kind);
}

export type ListPage = {
  readonly server: string;
  readonly kind: string;
  readonly cursor: string | undefined;
  readonly maxBytes: number;
};

/** One page of what the caller's own process offers, or else of what is known of the server. */
export async function listPage(
  { fleet, catalog }: Servers,
  { server, kind, cursor, maxBytes }: ListPage,
  { principal = OWNER }: Caller,
): Promise<Buffer> {
  if (!isKind(kind)) throw new TroupeError('invalid', 'ask for tools, resources, templates or prompts');
  const member = fleet.knownFor(server, principal) ?? knownServer(fleet, server);
  const known = () => [member.name, server].map((name) => catalog.get(name, kind)).find(({ hash }) => hash !== '');
  await lookAgain(fleet, member, kind);
  if (!known()) await firstList({ fleet, catalog }, member, kind);
  mustOffer(member, KINDS[kind].method);
  const listing = known();
  if (!listing) throw unlisted(member, kind, catalog.get(member.name, kind));
  return pageOf(listing, kind, cursor, maxBytes);
}

/** Callers on a bus do not wait for long. */
const FIRST_LIST_MS = 2_000;

/** Resolves when the server has said what it offers, or that it does not, or it is plain that it will not for a while. */
function firstList({ fleet, catalog }: Servers, member: Member, kind: Kind): Promise<void> {
  const isSaid = (): boolean => {
    const { hash, trouble } = catalog.get(member.name, kind);
    return hash !== '' || trouble !== undefined;
  };
  const isOut = (): boolean => member.lane.isOut || !meaningOf(member.state).isComing;
  fleet.want(member);
  return untilNews([fleet.watch, catalog.watch], () => isSaid() || isOut(), FIRST_LIST_MS);
}

export type Listening = {
  readonly server: string;
  readonly uri: string;
  /** Tells several listeners of one caller apart. */
  readonly subscriber: string;
};
/** Whose process tells of updates, and for how long. */
type Lease = { readonly principal: string; readonly leaseMs: number };

/** Listening is a lease, renewed by asking again: on a bus nobody says that they left. */
export async function subscribe({ fleet }: Pick<Servers, 'fleet'>, wanted: Listening, caller: Caller): Promise<Lease> {
  const { member, holder } = listenerOf(fleet, wanted, caller);
  await member.subscriptions.add(wanted.uri, holder);
  return { principal: member.principal, leaseMs: LEASE_MS };
}

export async function unsubscribe(
  { fleet }: Pick<Servers, 'fleet'>,
  wanted: Listening,
  caller: Caller,
): Promise<Pick<Lease, 'principal'>> {
  const { member, holder } = listenerOf(fleet, wanted, caller);
  await member.subscriptions.remove(wanted.uri, holder);
  return { principal: member.principal };
}

function listenerOf(fleet: Fleet, { server, subscriber }: Listening, { principal = OWNER }: Caller) {
  const member = fleet.memberFor(server, principal);
  if (!member) throw new TroupeError('unknownServer', `there is no server ${server}`);
  mustOffer(member, 'resources/subscribe');
  fleet.want(member);
  return { member, holder: `${principal} ${subscriber}` };
}
