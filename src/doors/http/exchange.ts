// One POST and the answer to its request: plain JSON if it comes soon and alone, else a stream of events which the host
// can come back to. A host that leaves cancels nothing: what comes then goes to its stream, if it has one.
// Nearly every call is one of these, so one that is answered soon makes little more than its record and its line.

import { createDeadlines, type Deadlines, type Due, now } from '../../calls/deadlines.ts';
import { sentence, TroupeError } from '../../protocol/failures.ts';
import type { HostSession, Line, Stream } from '../../sessions/host.ts';
import { startEvents, writeLive } from './events.ts';
import { readStream } from './reading.ts';
import { type House, isGone, refuseThrown, sendJson, type Visit } from './visit.ts';

/** Waits for its answer until the deadline, then becomes a stream. */
export type Exchange = Due & {
  readonly house: House;
  readonly visit: Visit;
  readonly session: HostSession;
  readonly id: string;
  readonly leave: () => void;
  isStream: boolean;
  isAnswered: boolean;
  /** What has come while the stream is being committed. */
  held: Message[] | undefined;
  append: Stream['append'] | undefined;
};
type Message = { readonly frame: Buffer; readonly isLast: boolean };

export type Patience = Deadlines<Exchange>;
export const createPatience = (): Patience => createDeadlines<Exchange>(becomeStream);

export function beginExchange(house: House, visit: Visit, session: HostSession, id: string): Line {
  const exchange: Exchange = {
    deadline: now() + house.timing.patienceMs,
    slot: -1,
    house,
    visit,
    session,
    id,
    leave: session.hold(),
    isStream: false,
    isAnswered: false,
    held: undefined,
    append: undefined,
  };
  house.owed.count += 1;
  house.patience.add(exchange);
  return { tell: (frame) => tell(exchange, frame), answer: (frame) => answer(exchange, frame) };
}

function tell(exchange: Exchange, frame: Buffer): void {
  becomeStream(exchange);
  if (exchange.isStream) put(exchange, frame, false); // else nobody is there to hear it
}

function answer(exchange: Exchange, frame: Buffer): void {
  const { house, visit } = exchange;
  if (exchange.isAnswered) return;
  exchange.isAnswered = true;
  house.patience.remove(exchange);
  house.owed.count -= 1;
  exchange.leave();
  if (exchange.isStream) put(exchange, frame, true);
  else sendJson(visit, 200, frame);
}

function becomeStream(exchange: Exchange): void {
  const { house, visit, session, id } = exchange;
  house.patience.remove(exchange);
  if (exchange.isStream || isGone(visit)) return;
  exchange.isStream = true;
  house.sessions.streams
    .open(session.id, id)
    .then(
      (stream) => keep(exchange, stream),
      (error) => keepNothing(exchange, error),
    )
    // What is kept cannot be read: the request goes on, and its host hears that nobody knows what becomes of it.
    .catch((error) => refuseThrown(visit, house, error, { id, delivery: 'outcome unknown' }));
}

function keep(exchange: Exchange, stream: Stream): void {
  const { house, visit, session } = exchange;
  release(exchange, stream.append);
  const place = { stream: stream.id, after: 0 };
  if (!isGone(visit)) readStream(house, { visit, session, place, primer: stream.primer });
}

/** Without a disk, or beyond the limit, the host still hears everything; it only cannot come back for it. */
function keepNothing(exchange: Exchange, error: unknown): void {
  const { house, visit, session } = exchange;
  if (!(error instanceof TroupeError && error.code === 'busy'))
    house.logger.warn({ door: 'http' }, `a stream is not kept: ${sentence(error)}`);
  if (!isGone(visit)) startEvents(visit, ['Mcp-Session-Id', session.id], house.settings);
  release(exchange, (frame, isLast) => {
    writeLive(visit, frame);
    if (isLast) visit.res.end();
  });
}

function release(exchange: Exchange, to: Stream['append']): void {
  exchange.append = to;
  for (const { frame, isLast } of exchange.held ?? []) to(frame, isLast);
  exchange.held = undefined;
}

function put(exchange: Exchange, frame: Buffer, isLast: boolean): void {
  if (exchange.append) return exchange.append(frame, isLast);
  exchange.held ??= [];
  exchange.held.push({ frame, isLast });
}
