// What is kept of the last call, or of the last request on a connection, is kept by each server and by each connection: it must
// not hold the call or the request itself, with all that hangs on it.

import { once } from 'node:events';
import { Agent, get } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { expect, it } from 'vitest';
import { Callers } from '../../src/calls/callers.ts';
import { serverFor } from '../../src/doors/http/listening.ts';
import { realWorld } from '../../src/world/world.ts';
import { eventually } from '../support/eventually.ts';

it('remembers who was answered, and not what', () => {
  const callers = new Callers(realWorld);
  const call = { principal: 'p', holder: 'h', params: Buffer.alloc(1_000) };
  for (const by of [call, { ...call, holder: 'other' }, { ...call, holder: 'other' }])
    callers.settled(by, realWorld.now());
  expect(callers.recent(60_000)).toEqual([
    { principal: 'p', holder: 'other' },
    { principal: 'p', holder: 'h' },
  ]);
});

it('forgets the response of a connection that rests', async () => {
  const timing = {
    ...{ patienceMs: 60, returnMs: 1_000, rotateMs: 60_000 },
    ...{ headMs: 10_000, bodyMs: 10_000, checkMs: 1_000, drainMs: 1_000 },
  };
  const { server, room } = serverFor({ world: realWorld, timing, maxConnections: 8 });
  const agent = new Agent({ keepAlive: true });
  let connection: Socket | undefined;
  server.on('request', (request, response) => {
    connection = request.socket;
    expect(room.response(request.socket)).toBe(response);
    response.end('done');
  });
  try {
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo;
    const [answer] = await once(get({ port, host: '127.0.0.1', agent }), 'response');
    answer.resume();
    await eventually(() => expect(room.response(connection as Socket)).toBeUndefined());
    expect(connection?.destroyed).toBe(false);
  } finally {
    agent.destroy();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});
