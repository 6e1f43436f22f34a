// One request in a POST and its answer: plain JSON if the answer comes soon and nothing before it, else a stream of events
// which the host can come back to. A host that leaves cancels nothing: what comes later goes to the stream, if there is one. One
// that does not come back has left for good.
// Nearly every call is such an exchange, so one that is answered soon makes little more than its record and its line.

import { createDeadlines, type Deadlines, type Due, now } from '../../calls/deadlines.ts';
import { sentence, TroupeError } from '../../protocol/failures.ts';
import type { HostSession, Line, Stream } from '../../sessions/host.ts';
import type { HttpContext } from './context.ts';
import { startEvents, writeLive } from './events.ts';
import { readStream } from './reading.ts';
import { type HttpRequest, isGone, onGone, refuseThrown, sendJson } from './request.ts';

/** Waits for its answer until the deadline, then becomes a stream. */
export type Exchange = Due & {
  readonly door: HttpContext;
  readonly http: HttpRequest;
  readonly session: HostSession;
  readonly id: string;
  readonly leave: () => void;
  isStream: boolean;
  isAnswered: boolean;
  /** The messages that have come while the stream is being committed. */
  held: Message[] | undefined;
  /** Its stream, once there is one, and how to look no more after who reads it. */
  stream: string | undefined;
  forgetReader: (() => void) | undefined;
  append: Stream['append'] | undefined;
};
type Message = { readonly frame: Buffer; readonly isLast: boolean };

export const createPatience = (): Deadlines<Due> => createDeadlines<Exchange>(becomeStream);

export function beginExchange(door: HttpContext, http: HttpRequest, session: HostSession, id: string): Line {
  const exchange: Exchange = {
    deadline: now() + door.timing.patienceMs,
    slot: -1,
    dueBefore: undefined,
    dueAfter: undefined,
    door,
    http,
    session,
    id,
    leave: session.hold(),
    isStream: false,
    isAnswered: false,
    held: undefined,
    stream: undefined,
    forgetReader: undefined,
    append: undefined,
  };
  door.owed.add();
  door.patience.add(exchange);
  return {
    tell: (frame) => tell(exchange, frame),
    answer: (frame) => answer(exchange, frame),
    isAbsent: () => isAbsent(exchange),
  };
}

const isAbsent = ({ door, http, stream }: Exchange): boolean =>
  isGone(http) && (stream === undefined || !door.readers.isRead(stream));

function tell(exchange: Exchange, frame: Buffer): void {
  becomeStream(exchange);
  if (exchange.isStream) put(exchange, frame, false); // else the host has left
}

function answer(exchange: Exchange, frame: Buffer): void {
  const { door, http } = exchange;
  if (exchange.isAnswered) return;
  exchange.isAnswered = true;
  door.patience.remove(exchange);
  exchange.forgetReader?.();
  exchange.leave();
  if (exchange.isStream) return put(exchange, frame, true);
  sendJson(http, 200, frame);
  door.owed.remove();
}

function becomeStream(exchange: Exchange): void {
  const { door, http, session, id } = exchange;
  door.patience.remove(exchange);
  if (exchange.isStream) return;
  if (isGone(http)) return queueMicrotask(() => session.callerIs('gone', id)); // it has nothing to come back to
  exchange.isStream = true;
  door.sessions.streams
    .open(session.id, id)
    .then(
      (stream) => useStream(exchange, stream),
      (error) => goWithoutStream(exchange, error),
    )
    // The stream cannot be read from the disk: the request goes on, and its host hears that the outcome is unknown.
    .catch((error) => refuseThrown(http, door, error, { id, delivery: 'outcome unknown' }));
}

function useStream(exchange: Exchange, stream: Stream): void {
  const { door, http, session, id } = exchange;
  exchange.stream = stream.id;
  release(exchange, stream.append);
  const start = { stream: stream.id, after: 0 };
  if (!isGone(http)) readStream(door, { http, session, start, primer: stream.primer });
  if (exchange.isAnswered) return;
  exchange.forgetReader = door.readers.watch(stream.id, (where) => session.callerIs(where, id));
}

/** Without a disk, or beyond the limit, the host still hears everything; it only cannot come back for it. */
function goWithoutStream(exchange: Exchange, error: unknown): void {
  const { door, http, session, id } = exchange;
  if (!(error instanceof TroupeError && error.code === 'busy'))
    door.logger.warn({ door: 'http' }, `a stream is not kept: ${sentence(error)}`);
  if (!isGone(http))
    startEvents(http, ['Mcp-Session-Id', session.id], {
      world: door.world,
      keepAliveMs: door.settings.keepAliveMs,
    });
  release(exchange, (frame, isLast) => {
    writeLive(http, frame);
    if (isLast) http.res.end();
  });
  onGone(http, () => exchange.isAnswered || session.callerIs('gone', id));
}

function release(exchange: Exchange, to: Stream['append']): void {
  const { held = [] } = exchange;
  exchange.append = to;
  exchange.held = undefined;
  for (const { frame, isLast } of held) put(exchange, frame, isLast);
}

function put(exchange: Exchange, frame: Buffer, isLast: boolean): void {
  if (!exchange.append) {
    exchange.held ??= [];
    exchange.held.push({ frame, isLast });
    return;
  }
  const written = exchange.append(frame, isLast);
  // An answer is given when its readers were handed it, which is after it is on the disk.
  if (isLast) void Promise.resolve(written).finally(exchange.door.owed.remove);
}
