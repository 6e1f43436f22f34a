// The end of the HTTP door: nobody new, whoever waits for an answer gets it if it comes in time, and streams are ended with
// the word to come back.

import type { Server } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import type { Legacy } from './legacy.ts';
import type { Upgrades } from './upgrade.ts';
import type { House } from './visit.ts';

export type Closing = {
  readonly server: Server;
  readonly house: House;
  readonly legacy: Legacy;
  readonly upgrades: Upgrades;
};

const LOOK_MS = 20;
/** For the last words to leave; a connection that never said anything is not waited for longer. */
const GOODBYE_MS = 200;

export async function closeServer({ server, house, legacy, upgrades }: Closing): Promise<void> {
  let isClosed = false;
  server.close(() => {
    isClosed = true;
  });
  const until = async (isDone: () => boolean, ms: number): Promise<void> => {
    const deadline = performance.now() + ms;
    while (!isDone() && performance.now() < deadline) {
      await wait(LOOK_MS);
      server.closeIdleConnections();
    }
  };
  let isLegacyDone = false;
  void legacy.drain().then(() => {
    isLegacyDone = true;
  });
  const isIdle = (): boolean => isLegacyDone && house.owed.count === 0 && upgrades.count === 0;
  house.readers.retireStanding();
  await until(() => isClosed || isIdle(), house.timing.drainMs);
  house.readers.retireAll();
  legacy.finish();
  upgrades.destroyAll();
  await until(() => isClosed, GOODBYE_MS);
  server.closeAllConnections();
}
