// A store in memory behind the port of src/store/port.ts: the same schema, statements and queue on a database without a file and
// without a thread. With a simulated world nothing in it takes real time, and what is not committed is lost by `crash`.

import type { Statement } from 'better-sqlite3';
import { TroupeError } from '../../src/protocol/failures.ts';
import { Audit } from '../../src/store/audit.ts';
import { batchRunner } from '../../src/store/batch.ts';
import { openDatabase } from '../../src/store/database.ts';
import { migrate } from '../../src/store/migrations.ts';
import { pack } from '../../src/store/packed.ts';
import type { Health, Store } from '../../src/store/port.ts';
import { operation, Queue } from '../../src/store/queue.ts';
import { READS, type ReadName } from '../../src/store/statements.ts';
import type { World } from '../../src/world/world.ts';

export type MemoryStore = Store & {
  /** What was not committed is lost; the rows stay. */
  crash(): void;
};

export function memoryStore(world: World): MemoryStore {
  const db = openDatabase(':memory:');
  migrate(db);
  const run = batchRunner(db);
  const prepared = new Map<ReadName, Statement>();
  let health: Health = { state: 'ready', message: 'The database is ready.' };
  let queue = newQueue();
  let audit = newAudit();

  function newAudit(): Audit {
    const mine = queue;
    return new Audit(world, (page, records) => {
      if (mine === queue) queue.add(operation('addAuditPage', page, records), { isDue: true }); // else it is from before a crash
    });
  }

  function newQueue(): Queue {
    const mine: Queue = new Queue({
      world,
      post: (ops) =>
        queueMicrotask(() => {
          if (mine !== queue) return; // it crashed before the commit
          const verdict = run(pack(ops));
          if (verdict.type !== 'done') throw new Error(verdict.message);
          mine.done(verdict);
        }),
      onFault: ({ name }, message) => {
        throw new Error(`${name}: ${message}`);
      },
    });
    return mine;
  }

  const statement = (name: ReadName): Statement => {
    const known = prepared.get(name) ?? db.prepare(READS[name]);
    prepared.set(name, known);
    return known;
  };
  const waiting = (begin: (resolve: (hasChanged: boolean) => void, reject: (error: TroupeError) => void) => void) =>
    new Promise<boolean>((resolve, reject) => {
      if (health.state !== 'ready') reject(new TroupeError('unavailable', health.message));
      else begin(resolve, reject);
    });

  return {
    write: (name, params) => queue.add(operation(name, params)),
    note: (record) => audit.note(record),
    commit: (name, params, priority) =>
      waiting((resolve, reject) =>
        queue.add(operation(name, params), { waiter: { since: world.now(), resolve, reject }, priority }),
      ),
    async flush() {
      audit.turn();
      await waiting((resolve, reject) => queue.add(null, { waiter: { since: world.now(), resolve, reject } }));
    },
    all: <Row>(name: ReadName, params: readonly unknown[] = []) => statement(name).all(params) as Row[],
    get: <Row>(name: ReadName, params: readonly unknown[] = []) => statement(name).get(params) as Row | undefined,
    get health() {
      return health;
    },
    dropped: 0,
    onHealth: () => () => {},
    async close() {
      if (health.state === 'ready') await this.flush();
      health = { state: 'closed', message: 'The database is closed: nothing is recorded any more.' };
    },
    crash() {
      queue.abandon(new TroupeError('unavailable', 'it crashed'));
      queue = newQueue();
      audit = newAudit();
    },
  };
}
