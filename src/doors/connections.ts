// A connection that carries a whole MCP session, whatever its bytes travel on: the first message opens the session, every
// request is answered once while the connection lives, and answers that come after its end are dropped, never sent elsewhere.

import { errorFrame, resultFrame } from '../protocol/compose.ts';
import { errorObject, type Failure, failureOf } from '../protocol/failures.ts';
import type { Frame, Malformed } from '../protocol/frame.ts';
import type { HostDoor, HostSession, Scope, Sessions } from '../sessions/host.ts';
import type { World } from '../world/world.ts';
import { type Answers, createAnswers, ENDED, type Request } from './answers.ts';
import { refusalFrame } from './batches.ts';

export type ConnectionOptions = {
  readonly world: World;
  readonly sessions: Pick<Sessions, 'open'>;
  readonly principal: string;
  readonly door: HostDoor;
  readonly scope: Scope;
  /** The daemon that the host may be. */
  readonly via?: string | undefined;
  /** Takes a frame with its newline, and never throws. */
  readonly send: (frame: Buffer) => void;
  /** The session to go on with; without one the host must say `initialize`. */
  readonly resumed?: HostSession | undefined;
  /** Called before the answer to `initialize` leaves. */
  readonly onOpen?: (session: HostSession) => void;
  /** The session has ended elsewhere and its requests are answered: the connection is of no more use. */
  readonly onEnded: () => void;
  /** Takes faults of ours, of which no caller is told more than that there was one. */
  readonly onFault: (error: unknown) => void;
};

export type Connection = {
  /** One message of the host, or a batch of them, and how large it was. */
  take(frame: Frame, bytes: number): void;
  isOpen(): boolean;
  /** No further request is accepted; resolves when those in flight are answered. */
  drain(): Promise<void>;
  /** The session ends after its last call, unless it is kept for the host to come back to. */
  close(session: 'ended' | 'kept'): void;
};

/** How much a host may send before it has its answer to `initialize`. */
const MAX_HELD = 1_000;
const MAX_HELD_BYTES = 16 * 1024 * 1024;
/** How long the answers of a session that was ended elsewhere are waited for. */
const LAST_WORDS_MS = 2_000;
const EMPTY = Buffer.from('{}');

/** What the connection has come to. */
type State = {
  readonly options: ConnectionOptions;
  readonly answers: Answers;
  session: HostSession | undefined;
  /** While `initialize` is being answered: the messages that came after it, and how many bytes they had. */
  held: Frame[] | undefined;
  heldBytes: number;
  isStopping: boolean;
  isClosed: boolean;
  isEnded: boolean;
  leave: () => void;
  stopListening: () => void;
  /** Called when no request is in flight. */
  whenIdle: (() => void)[];
};

export function serveConnection(options: ConnectionOptions): Connection {
  const state: State = {
    options,
    answers: createAnswers({
      send: (frame) => tell(state, frame),
      onFault: options.onFault,
      onAnswered: () => settle(state),
    }),
    session: undefined,
    held: undefined,
    heldBytes: 0,
    isStopping: false,
    isClosed: false,
    isEnded: false,
    leave: () => {},
    stopListening: () => {},
    whenIdle: [],
  };
  if (options.resumed) enter(state, options.resumed);
  return {
    take: (frame, bytes) => take(state, frame, bytes),
    isOpen: () => state.session !== undefined,
    drain() {
      state.isStopping = true;
      state.answers.refuse(STOPPING);
      return new Promise((resolve) => onIdle(state, resolve));
    },
    close: (fate) => close(state, fate),
  };
}

function tell(state: State, frame: Buffer): void {
  if (!state.isClosed) state.options.send(frame);
}

function enter(state: State, opened: HostSession): void {
  state.session = opened;
  const detach = opened.attach((frame) => tell(state, frame));
  const release = opened.hold();
  state.leave = () => {
    detach();
    release();
  };
  state.stopListening = opened.onEnded(() => sessionEnded(state));
}

// ── Messages of the host ─────────────────────────────────────────────────────

function take(state: State, frame: Frame, bytes: number): void {
  const { held } = state;
  if (state.isClosed) return;
  if (!held) return receive(state, frame);
  state.heldBytes += bytes;
  if (held.length < MAX_HELD && state.heldBytes <= MAX_HELD_BYTES) held.push(frame);
  else if (frame.kind === 'request') tell(state, errorFrame(frame.id, errorObject(TOO_EARLY)));
}

function receive(state: State, frame: Frame): void {
  if (state.session) return state.answers.take(state.session, frame);
  if (frame.kind === 'malformed') return tell(state, refusalFrame(frame));
  if (frame.kind === 'batch') return tell(state, refusalFrame(NOT_FIRST));
  if (frame.kind !== 'request') return;
  if (state.isStopping) return tell(state, errorFrame(frame.id, errorObject(STOPPING)));
  if (frame.method === 'initialize') return void initialize(state, frame);
  tell(state, frame.method === 'ping' ? resultFrame(frame.id, EMPTY) : refusalFrame({ ...NOT_FIRST, id: frame.id }));
}

async function initialize(state: State, { id, params = EMPTY }: Request): Promise<void> {
  const { sessions, principal, door, scope, via, onOpen, onFault } = state.options;
  const held: Frame[] = [];
  state.held = held;
  try {
    const opened = await sessions.open({ principal, door, scope, params, via });
    if (state.isClosed)
      await opened.session.end(); // the host has left without its id
    else {
      onOpen?.(opened.session);
      tell(state, resultFrame(id, opened.result));
      enter(state, opened.session);
    }
  } catch (error) {
    tell(state, errorFrame(id, errorObject(failureOf(error, onFault))));
  }
  state.held = undefined;
  state.heldBytes = 0;
  for (const each of held) receive(state, each);
  settle(state);
}

// ── The end ──────────────────────────────────────────────────────────────────

function onIdle(state: State, work: () => void): void {
  state.whenIdle.push(work);
  settle(state);
}

function settle(state: State): void {
  if (state.held || state.answers.inFlight.size > 0) return;
  const ready = state.whenIdle;
  state.whenIdle = [];
  for (const work of ready) work();
}

/** The session's calls were cancelled; the host hears those answers before the connection is closed. */
function sessionEnded(state: State): void {
  const { world, onEnded } = state.options;
  state.isEnded = true;
  if (state.isClosed) return;
  state.answers.refuse(ENDED);
  let isTold = false;
  const end = (): void => {
    if (!isTold && !state.isClosed) onEnded();
    isTold = true;
  };
  onIdle(state, end);
  world.after(LAST_WORDS_MS, end);
}

function close(state: State, fate: 'ended' | 'kept'): void {
  if (state.isClosed) return;
  state.isClosed = true;
  // Answers do not go elsewhere, so nobody will hear those that are still owed.
  for (const id of state.answers.inFlight) state.session?.callerIs('gone', id);
  state.leave();
  if (fate === 'kept') return state.stopListening();
  // A disconnect is not a cancel: what its server has runs to its end, though its answer is dropped.
  onIdle(state, () => {
    if (!state.isEnded) state.session?.end().catch(state.options.onFault);
  });
}

const NOT_FIRST: Malformed = { kind: 'malformed', code: -32600, why: 'the first request must be initialize' };
const STOPPING: Failure = { code: 'unavailable', delivery: 'not sent', message: 'troupe is stopping; try again' };
const TOO_EARLY: Failure = { code: 'busy', delivery: 'not sent', message: 'wait for the answer to initialize' };
