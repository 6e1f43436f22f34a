// GET /mcp, and every response that follows a stream. What such a response sends is on the disk already, so a slow reader costs
// no memory: the stream is followed no further until the reader has read what it was sent.

import { codecOf } from '../../protocol/eras.ts';
import type { HostSession, Position } from '../../sessions/host.ts';
import type { HttpContext } from './context.ts';
import { endForNow, startEvents, writeEvent, writePrimer } from './events.ts';
import { acceptsEvents } from './headers.ts';
import {
  type HttpRequest,
  invalid,
  isGone,
  onGone,
  refuseBusy,
  refuseThrown,
  sendEmpty,
  sessionOf,
  speaksOurVersion,
} from './request.ts';

/** The session's standing stream, or any stream of the session from where its reader left it. */
export function get(door: HttpContext, http: HttpRequest): void {
  const { headers } = http.req;
  if (!acceptsEvents(headers)) return invalid(http, 406, 'here are only events; send Accept: text/event-stream');
  if (!speaksOurVersion(http)) return;
  const session = sessionOf(door, http);
  if (!session) return;
  const { streams } = door.sessions;
  const last = headers['last-event-id'];
  const start = last === undefined ? streams.standing(session.id) : streams.locate(session.id, String(last));
  // Not 404: the session is well, and a host that hears 404 gives it up.
  if (!start) {
    const message = 'the Last-Event-ID names no event of this session that is still kept; leave it out to go on';
    return invalid(http, 400, message);
  }
  if (door.readers.isFull(session.id, start.stream))
    return refuseBusy(http, `the session has ${door.settings.maxStreams} open streams (x-troupe.http.maxStreams)`);
  readStream(door, { http, session, start });
}

export type Reading = {
  readonly http: HttpRequest;
  readonly session: HostSession;
  readonly start: Position;
  /** Only for the first response of a stream. */
  readonly primer?: string;
};

/** How many bytes may be on their way to one reader. */
const MOST_UNREAD = 1024 * 1024;

export function readStream(door: HttpContext, { http, session, start, primer }: Reading): void {
  const { res } = http;
  const { streams } = door.sessions;
  const { world } = door;
  const mayRotate = codecOf(session.era).resumesClosedStreams;
  const retireAt = world.now() + door.timing.rotateMs;
  const isStanding = streams.standing(session.id).stream === start.stream;
  let lastId = '';
  let stop = (): void => {};
  let isFull = false;

  const isOver = (): boolean => isGone(http) || res.writableEnded;

  function begin(): void {
    if (res.headersSent || isOver()) return;
    const { keepAliveMs } = door.settings;
    startEvents(http, ['Mcp-Session-Id', session.id], { world, keepAliveMs, onTick: rotate });
    if (primer !== undefined && mayRotate) writePrimer(http, primer);
  }

  function follow(position: Position): void {
    stop = streams.follow(
      position,
      ({ id, frame }) => {
        if (isFull || isOver()) return false; // it is on the disk, and will be handed over again
        begin();
        writeEvent(http, frame, id);
        lastId = id || lastId;
        isFull = res.writableLength > MOST_UNREAD;
        return true;
      },
      () => {
        if (isOver()) return;
        // The stream had no further event: 204 is what tells a reader of events not to come again.
        if (res.headersSent) res.end();
        else sendEmpty(http, 204);
      },
    );
    if (isOver()) stop();
  }

  function goOn(): void {
    if (!isFull || isOver()) return;
    isFull = false;
    stop();
    try {
      follow((lastId !== '' && streams.locate(session.id, lastId)) || start);
    } catch (error) {
      refuseThrown(http, door, error); // the disk cannot be read: the host comes back when it can
    }
  }

  function retire(): void {
    stop();
    begin();
    endForNow(http);
  }

  function rotate(): void {
    if (mayRotate && world.now() > retireAt) retire();
  }

  const leave = [
    session.hold(),
    door.readers.enter({ session: session.id, stream: start.stream, isStanding, retire }),
    session.onEnded(() => isStanding && retire()), // the other streams end with the answer to their request
  ];
  res.on('drain', goOn);
  onGone(http, () => {
    stop();
    for (const each of leave) each();
  });
  follow(start);
  begin();
}
