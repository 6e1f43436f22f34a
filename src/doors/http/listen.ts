// GET /mcp: the session's standing stream, or any stream of the session from where its reader left it. DELETE /mcp: the end
// of the session.

import { acceptsEvents } from './bodies.ts';
import { readStream } from './reading.ts';
import { sessionOf, speaksOurVersion } from './session.ts';
import { type House, invalid, refuseBusy, refuseThrown, sendEmpty, type Visit } from './visit.ts';

export function get(house: House, visit: Visit): void {
  const { headers } = visit.req;
  if (!acceptsEvents(headers)) return invalid(visit, 406, 'here are only events; send Accept: text/event-stream');
  if (!speaksOurVersion(visit)) return;
  const session = sessionOf(house, visit);
  if (!session) return;
  const { streams } = house.sessions;
  const last = headers['last-event-id'];
  const place = last === undefined ? streams.standing(session.id) : streams.locate(session.id, String(last));
  // Not 404: the session is well, and a host that hears 404 gives it up.
  if (!place) {
    const message = 'the Last-Event-ID names no event of this session that is still kept; leave it out to go on';
    return invalid(visit, 400, message);
  }
  if (house.readers.isFull(session.id, place.stream))
    return refuseBusy(visit, `the session has ${house.settings.maxStreams} open streams (x-troupe.http.maxStreams)`);
  readStream(house, { visit, session, place });
}

/** Calls in flight are cancelled, and their streams end with that answer; the standing one ends by itself. */
export async function end(house: House, visit: Visit): Promise<void> {
  if (!speaksOurVersion(visit)) return;
  try {
    const session = sessionOf(house, visit);
    if (!session) return;
    await session.end();
    sendEmpty(visit, 200);
  } catch (error) {
    refuseThrown(visit, house, error);
  }
}
