// One POST and the answers to its requests: plain JSON if they come soon and alone, else a stream of events which the host
// can come back to. A host that leaves cancels nothing: what comes then goes to its stream, if it has one.
// Nearly every call is one of these, so one that is answered soon makes little more than its record and its line.

import { createDeadlines, type Deadlines, type Due, now } from '../../calls/deadlines.ts';
import { sentence, TroupeError } from '../../failures.ts';
import type { HostSession, Line, Stream } from '../../sessions/host.ts';
import { startEvents, writeLive } from './events.ts';
import { readStream } from './reading.ts';
import { type House, isGone, sendJson, type Visit } from './visit.ts';

export type Exchanged = {
  readonly visit: Visit;
  readonly session: HostSession;
  /** Of the first request that is to be answered. */
  readonly id: string;
  /** How many are to be answered: at least one. */
  readonly owed: number;
  readonly isBatch: boolean;
};

/** Waits for its answer until the deadline, then becomes a stream. */
export type Exchange = Due & {
  readonly house: House;
  readonly visit: Visit;
  readonly session: HostSession;
  readonly id: string;
  readonly isBatch: boolean;
  readonly leave: () => void;
  owed: number;
  isStream: boolean;
  /** What has come and has not gone: answers that may yet be JSON, or messages whose stream is being committed. */
  held: Message[] | undefined;
  append: Stream['append'] | undefined;
};
type Message = { readonly frame: Buffer; readonly isLast: boolean };

export type Patience = Deadlines<Exchange>;
export const createPatience = (): Patience => createDeadlines<Exchange>(becomeStream);

export function beginExchange(house: House, { visit, session, id, owed, isBatch }: Exchanged): Line {
  const exchange: Exchange = {
    deadline: now() + house.timing.patienceMs,
    slot: -1,
    house,
    visit,
    session,
    id,
    isBatch,
    leave: session.hold(),
    owed,
    isStream: false,
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
  const { house, visit, isBatch } = exchange;
  exchange.owed -= 1;
  if (exchange.isStream || isBatch) put(exchange, frame, exchange.owed === 0);
  if (exchange.owed > 0) return;
  house.patience.remove(exchange);
  house.owed.count -= 1;
  exchange.leave();
  if (!exchange.isStream) sendJson(visit, 200, isBatch ? arrayOf(exchange.held ?? []) : frame);
}

function becomeStream(exchange: Exchange): void {
  const { house, visit, session, id } = exchange;
  house.patience.remove(exchange);
  if (exchange.isStream || isGone(visit)) return;
  exchange.isStream = true;
  house.sessions.streams.open(session.id, id).then(
    (stream) => keep(exchange, stream),
    (error) => keepNothing(exchange, error),
  );
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

function arrayOf(messages: readonly Message[]): Buffer {
  const parts = messages.flatMap(({ frame }, index) => (index === 0 ? [frame] : [COMMA, frame]));
  return Buffer.concat([Buffer.from('['), ...parts, Buffer.from(']')]);
}

const COMMA = Buffer.from(',');
