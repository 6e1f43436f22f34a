// The statements of tasks, and of the daemons that run them. What is written by an owner names its epoch, so that it changes
// nothing where the task is somebody else's.

export const TASK_WRITES = {
  // A principal may have so many unfinished ones, and one for each key; who reads it back knows which of the two it was. Which
  // index is meant is said: left alone, SQLite would count through all that have ended, too.
  addTask: `INSERT INTO tasks (id, principal, server, tool, door, session, status, phase, attempt, owner, epoch, key,
    fingerprint, ttl, created_at, updated_at, created_tick, expires_tick, call)
    SELECT ?, ?, ?, ?, ?, ?, 'working', ?, ?, ?, 1, ?, ?, ?, ?, ?, ?, ?, ?
    WHERE (SELECT count(*) FROM tasks INDEXED BY tasks_open WHERE principal = ? AND phase != 'ended') < ?
    ON CONFLICT DO NOTHING`,
  // Every word of its owner ends in (id, owner, epoch): who has lost it changes nothing.
  dispatchTask: `UPDATE tasks SET phase = 'dispatching', attempt = attempt + 1
    WHERE id = ? AND owner = ? AND epoch = ? AND phase = 'queued'`,
  // (how many of its attempts did not count, …)
  requeueTask: `UPDATE tasks SET phase = 'queued', status = 'working', upstream = NULL, attempt = attempt - ?, message = ?, updated_at = ?
    WHERE id = ? AND owner = ? AND epoch = ? AND phase != 'ended'`,
  setTaskUpstream: `UPDATE tasks SET upstream = ? WHERE id = ? AND owner = ? AND epoch = ? AND phase != 'ended'`,
  setTaskStatus: `UPDATE tasks SET status = ?, message = ?, updated_at = ?
    WHERE id = ? AND owner = ? AND epoch = ? AND phase != 'ended'`,
  setTaskProgress: `UPDATE tasks SET progress = ? WHERE id = ? AND owner = ? AND epoch = ? AND phase != 'ended'`,
  // The result and what it makes of the status are one step.
  endTask: `UPDATE tasks SET phase = 'ended', status = ?, message = ?, outcome = ?, delivery = ?, result = ?, ttl = ?,
    expires_tick = ?, updated_at = ?, progress = ?, call = NULL
    WHERE id = ? AND owner = ? AND epoch = ? AND phase != 'ended'`,
  // Whoever cancels, through whichever daemon: its owner has lost it with that.
  cancelTask: `UPDATE tasks SET phase = 'ended', status = 'cancelled', message = ?, outcome = 'cancelled',
    delivery = CASE WHEN attempt = 0 THEN 'not sent' ELSE 'outcome unknown' END,
    result = ?, updated_at = ?, call = NULL, epoch = epoch + 1, expires_tick = min(expires_tick, ?),
    ttl = min(ttl, ? - created_tick) WHERE id = ? AND phase != 'ended'`,
  // (phase and attempt as its owner knows them, …): a dispatch that was under way has come to nothing.
  releaseTask: `UPDATE tasks SET owner = '', epoch = epoch + 1, phase = ?, attempt = ? WHERE id = ? AND owner = ? AND epoch = ? AND phase != 'ended'`,
  // (new owner, old owner, old owner, this boot, the oldest beat that still counts, the servers there are): what was sent and
  // cannot be followed needs no server, for it is over.
  adoptTasks: `UPDATE tasks SET owner = ?, epoch = epoch + 1 WHERE owner = ? AND phase != 'ended'
    AND NOT EXISTS (SELECT 1 FROM lives WHERE id = ? AND boot = ? AND beat > ?)
    AND (server IN (SELECT value FROM json_each(?)) OR (phase = 'dispatching' AND upstream IS NULL))`,
  // In small batches: nobody waits long behind one.
  pruneTasks: `DELETE FROM tasks WHERE seq IN (SELECT seq FROM tasks WHERE expires_tick <= ? ORDER BY expires_tick LIMIT 200)`,
  deleteEndedTasks: `DELETE FROM tasks WHERE seq IN
    (SELECT seq FROM tasks WHERE phase = 'ended' AND updated_at <= ? ORDER BY seq LIMIT 200)`,
  beat: 'INSERT OR REPLACE INTO lives (id, daemon, boot, beat) VALUES (?, ?, ?, ?)',
  // That daemon's earlier lives: whoever holds its lock knows that they are over.
  forgetLives: 'DELETE FROM lives WHERE daemon = ? AND id != ?',
  forgetLife: 'DELETE FROM lives WHERE id = ?',
  // Only if the task has that status by the word of that owner.
  addTaskEvent: `INSERT INTO outbox (subject, message_id, payload, created_at)
    SELECT ?, ?, ?, ? FROM tasks WHERE id = ? AND owner = ? AND epoch = ? AND status = ?`,
} as const satisfies Record<string, string>;

/** All but what may be large. */
const TASK_COLUMNS = `seq, id, principal, server, tool, door, session, status, message, phase, attempt, upstream, owner, epoch,
  key, fingerprint, progress, ttl, created_at, updated_at, created_tick, expires_tick, outcome, delivery`;

export const TASK_READS = {
  task: `SELECT ${TASK_COLUMNS} FROM tasks WHERE id = ?`,
  taskByKey: `SELECT ${TASK_COLUMNS} FROM tasks WHERE principal = ? AND key = ?`,
  taskResult: `SELECT ${TASK_COLUMNS}, result FROM tasks WHERE id = ?`,
  taskCall: 'SELECT call FROM tasks WHERE id = ?',
  // Newest first: what comes meanwhile does not move the pages.
  tasksOf: `SELECT ${TASK_COLUMNS} FROM tasks WHERE principal = ? AND seq < ? ORDER BY seq DESC LIMIT ?`,
  allTasks: `SELECT ${TASK_COLUMNS} FROM tasks WHERE seq < ? ORDER BY seq DESC LIMIT ?`,
  ownedTasks: `SELECT ${TASK_COLUMNS} FROM tasks WHERE owner = ? AND phase != 'ended' ORDER BY seq`,
  taskOwners: `SELECT DISTINCT owner FROM tasks WHERE phase != 'ended'`,
  countOwned: `SELECT count(*) AS count FROM tasks WHERE owner = ? AND phase != 'ended'`,
  unfinishedTasks: `SELECT count(*) AS count FROM tasks WHERE phase != 'ended'`,
  endedTasks: `SELECT count(*) AS count FROM tasks WHERE phase = 'ended' AND updated_at <= ?`,
  expiredTask: 'SELECT 1 FROM tasks WHERE expires_tick <= ? LIMIT 1',
  lives: 'SELECT * FROM lives',
} as const satisfies Record<string, string>;
