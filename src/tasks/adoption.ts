// Looks for tasks that nobody runs any more, because their daemon was killed, stopped or has let go of them, and takes them over.

import type { TaskRow } from '../store/rows.ts';
import { failpoint } from '../telemetry/failpoints.ts';
import type { World } from '../world/world.ts';
import type { Owners } from './owners.ts';
import type { TaskRows } from './rows.ts';
import type { Running } from './running.ts';

export type AdoptionOptions = {
  readonly world: World;
  readonly rows: TaskRows;
  readonly owners: Owners;
  readonly running: Running;
  /** For which servers tasks are adopted. */
  readonly servers: () => string[];
  readonly onTrouble: (error: unknown) => void;
};

const LOOK_MS = 500;

export function startAdoption({ world, rows, owners, running, servers, onTrouble }: AdoptionOptions) {
  let looking: Promise<void> | undefined;
  const stopLooking = world.every(LOOK_MS, look);
  look();

  function look(): void {
    looking ??= adopt()
      .catch(onTrouble)
      .finally(() => {
        looking = undefined;
      });
  }

  async function adopt(): Promise<void> {
    if (await owners.adopt(servers())) failpoint('task.adopted');
    else if (rows.countOwn() <= running.count()) return; // else one of ours is run by nobody
    for (const row of rows.own()) if (!running.get(row.id)) resume(row);
  }

  /** What goes wrong with one is not the others' business. */
  function resume(row: TaskRow): void {
    try {
      running.adopt(row);
    } catch (error) {
      onTrouble(error);
    }
  }

  return {
    async stop(): Promise<void> {
      stopLooking();
      await looking;
    },
  };
}
