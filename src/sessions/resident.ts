// One session in memory, driven by its chart (machines/session.ts): here is what each effect of the chart does, and how
// connections, streams and requests that come and go become its events.

import { lowered, type Row } from '../../machines/lowered.ts';
import { type SessionEffect, type SessionEvent, sessionMachine } from '../../machines/session.ts';
import type { TroupeError } from '../protocol/failures.ts';
import type { HostSession } from './host.ts';
import type { Identity, SessionPorts } from './ports.ts';
import { createLocalSession, type LocalSession } from './session.ts';

type EventType = SessionEvent['type'];
type TimerEvent = Extract<EventType, 'used' | 'rested' | 'idled'>;

export type Resident = {
  readonly identity: Identity;
  readonly session: LocalSession;
  readonly host: HostSession;
  readonly home: Home;
  /** What the host said of itself; for the row of a new session. */
  readonly client: object;
  /** Where its chart is. */
  chart: Row<EventType, SessionEffect>;
  /** How many connections, streams and requests of it are open. Only the first and the last are events. */
  present: number;
  usedAt: number;
  /** The time of use that its row shows. */
  savedAt: number;
  /** Settles when its row is added, or ended, whichever was begun last. */
  writing: Promise<void>;
  readonly onEnded: Set<() => void>;
  readonly timer: Timer;
};

/** What all sessions in memory share. */
export type Home = {
  readonly ports: SessionPorts;
  readonly residents: Map<string, Resident>;
  /** How many sessions one principal may have, and what the next one is told. */
  readonly maxSessions: number;
  readonly noRoom: TroupeError;
  /** After how long unused a row has expired. */
  readonly idleMs: number;
  readonly onTrouble: (error: unknown) => void;
};

export type ResidentOptions = {
  readonly identity: Identity;
  readonly client?: object;
  /** The time of use that its row shows, or will show. */
  readonly savedAt: number;
};

/** How long a session stays in memory that nobody uses and nothing depends on. */
const REST_MS = 300_000;
/** How old the time of use in a row may be while the session is used. */
const MOST_SAVE_MS = 60_000;
const FIRST_STATE = lowered<EventType, SessionEffect>(sessionMachine);

export function createResident(home: Home, { identity, client = {}, savedAt }: ResidentOptions): Resident {
  const { id, principal, door, scope, era } = identity;
  const session = createLocalSession(home.ports, identity, {
    enter: () => enter(resident),
    leave: () => leave(resident),
  });
  const host: HostSession = {
    id,
    principal,
    door,
    scope,
    era,
    receive: session.receive,
    attach: session.attach,
    hold: () => hold(resident),
    callerIs: session.callerIs,
    onEnded(listener) {
      resident.onEnded.add(listener);
      return () => resident.onEnded.delete(listener);
    },
    end() {
      send(resident, 'end');
      return resident.writing;
    },
  };
  const resident: Resident = {
    identity,
    session,
    host,
    home,
    client,
    chart: FIRST_STATE,
    present: 0,
    usedAt: home.ports.world.date(),
    savedAt,
    writing: Promise.resolve(),
    onEnded: new Set(),
    timer: { event: 'rested', due: NEVER, wakesAt: NEVER, cancel: () => {} },
  };
  return resident;
}

/** Makes one step of the chart. An event that its state does not know changes nothing. */
export function send(resident: Resident, event: EventType): void {
  const step = resident.chart.steps[event];
  if (!step) return;
  resident.chart = step.next;
  for (const effect of step.effects) EFFECTS[effect](resident);
}

/** Whether a connection, a stream or a request of it is open. */
export const isOpen = ({ chart }: Resident): boolean => chart.state === 'resident.open';

function hold(resident: Resident): () => void {
  let isHeld = true;
  enter(resident);
  return () => {
    if (isHeld) leave(resident);
    isHeld = false;
  };
}

function enter(resident: Resident): void {
  if (resident.present++ === 0) send(resident, 'came');
}

function leave(resident: Resident): void {
  if (--resident.present === 0) send(resident, 'left');
}

// ── Effects ──────────────────────────────────────────────────────────────────

const EFFECTS: { readonly [effect in SessionEffect]: (resident: Resident) => void } = {
  addRow(resident) {
    const { identity, client, savedAt, home } = resident;
    const { id, principal, door, scope, era, capabilities } = identity;
    const described = [JSON.stringify(client), JSON.stringify(capabilities)];
    const row = [id, principal, door, scope, era, ...described, savedAt, savedAt, principal, home.maxSessions];
    const added = home.ports.store.commit('addSession', row).then((isAdded) => {
      if (!isAdded) throw home.noRoom;
    });
    resident.writing = added.then(
      () => send(resident, 'row.committed'),
      (error) => {
        send(resident, 'row.refused');
        throw error;
      },
    );
  },
  endRow(resident) {
    const { store, world } = resident.home.ports;
    const ended = store.commit('endSession', [world.date(), resident.identity.id]);
    resident.writing = ended.then(() => send(resident, 'row.ended'));
  },
  noteUse(resident) {
    resident.usedAt = resident.home.ports.world.date();
    if (resident.usedAt - resident.savedAt > saveMs(resident)) EFFECTS.saveUse(resident);
  },
  saveUse(resident) {
    resident.savedAt = resident.usedAt;
    resident.home.ports.store.write('touchSession', [resident.usedAt, resident.identity.id]);
  },
  enlist(resident) {
    resident.home.residents.set(resident.identity.id, resident);
    resident.home.ports.streams.skip(resident.identity.id);
  },
  delist({ identity, home }) {
    home.residents.delete(identity.id);
    home.ports.streams.forget(identity.id);
  },
  restore: ({ session, home }) => void session.restore().catch(home.onTrouble),
  dispose: ({ session, home }) => void session.dispose('the session has ended').catch(home.onTrouble),
  dropRoots({ identity, home }) {
    if (identity.capabilities.roots) void home.ports.roots.host(identity.id, undefined);
  },
  tellEnded({ onEnded }) {
    for (const listener of onEnded) listener();
  },
  startUse: (resident) => setTimer(resident, 'used', saveMs(resident)),
  startRest: (resident) => setTimer(resident, 'rested', Math.min(REST_MS, resident.home.idleMs)),
  startIdle: (resident) => setTimer(resident, 'idled', resident.home.idleMs - REST_MS),
  stopTimer({ timer }) {
    timer.cancel();
    timer.due = NEVER;
    timer.wakesAt = NEVER;
  },
};

/** Often enough that no row of a session in use expires. */
const saveMs = ({ home }: Resident): number => Math.min(MOST_SAVE_MS, home.idleMs / 4);

// ── The timer ────────────────────────────────────────────────────────────────

/**
 * The one thing that the state waits for. Every request sets it twice, so that it is only a time to look at: what really
 * runs is a timer that may wake too early, and then sleeps on.
 */
type Timer = { event: TimerEvent; due: number; wakesAt: number; cancel: () => void };

const NEVER = Number.POSITIVE_INFINITY;

function setTimer(resident: Resident, event: TimerEvent, ms: number): void {
  const { timer, home } = resident;
  timer.event = event;
  timer.due = home.ports.world.now() + ms;
  if (timer.due < timer.wakesAt) sleep(resident, ms);
}

function sleep(resident: Resident, ms: number): void {
  const { timer, home } = resident;
  const { world } = home.ports;
  timer.cancel();
  timer.wakesAt = world.now() + ms;
  timer.cancel = world.after(ms, () => wake(resident));
}

function wake(resident: Resident): void {
  const { timer, session, home } = resident;
  const leftMs = timer.due - home.ports.world.now();
  timer.wakesAt = NEVER;
  if (leftMs > 0) return sleep(resident, leftMs);
  try {
    const isNeeded = timer.event === 'rested' && home.idleMs > REST_MS && session.isNeeded();
    send(resident, isNeeded ? 'needed' : timer.event);
  } catch (error) {
    home.onTrouble(error);
  }
}
