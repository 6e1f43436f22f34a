// GET /mcp: the session's standing stream, or any stream of the session from where its reader left it. DELETE /mcp: the end
// of the session.

import { acceptsEvents } from './bodies.ts';
import { readStream } from './reading.ts';
import { sessionOf, speaksOurVersion } from './session.ts';
import { type House, INVALID_REQUEST, refuse, refuseBusy, refuseThrown, sendEmpty, type Visit } from './visit.ts';

export function get(house: House, visit: Visit): void {
  const { headers } = visit.req;
  if (!acceptsEvents(headers)) {
    const message = 'here are only events; send Accept: text/event-stream';
    return refuse(visit, 406, { rpc: INVALID_REQUEST, message });
  }
  if (!speaksOurVersion(visit)) return;
  const session = sessionOf(house, visit);
  if (!session) return;
  const { streams } = house.sessions;
  const last = headers['last-event-id'];
  const place = last === undefined ? streams.standing(session.id) : streams.locate(session.id, String(last));
  // Not 404: the session is well, and a host that hears 404 gives it up.
  if (!place) {
    const message = 'the Last-Event-ID names no event of this session that is still kept; leave it out to go on';
    return refuse(visit, 400, { rpc: INVALID_REQUEST, message });
  }
  if (house.readers.isFull(session.id, place.stream))
    return refuseBusy(visit, `the session has ${house.settings.maxStreams} open streams (x-troupe.http.maxStreams)`);
  readStream(house, { visit, session, place });
}

export async function end(house: House, visit: Visit): Promise<void> {
  if (!speaksOurVersion(visit)) return;
  const session = sessionOf(house, visit);
  if (!session) return;
  try {
    await session.end();
    house.readers.retireSession(session.id);
    sendEmpty(visit, 200);
  } catch (error) {
    refuseThrown(visit, house, error);
  }
}
