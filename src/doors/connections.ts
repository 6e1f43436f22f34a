// A connection that carries a whole MCP session, whatever its bytes travel on: the first message opens the session, every
// request is answered once while the connection lives, and what comes after its end is dropped, never sent elsewhere.

import type { Door } from '../calls/call.ts';
import { errorObject, type Failure, TroupeError } from '../failures.ts';
import { errorFrame, resultFrame } from '../protocol/compose.ts';
import { ERA_FACTS } from '../protocol/eras.ts';
import { type Frame, type Malformed, readFrame } from '../protocol/frame.ts';
import type { HostSession, Line, Scope, Sessions } from '../sessions/host.ts';

export type ConnectionOptions = {
  readonly sessions: Pick<Sessions, 'open'>;
  readonly principal: string;
  readonly door: Door;
  readonly scope: Scope;
  /** Takes a frame with its newline, and never throws. */
  readonly send: (frame: Buffer) => void;
  /** The session to go on with; without one the host must say `initialize`. */
  readonly resumed?: HostSession | undefined;
  /** Called before the answer to `initialize` leaves. */
  readonly onOpen?: (session: HostSession) => void;
  /** What no caller is told: a bug of ours, or an outage of the store. */
  readonly onFault: (error: unknown) => void;
};

export type Connection = {
  /** One message of the host, or a batch of them. */
  take(message: Buffer): void;
  readonly isOpen: boolean;
  /** No further request is accepted; resolves when those in flight are answered. */
  drain(): Promise<void>;
  /** The session ends when its last call has, unless it is kept for the host to come back to. */
  close(session: 'ended' | 'kept'): void;
};

type Request = Extract<Frame, { kind: 'request' }>;

/** What a host may send before it has its answer to `initialize`. */
const MAX_HELD = 1_000;
const MAX_HELD_BYTES = 16 * 1024 * 1024;
const EMPTY = Buffer.from('{}');

export function serveConnection(options: ConnectionOptions): Connection {
  const { sessions, principal, door, scope, send, onFault } = options;
  let session: HostSession | undefined;
  let held: Frame[] | undefined;
  let heldBytes = 0;
  let inFlight = 0;
  let isClosed = false;
  let leave = (): void => {};
  let onIdle: (() => void) | undefined;

  const tell = (frame: Buffer): void => {
    if (!isClosed) send(frame);
  };
  // One line for all requests: which one is answered stands in the frame.
  const line: Line = {
    tell,
    answer(frame) {
      inFlight -= 1;
      tell(frame);
      if (inFlight === 0) onIdle?.();
    },
  };
  if (options.resumed) enter(options.resumed);

  function enter(opened: HostSession): void {
    session = opened;
    const [detach, release] = [opened.attach(tell), opened.hold()];
    leave = () => {
      detach();
      release();
    };
  }

  function receive(frame: Frame): void {
    if (frame.kind === 'request') return request(frame, line);
    if (frame.kind === 'batch') return batch(frame.frames);
    if (frame.kind === 'malformed') return tell(refusal(frame));
    session?.receive(frame, line);
  }

  function request(frame: Request, to: Line): void {
    inFlight += to === line ? 1 : 0; // a batch counts as one
    if (onIdle) return to.answer(errorFrame(frame.id, errorObject(STOPPING)));
    if (frame.method === 'initialize') return initialize(frame, to);
    if (session) return session.receive(frame, to);
    to.answer(frame.method === 'ping' ? resultFrame(frame.id, EMPTY) : refusal({ ...NOT_FIRST, id: frame.id }));
  }

  function initialize(frame: Request, to: Line): void {
    const why = to !== line ? 'initialize cannot be part of a batch' : 'this connection is initialized already';
    if (session || to !== line) return to.answer(refusal({ kind: 'malformed', code: -32600, why, id: frame.id }));
    held = [];
    void open(frame).then(() => {
      const waiting = held ?? [];
      [held, heldBytes] = [undefined, 0];
      for (const each of waiting) receive(each);
    });
  }

  async function open({ id, params = EMPTY }: Request): Promise<void> {
    try {
      const opened = await sessions.open({ principal, door, scope, params });
      if (isClosed) return await opened.session.end(); // nobody has heard of it
      options.onOpen?.(opened.session);
      line.answer(resultFrame(id, opened.result));
      enter(opened.session);
    } catch (error) {
      if (!(error instanceof TroupeError)) onFault(error);
      line.answer(errorFrame(id, errorObject(failureOf(error))));
    }
  }

  function batch(frames: Frame[]): void {
    if (!session || !ERA_FACTS[session.era].batches) return tell(refusal(NO_BATCH));
    const answered = frames.filter(({ kind }) => kind === 'request' || kind === 'malformed').length;
    inFlight += answered > 0 ? 1 : 0;
    const to: Line = { tell, answer: gather(answered, line.answer) };
    for (const frame of frames) {
      if (frame.kind === 'request') request(frame, to);
      else if (frame.kind === 'malformed') to.answer(refusal(frame));
      else receive(frame);
    }
  }

  return {
    take(message) {
      const frame = readFrame(message);
      if (!held) return receive(frame);
      heldBytes += message.length;
      if (held.length < MAX_HELD && heldBytes <= MAX_HELD_BYTES) held.push(frame);
      else if (frame.kind === 'request') tell(errorFrame(frame.id, errorObject(TOO_EARLY)));
    },
    get isOpen() {
      return session !== undefined;
    },
    drain: () =>
      new Promise((resolve) => {
        onIdle = resolve;
        if (inFlight === 0) resolve();
      }),
    close(fate) {
      if (isClosed) return;
      isClosed = true;
      leave();
      if (fate === 'kept') return;
      // A disconnect is not a cancel: what is in flight runs to its end, though nobody hears of it.
      onIdle = () => void session?.end().catch(onFault);
      if (inFlight === 0) onIdle();
    },
  };
}

const NOT_FIRST: Malformed = { kind: 'malformed', code: -32600, why: 'the first request must be initialize' };
const NO_BATCH: Malformed = {
  kind: 'malformed',
  code: -32600,
  why: 'batches are part of MCP 2025-03-26 only; send one message at a time',
};
const STOPPING: Failure = { code: 'unavailable', delivery: 'not sent', message: 'troupe is stopping; try again' };
const TOO_EARLY: Failure = { code: 'busy', delivery: 'not sent', message: 'wait for the answer to initialize' };

const refusal = ({ code, why, id = 'null' }: Malformed): Buffer =>
  errorFrame(id, Buffer.from(JSON.stringify({ code, message: why })));

function failureOf(error: unknown): Failure {
  if (error instanceof TroupeError) return { code: error.code, delivery: 'not sent', message: error.message };
  return { code: 'internal', delivery: 'not sent', message: 'troupe could not open a session; see `troupe logs`' };
}

/** The answers to a batch go back together, as JSON-RPC has it. */
function gather(count: number, send: (frame: Buffer) => void): (frame: Buffer) => void {
  const parts: Buffer[] = [];
  return (frame) => {
    parts.push(parts.length === 0 ? BEGIN : NEXT, frame.subarray(0, -1));
    if (parts.length === 2 * count) send(Buffer.concat([...parts, END]));
  };
}

const BEGIN = Buffer.from('[');
const NEXT = Buffer.from(',');
const END = Buffer.from(']\n');
