// HTTP+SSE, as hosts of 2024-11-05 speak it: a GET brings all events and lives as long as the session, POSTs bring the
// messages and are answered with 202. No event is on the disk: a host that loses its stream begins again.

import { type Connection, serveConnection } from '../connections.ts';
import { createQuota } from '../quota.ts';
import type { HttpContext } from './context.ts';
import { startEvents, writeLive } from './events.ts';
import { acceptsEvents, isJson, viaOf } from './headers.ts';
import { readMessage } from './post.ts';
import { type HttpRequest, invalid, onGone, refuseBusy, sendEmpty, speaksOurVersion } from './request.ts';

export type Legacy = ReturnType<typeof createLegacy>;

type Open = { readonly http: HttpRequest; readonly connection: Connection };

export function createLegacy(door: HttpContext) {
  const { world, sessions, settings, onFault } = door;
  const all = new Map<string, Open>();
  const quota = createQuota(settings.maxSessions);

  function open(http: HttpRequest): void {
    if (!acceptsEvents(http.req.headers))
      return invalid(http, 406, 'here are only events; send Accept: text/event-stream');
    const { principal, scope, res } = http;
    const giveBack = quota.take(principal);
    if (!giveBack)
      return refuseBusy(http, `${settings.maxSessions} such streams are open already (x-troupe.http.maxSessions)`);
    const id = world.random(16).toString('hex');
    const connection = serveConnection({
      world,
      sessions,
      principal,
      door: 'sse',
      scope,
      via: viaOf(http.req.headers),
      onFault,
      send: (frame) => writeLive(http, frame),
      onEnded: () => res.end(),
    });
    all.set(id, { http, connection });
    onGone(http, () => {
      all.delete(id);
      giveBack();
      connection.close('ended');
    });
    startEvents(http, [], { world, keepAliveMs: settings.keepAliveMs });
    res.write(`event: endpoint\ndata: /messages?sessionId=${id}\n\n`);
  }

  function message(http: HttpRequest): void {
    const id = new URLSearchParams(http.req.url?.split('?', 2)[1]).get('sessionId') ?? '';
    if (!isJson(http.req.headers))
      return invalid(http, 415, 'the body must be JSON; send Content-Type: application/json');
    if (all.get(id)?.http.principal !== http.principal) return unknown(http);
    if (!speaksOurVersion(http)) return;
    readMessage(door, http, (frame, bytes) => {
      const found = all.get(id);
      if (!found) return unknown(http); // it was closed meanwhile
      sendEmpty(http, 202);
      found.connection.take(frame, bytes);
    });
  }

  return {
    open,
    message,
    drain: async (): Promise<void> =>
      void (await Promise.all([...all.values()].map(({ connection }) => connection.drain()))),
    finish(): void {
      for (const { http } of all.values()) http.res.end();
    },
  };
}

const unknown = (http: HttpRequest): void =>
  invalid(http, 404, 'there is no such session, or its stream was closed; begin again at /sse');
