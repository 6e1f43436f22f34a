// How many connections the door has, so that hosts take no descriptor that the rest of the daemon needs. When there are too many,
// one that nobody works on makes room: first those that have not asked for anything, then those that rest between two requests,
// longest first. When all are at work the newest is told so, and its connection ends.

import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { World } from '../../world/world.ts';

export type Room = {
  /** Whether there was no room for that connection: whatever it asks for, it hears that. */
  isRefused(socket: Duplex): boolean;
  /** The response that the connection is busy with; of several, the newest. */
  response(socket: Duplex): ServerResponse | undefined;
  readonly count: number;
};

/**
 * A connection, when it came or was last asked something, and the response that is not over yet. Of one that is over nothing is
 * kept: with many connections each would be held until long after it could have been forgotten.
 */
type Guest = { since: number; hasAsked: boolean; response: ServerResponse | undefined; readonly over: () => void };

/**
 * A head that takes longer to arrive has no right to be waited for while others wait, and no connection goes before those: else
 * whoever opens many and sends a byte on each would have every new one closed before it could ask.
 */
const SLOW_HEAD_MS = 50;
/** How long a connection without room may take to ask for something, and so hear why. */
const LAST_WORDS_MS = 1_000;

/** Beyond these, for connections that are told that there is no room; those beyond them are closed unheard. */
const slack = (most: number): number => Math.min(64, Math.ceil(most / 4));

export function keepRoom(server: Server, most: number, world: World): Room {
  /** In the order of their last use. */
  const guests = new Map<Duplex, Guest>();
  const refused = new WeakSet<Duplex>();
  server.maxConnections = most + slack(most);

  server.on('connection', (socket: Socket) => {
    if (guests.has(socket)) return; // it comes back from a request for another protocol
    guests.set(socket, newGuest(world.now()));
    socket.once('close', () => guests.delete(socket));
    if (guests.size <= most) return;
    const leaving = leastNeeded(guests, socket, world.now());
    if (leaving) {
      guests.delete(leaving); // it closes in a later turn, and must not be chosen again
      return void leaving.destroy();
    }
    refused.add(socket);
    world.after(LAST_WORDS_MS, () => socket.destroy());
  });
  server.on('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    const guest = guests.get(socket);
    if (!guest) return;
    guest.since = world.now();
    guest.hasAsked = true;
    guest.response = response;
    response.on('close', guest.over);
    guests.delete(socket);
    guests.set(socket, guest);
  });

  return {
    isRefused: (socket) => refused.has(socket),
    response: (socket) => guests.get(socket)?.response,
    get count() {
      return guests.size;
    },
  };
}

function newGuest(since: number): Guest {
  const guest: Guest = {
    since,
    hasAsked: false,
    response: undefined,
    over() {
      if (guest.response?.writableFinished) guest.response = undefined;
    },
  };
  return guest;
}

/** Undefined when somebody works on every connection. One that became a WebSocket is at work for as long as it is there. */
function leastNeeded(guests: ReadonlyMap<Duplex, Guest>, newest: Duplex, now: number): Duplex | undefined {
  let resting: Duplex | undefined;
  let silent: Duplex | undefined;
  for (const [socket, { since, hasAsked, response }] of guests) {
    if (socket === newest || isUpgraded(socket)) continue;
    if (hasAsked) resting ??= !response || response.writableFinished ? socket : undefined;
    else if (now - since > SLOW_HEAD_MS) return socket;
    else if ((socket as Socket).bytesRead === 0) silent ??= socket;
  }
  return silent ?? resting;
}

/** Node takes its parser off a connection that it hands on. */
const isUpgraded = (socket: Duplex): boolean => (socket as { parser?: unknown }).parser == null;
