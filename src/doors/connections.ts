// A connection that carries a whole MCP session, whatever its bytes travel on: the first message opens the session, every
// request is answered once while the connection lives, and what comes after its end is dropped, never sent elsewhere.

import { errorFrame, resultFrame } from '../protocol/compose.ts';
import { errorObject, type Failure, failureOf } from '../protocol/failures.ts';
import type { Frame, Malformed } from '../protocol/frame.ts';
import type { HostDoor, HostSession, Scope, Sessions } from '../sessions/host.ts';
import { createAnswers, ENDED, type Request } from './answers.ts';
import { refusalFrame } from './batches.ts';

export type ConnectionOptions = {
  readonly sessions: Pick<Sessions, 'open'>;
  readonly principal: string;
  readonly door: HostDoor;
  readonly scope: Scope;
  /** Takes a frame with its newline, and never throws. */
  readonly send: (frame: Buffer) => void;
  /** The session to go on with; without one the host must say `initialize`. */
  readonly resumed?: HostSession | undefined;
  /** Called before the answer to `initialize` leaves. */
  readonly onOpen?: (session: HostSession) => void;
  /** The session has ended elsewhere and what was in flight is answered: the connection is of no more use. */
  readonly onEnded: () => void;
  /** What no caller is told: a bug of ours. */
  readonly onFault: (error: unknown) => void;
};

export type Connection = {
  /** One message of the host, or a batch of them, and how large it was. */
  take(frame: Frame, bytes: number): void;
  readonly isOpen: boolean;
  /** No further request is accepted; resolves when those in flight are answered. */
  drain(): Promise<void>;
  /** The session ends when its last call has, unless it is kept for the host to come back to. */
  close(session: 'ended' | 'kept'): void;
};

/** What a host may send before it has its answer to `initialize`. */
const MAX_HELD = 1_000;
const MAX_HELD_BYTES = 16 * 1024 * 1024;
/** How long the answers of a session that was ended elsewhere are waited for. */
const LAST_WORDS_MS = 2_000;
const EMPTY = Buffer.from('{}');

export function serveConnection(options: ConnectionOptions): Connection {
  const { sessions, principal, door, scope, send, onFault } = options;
  let session: HostSession | undefined;
  let held: Frame[] | undefined;
  let heldBytes = 0;
  let isStopping = false;
  let isClosed = false;
  let isEnded = false;
  let leave = (): void => {};
  let stopListening = (): void => {};
  let idlers: (() => void)[] = [];

  const tell = (frame: Buffer): void => {
    if (!isClosed) send(frame);
  };
  const answers = createAnswers({ send: tell, onFault, onAnswered: settle });
  if (options.resumed) enter(options.resumed);

  function enter(opened: HostSession): void {
    session = opened;
    const [detach, release] = [opened.attach(tell), opened.hold()];
    leave = () => {
      detach();
      release();
    };
    stopListening = opened.onEnded(over);
  }

  function whenIdle(work: () => void): void {
    idlers.push(work);
    settle();
  }

  function settle(): void {
    if (held || answers.inFlight.size > 0) return;
    const ready = idlers;
    idlers = [];
    for (const work of ready) work();
  }

  /** Its calls were cancelled; the host hears of that before it hears that there is nobody here any more. */
  function over(): void {
    isEnded = true;
    if (isClosed) return;
    answers.refuse(ENDED);
    let isTold = false;
    const end = (): void => {
      if (!isTold && !isClosed) options.onEnded();
      isTold = true;
    };
    whenIdle(end);
    setTimeout(end, LAST_WORDS_MS).unref();
  }

  function receive(frame: Frame): void {
    if (session) return answers.take(session, frame);
    if (frame.kind === 'malformed') return tell(refusalFrame(frame));
    if (frame.kind === 'batch') return tell(refusalFrame(NOT_FIRST));
    if (frame.kind !== 'request') return;
    if (isStopping) return tell(errorFrame(frame.id, errorObject(STOPPING)));
    if (frame.method === 'initialize') return void initialize(frame);
    tell(frame.method === 'ping' ? resultFrame(frame.id, EMPTY) : refusalFrame({ ...NOT_FIRST, id: frame.id }));
  }

  async function initialize({ id, params = EMPTY }: Request): Promise<void> {
    held = [];
    try {
      const opened = await sessions.open({ principal, door, scope, params });
      if (isClosed)
        await opened.session.end(); // nobody has heard of it
      else {
        options.onOpen?.(opened.session);
        tell(resultFrame(id, opened.result));
        enter(opened.session);
      }
    } catch (error) {
      tell(errorFrame(id, errorObject(failureOf(error, onFault))));
    }
    const waiting = held;
    [held, heldBytes] = [undefined, 0];
    for (const each of waiting) receive(each);
    settle();
  }

  return {
    take(frame, bytes) {
      if (isClosed) return;
      if (!held) return receive(frame);
      heldBytes += bytes;
      if (held.length < MAX_HELD && heldBytes <= MAX_HELD_BYTES) held.push(frame);
      else if (frame.kind === 'request') tell(errorFrame(frame.id, errorObject(TOO_EARLY)));
    },
    get isOpen() {
      return session !== undefined;
    },
    drain() {
      isStopping = true;
      answers.refuse(STOPPING);
      return new Promise(whenIdle);
    },
    close(fate) {
      if (isClosed) return;
      isClosed = true;
      leave();
      if (fate === 'kept') return stopListening();
      // A disconnect is not a cancel: what is in flight runs to its end, though nobody hears of it.
      whenIdle(() => {
        if (!isEnded) session?.end().catch(onFault);
      });
    },
  };
}

const NOT_FIRST: Malformed = { kind: 'malformed', code: -32600, why: 'the first request must be initialize' };
const STOPPING: Failure = { code: 'unavailable', delivery: 'not sent', message: 'troupe is stopping; try again' };
const TOO_EARLY: Failure = { code: 'busy', delivery: 'not sent', message: 'wait for the answer to initialize' };
