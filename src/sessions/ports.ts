// Who a session is, and what it needs of the rest of the daemon.

import type { Ask, Asking } from '../calls/call.ts';
import type { Catalog } from '../catalog/catalog.ts';
import type { Kind } from '../catalog/kinds.ts';
import type { ClientCapabilities } from '../protocol/eras.ts';
import type { Frame } from '../protocol/frame.ts';
import type { Level } from '../protocol/signals.ts';
import type { Roots } from '../roots/roots.ts';
import type { Fleet } from '../servers/fleet.ts';
import type { Member } from '../servers/member.ts';
import type { Store } from '../store/store.ts';
import type { Tasks } from '../tasks/task.ts';
import type { World } from '../world/world.ts';
import type { HostSession } from './host.ts';
import type { Scopes } from './scopes.ts';
import type { LocalStreams } from './streams.ts';

export type Identity = Pick<HostSession, 'id' | 'principal' | 'door' | 'scope' | 'era'> & {
  readonly capabilities: ClientCapabilities;
  readonly level: Level | undefined;
};

/** A host is there to be asked what a task asks: each open ask of the task, now and later, is given out once, until the signal. */
export type Attend = (to: {
  readonly task: string;
  readonly principal: string;
  readonly onAsk: (ask: Ask) => Asking | undefined;
  readonly signal: AbortSignal;
}) => void;

export type SessionPorts = {
  readonly world: World;
  readonly fleet: Fleet;
  readonly catalog: Catalog;
  readonly store: Store;
  readonly scopes: Scopes;
  readonly streams: LocalStreams;
  readonly roots: Pick<Roots, 'host' | 'told'>;
  readonly tasks: Tasks;
  readonly attend: Attend;
  /** Resolves when the list of that server is known, or when it is plain that it will not be for a while; rejects when it is refused. */
  readonly firstList: (member: Member, kind: Kind) => Promise<void> | undefined;
  /** The log level of a session has changed, so a server may have to say more, or less. */
  readonly setLevels: (member: Member) => void;
  /** Gives a message that nothing here waits for to the other daemons that may serve the same session. */
  readonly handOver: (session: string, principal: string, frame: Frame) => void;
};

/** Tells the session's chart that something of it is in use, and that it no longer is. */
export type Presence = { readonly enter: () => void; readonly leave: () => void };
