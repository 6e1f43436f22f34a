// The store of a simulation: the real statements on a database in memory that several daemons share. A write is on the disk
// after a millisecond of the simulated time, and its author hears of it after another; in between a daemon can die.

import Sqlite, { type Database } from 'better-sqlite3';
import { TroupeError } from '../../src/protocol/failures.ts';
import { migrate } from '../../src/store/migrations.ts';
import { type Params, READS, type ReadName, WRITES, type WriteName } from '../../src/store/statements.ts';
import type { TaskStore } from '../../src/tasks/rows.ts';
import type { World } from '../../src/world/world.ts';

export type Disk = { readonly db: Database; isFull: boolean };

export function memoryDisk(): Disk {
  const db = new Sqlite(':memory:');
  migrate(db);
  return { db, isFull: false };
}

/** The store of one daemon; `world` is that daemon's, so that nothing it has not finished happens after its death. */
export function memoryStore(disk: Disk, world: World): TaskStore {
  const run = (name: WriteName, params: Params): boolean => disk.db.prepare(WRITES[name]).run([...params]).changes > 0;
  const full = () => new TroupeError('unavailable', 'The disk is full.');
  return {
    write: (name, params) => void world.after(1, () => disk.isFull || run(name, params)),
    commit: (name, params) =>
      new Promise((resolve, reject) => {
        world.after(1, () => {
          try {
            if (disk.isFull) throw full();
            const hasChanged = run(name, params);
            world.after(1, () => resolve(hasChanged));
          } catch (error) {
            world.after(1, () => reject(error));
          }
        });
      }),
    all: <Row>(name: ReadName, params: Params = []) => disk.db.prepare(READS[name]).all([...params]) as Row[],
    get: <Row>(name: ReadName, params: Params = []) => disk.db.prepare(READS[name]).get([...params]) as Row | undefined,
  };
}
