// HTTP+SSE, as hosts of 2024-11-05 speak it: a GET brings all events and lives as long as the session, POSTs bring the
// messages and are answered with 202. Nothing is kept: a host that loses its stream begins again.

import { randomBytes } from 'node:crypto';
import { type Connection, serveConnection } from '../connections.ts';
import { createQuota } from '../quota.ts';
import { acceptsEvents, isJson } from './bodies.ts';
import { startEvents, writeLive } from './events.ts';
import { readMessage } from './post.ts';
import { speaksOurVersion } from './session.ts';
import { type House, invalid, onGone, refuseBusy, sendEmpty, type Visit } from './visit.ts';

export type Legacy = ReturnType<typeof createLegacy>;

type Open = { readonly visit: Visit; readonly connection: Connection };

export function createLegacy(house: House) {
  const { sessions, settings, onFault } = house;
  const all = new Map<string, Open>();
  const quota = createQuota(settings.maxSessions);

  function open(visit: Visit): void {
    if (!acceptsEvents(visit.req.headers))
      return invalid(visit, 406, 'here are only events; send Accept: text/event-stream');
    const { principal, scope, res } = visit;
    const giveBack = quota.take(principal);
    if (!giveBack)
      return refuseBusy(visit, `${settings.maxSessions} such streams are open already (x-troupe.http.maxSessions)`);
    const id = randomBytes(16).toString('hex');
    const connection = serveConnection({
      ...{ sessions, principal, door: 'sse', scope, onFault },
      send: (frame) => writeLive(visit, frame),
      onEnded: () => res.end(),
    });
    all.set(id, { visit, connection });
    onGone(visit, () => {
      all.delete(id);
      giveBack();
      connection.close('ended');
    });
    startEvents(visit, [], settings);
    res.write(`event: endpoint\ndata: /messages?sessionId=${id}\n\n`);
  }

  function message(visit: Visit): void {
    const id = new URLSearchParams(visit.req.url?.split('?', 2)[1]).get('sessionId') ?? '';
    if (!isJson(visit.req.headers))
      return invalid(visit, 415, 'the body must be JSON; send Content-Type: application/json');
    if (all.get(id)?.visit.principal !== visit.principal) return unknown(visit);
    if (!speaksOurVersion(visit)) return;
    readMessage(house, visit, (frame, bytes) => {
      const found = all.get(id);
      if (!found) return unknown(visit); // it was closed meanwhile
      sendEmpty(visit, 202);
      found.connection.take(frame, bytes);
    });
  }

  return {
    open,
    message,
    drain: async (): Promise<void> =>
      void (await Promise.all([...all.values()].map(({ connection }) => connection.drain()))),
    finish(): void {
      for (const { visit } of all.values()) visit.res.end();
    },
  };
}

const unknown = (visit: Visit): void =>
  invalid(visit, 404, 'there is no such session, or its stream was closed; begin again at /sse');
