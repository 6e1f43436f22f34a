// Finished tasks as a daemon would have left them, put into its table directly: making 100,000 by calls would take minutes.

import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';

const DAY_MS = 86_400_000;
const RESULT_BYTES = 380; // sealed
const A_TRANSACTION = 1_000;
const COLUMNS = `id, principal, server, tool, door, status, phase, attempt, owner, epoch, fingerprint, ttl,
  created_at, updated_at, created_tick, expires_tick, outcome, result`;

/** Gives the ids, oldest first, and the cursor of the page that begins below the one in the middle. */
export function fill(state, count) {
  const db = new Sqlite(join(state, 'database', 'troupe.db'), { timeout: 10_000 });
  const life = randomBytes(16).toString('hex');
  const insert = db.prepare(
    `INSERT INTO tasks (${COLUMNS}) VALUES (?, '_', 's0', 'echo', 'nats', 'completed', 'ended', 1, ?, 1, '', ?, ?, ?, ?, ?, 'result', ?)`,
  );
  const ids = [];
  const add = () => {
    const [id, at] = [randomBytes(16).toString('hex'), Date.now()];
    insert.run(id, life, 30 * DAY_MS, at, at, at, at + 30 * DAY_MS, randomBytes(RESULT_BYTES));
    ids.push(id);
  };
  const some = db.transaction((much) => {
    for (let number = 0; number < much; number += 1) add();
  });
  while (ids.length < count) some(Math.min(A_TRANSACTION, count - ids.length));
  const { seq } = db.prepare('SELECT max(seq) AS seq FROM tasks').get();
  db.close();
  return { ids, middle: Buffer.from(`task ${seq - Math.floor(count / 2) + 50}`).toString('base64url') };
}
