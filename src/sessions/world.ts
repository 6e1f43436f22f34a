// What a session needs of the rest of the daemon.

import type { Ask, Asking } from '../calls/call.ts';
import type { Catalog } from '../catalog/catalog.ts';
import type { Kind } from '../catalog/kinds.ts';
import type { Frame } from '../protocol/frame.ts';
import type { Roots } from '../roots/roots.ts';
import type { Fleet } from '../servers/fleet.ts';
import type { Member } from '../servers/member.ts';
import type { Store } from '../store/store.ts';
import type { Tasks } from '../tasks/task.ts';
import type { Scopes } from './scopes.ts';
import type { LocalStreams } from './streams.ts';

/** Somebody is there to be asked what a task asks: each open ask of it, now and later, is given out once, until the signal. */
export type Attend = (to: {
  readonly task: string;
  readonly principal: string;
  readonly onAsk: (ask: Ask) => Asking | undefined;
  readonly signal: AbortSignal;
}) => void;

export type World = {
  readonly fleet: Fleet;
  readonly catalog: Catalog;
  readonly store: Store;
  readonly scopes: Scopes;
  readonly streams: LocalStreams;
  readonly roots: Pick<Roots, 'host'>;
  readonly tasks: Tasks;
  readonly attend: Attend;
  /** Resolves when that list is known, or when it is plain that it will not be for a while. */
  readonly firstList: (process: Member, kind: Kind) => Promise<void> | undefined;
  /** A session's log level has changed, so a server may have to say more, or less. */
  readonly setLevels: (member: Member) => void;
  /** We have no use for this message; another daemon that serves the same session may. */
  readonly handOver: (session: string, principal: string, frame: Frame) => void;
};
