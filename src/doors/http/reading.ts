// One response that follows one stream. What it sends is on the disk already, so a slow reader costs no memory: it is
// followed no further until it has read what it was sent.

import type { HostSession, Position } from '../../sessions/host.ts';
import { endForNow, knowsPolling, startEvents, writeEvent, writePrimer } from './events.ts';
import { type House, isGone, onGone, refuseThrown, sendEmpty, type Visit } from './visit.ts';

export type Reading = {
  readonly visit: Visit;
  readonly session: HostSession;
  readonly place: Position;
  /** Only for the first response of a stream. */
  readonly primer?: string;
};

/** What may be on its way to one reader. */
const MOST_UNREAD = 1024 * 1024;

export function readStream(house: House, { visit, session, place: start, primer }: Reading): void {
  const { res } = visit;
  const { streams } = house.sessions;
  const mayRotate = knowsPolling(session.era);
  const retireAt = performance.now() + house.timing.rotateMs;
  let lastId = '';
  let stop: (() => void) | undefined;
  let isFull = false;

  const isOver = (): boolean => isGone(visit) || res.writableEnded;
  const begin = (): void => {
    if (res.headersSent || isOver()) return;
    startEvents(visit, ['Mcp-Session-Id', session.id], { keepAliveMs: house.settings.keepAliveMs, onTick });
    if (primer !== undefined && mayRotate) writePrimer(visit, primer);
  };
  const follow = (place: Position): void => {
    stop = streams.follow(
      place,
      ({ id, frame }) => {
        if (isFull || isOver()) return false; // it is on the disk, and will be handed over again
        begin();
        writeEvent(visit, frame, id);
        lastId = id || lastId;
        isFull = res.writableLength > MOST_UNREAD;
        return true;
      },
      () => {
        if (isOver()) return;
        // Nothing is left of it: 204 is what tells a reader of events not to come again.
        if (res.headersSent) res.end();
        else sendEmpty(visit, 204);
      },
    );
    if (isOver()) stop();
  };
  const retire = (): void => {
    stop?.();
    begin();
    endForNow(visit);
  };
  const onTick = (): void => {
    if (mayRotate && performance.now() > retireAt) retire();
  };
  const onEnded = (): void => {
    if (isStanding) retire(); // the others end with the answer to their request
  };

  const isStanding = streams.standing(session.id).stream === start.stream;
  const reader = { session: session.id, stream: start.stream, isStanding, retire };
  const leave = [session.hold(), house.readers.enter(reader), session.onEnded(onEnded)];
  res.on('drain', () => {
    if (!isFull || isOver()) return;
    isFull = false;
    stop?.();
    try {
      follow((lastId !== '' && streams.locate(session.id, lastId)) || start);
    } catch (error) {
      refuseThrown(visit, house, error); // the disk cannot be read: the host comes back when it can
    }
  });
  onGone(visit, () => {
    stop?.();
    for (const each of leave) each();
  });
  follow(start);
  begin();
}
