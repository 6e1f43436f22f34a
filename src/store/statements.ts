// Every SQL statement of troupe, by name. Parameters are positional, in the order of the columns as written here.
// Times named `at`, `*_at` are milliseconds since 1970; `duration_us` is microseconds.

/** The newest record's, of a page or of an older version. */
const LAST_AUDIT_ID = `SELECT max(last) FROM (SELECT id + count - 1 AS last FROM audit_pages WHERE id = (SELECT max(id) FROM audit_pages)
    UNION ALL SELECT max(id) FROM audit_rows)`;

export const WRITES = {
  putProcess: `INSERT OR REPLACE INTO processes (kind, name, pid, start_time, boot_id, daemon, at)
    VALUES (?, ?, ?, ?, ?, ?, ?)`,
  deleteProcess: 'DELETE FROM processes WHERE kind = ? AND name = ? AND pid = ?',

  putCatalog: 'INSERT OR REPLACE INTO catalog (server, kind, body, hash, fetched_at) VALUES (?, ?, ?, ?, ?)',
  deleteCatalog: 'DELETE FROM catalog WHERE server = ?',

  // A message that is put twice is sent once: that is what its id is for.
  addOutbox: `INSERT INTO outbox (subject, message_id, payload, created_at) VALUES (?, ?, ?, ?)
    ON CONFLICT (message_id) DO NOTHING`,
  deleteOutbox: 'DELETE FROM outbox WHERE id = ?',
  forgetOutbox: 'DELETE FROM outbox WHERE message_id = ?',
  // The row of the outbox goes with it, by a trigger.
  putAside: 'INSERT OR REPLACE INTO refused (message_id, subject, bytes, why, at) VALUES (?, ?, ?, ?, ?)',

  // Its records follow on all that were recorded before, by whichever daemon.
  addAuditPage: `INSERT INTO audit_pages (id, first_at, last_at, count, about, records)
    SELECT 1 + coalesce((${LAST_AUDIT_ID}), 0), ?, ?, ?, ?, CAST(? AS TEXT)`,
  // Looks at the oldest pages only, so that it costs the same however many there are: (older than, records to keep).
  pruneAuditPages: `DELETE FROM audit_pages WHERE id IN (SELECT id FROM audit_pages ORDER BY id LIMIT 8)
    AND (last_at < ? OR id + count - 1 <= (${LAST_AUDIT_ID}) - ?)`,
  // The records of older versions; so many of them that they are gone before they matter.
  pruneAuditRows: `DELETE FROM audit_rows WHERE id IN (SELECT id FROM audit_rows ORDER BY id LIMIT 1000)
    AND (at < ? OR id <= (${LAST_AUDIT_ID}) - ?)`,

  // (the row, then its principal and how many sessions that principal may have): without room nothing is added
  addSession: `INSERT INTO sessions (id, principal, door, scope, era, client, capabilities, created_at, used_at)
    SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?
    WHERE (SELECT count(*) FROM sessions WHERE ended_at IS NULL AND principal = ?) < ?`,
  touchSession: 'UPDATE sessions SET used_at = max(used_at, ?) WHERE id = ?',
  setSessionLevel: 'UPDATE sessions SET level = ? WHERE id = ?',
  endSession: 'UPDATE sessions SET ended_at = ? WHERE id = ? AND ended_at IS NULL',
  // (now, unused since)
  expireSessions: 'UPDATE sessions SET ended_at = ? WHERE ended_at IS NULL AND used_at < ?',
  pruneSessions: `DELETE FROM sessions WHERE id IN
    (SELECT id FROM sessions WHERE ended_at IS NOT NULL AND ended_at < ? LIMIT 1000)`,
  addSubscription: 'INSERT OR IGNORE INTO session_subscriptions (session, server, uri) VALUES (?, ?, ?)',
  deleteSubscription: 'DELETE FROM session_subscriptions WHERE session = ? AND server = ? AND uri = ?',

  addStream: 'INSERT INTO streams (id, session, request_id, daemon, is_over, at) VALUES (?, ?, ?, ?, 0, ?)',
  addEvent: 'INSERT INTO events (stream, frame, is_last, at) VALUES (?, ?, ?, ?)',
  // The last event of every stream whose daemon was killed: (error object, now, daemon, begun until).
  interruptStreams: `INSERT INTO events (stream, frame, is_last, at)
    SELECT id, CAST('{"jsonrpc":"2.0","id":' || request_id || ',"error":' || ? || '}' AS BLOB), 1, ? FROM streams
    WHERE daemon = ? AND is_over = 0 AND at <= ?`,
  // (stream, stream, how many to keep)
  trimStream: `DELETE FROM events WHERE stream = ? AND seq <=
    (SELECT seq FROM events WHERE stream = ? ORDER BY seq DESC LIMIT 1 OFFSET ?)`,
  pruneStreams: 'DELETE FROM streams WHERE id IN (SELECT id FROM streams WHERE at < ? ORDER BY at LIMIT 1000)',
  // Large events would fill the disk long before there are too many events.
  pruneLargeEvents: `DELETE FROM events WHERE seq IN
    (SELECT seq FROM events WHERE at < ? AND length(frame) > 262144 ORDER BY seq LIMIT 100)`,
  pruneEvents: `DELETE FROM events WHERE seq IN (SELECT seq FROM events ORDER BY seq LIMIT 1000)
    AND (at < ? OR seq <= (SELECT max(seq) FROM events) - ?)`,

  putCredential: `INSERT OR REPLACE INTO credentials (kind, issuer, server, resource, principal, body, version, at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
  // Only the version that was read: the loser of a race must not delete what the winner saved.
  deleteCredential: `DELETE FROM credentials
    WHERE kind = ? AND issuer = ? AND server = ? AND resource = ? AND principal = ? AND version = ?`,
  deleteGrants: `DELETE FROM credentials WHERE kind = 'grant' AND server = ? AND principal = ?`,

  // (name, owner, until, now, the latest end that is believed): an end beyond that was set before the machine restarted.
  takeLease: `INSERT INTO leases (name, owner, epoch, until) VALUES (?, ?, 1, ?) ON CONFLICT (name) DO UPDATE
    SET owner = excluded.owner, epoch = leases.epoch + 1, until = excluded.until
    WHERE leases.until < ? OR leases.until > ?`,
  releaseLease: 'UPDATE leases SET until = 0 WHERE name = ? AND owner = ? AND epoch = ?',

  addAsk: `INSERT INTO asks (id, kind, server, tool, principal, daemon, status, stage, body, opened_at, expires_at)
    VALUES (?, ?, ?, ?, ?, ?, 'open', ?, ?, ?, ?)`,
  setAskBody: `UPDATE asks SET body = ?, stage = ? WHERE id = ? AND status = 'open'`,
  // The first answer wins: (answer, who gave it, a token by which the winner knows itself, id, stage that it answers).
  answerAsk: `UPDATE asks SET status = 'answered', answer = ?, answered_by = ?, token = ?
    WHERE id = ? AND status = 'open' AND stage = ?`,
  // An answer led to the next stage: (new body, next stage, id).
  reopenAsk: `UPDATE asks SET status = 'open', body = ?, stage = ?, answer = NULL WHERE id = ? AND status = 'answered'`,
  // Question and answer are erased: only who was asked, and how it ended, may be read later.
  endAsk: `UPDATE asks SET status = 'ended', outcome = ?, answered_by = ?, ended_at = ?, body = NULL, answer = NULL
    WHERE id = ? AND status != 'ended'`,
  // The asks of a daemon that was killed, for its calls were lost with it: (now, daemon).
  interruptAsks: `UPDATE asks SET status = 'ended', outcome = 'interrupted', ended_at = ?, body = NULL, answer = NULL
    WHERE daemon = ? AND status != 'ended'`,
  pruneAsks: `DELETE FROM asks WHERE id IN
    (SELECT id FROM asks WHERE ended_at IS NOT NULL AND ended_at < ? ORDER BY ended_at LIMIT 1000)`,
  addApproval: `INSERT OR REPLACE INTO approvals (principal, server, tool, fingerprint, at) VALUES (?, ?, ?, ?, ?)`,
  addUsage: 'INSERT INTO sampling_usage (server, tokens, at) VALUES (?, ?, ?)',
  pruneUsage: 'DELETE FROM sampling_usage WHERE at < ?',
  addRoot: 'INSERT OR REPLACE INTO roots (uri, name, at) VALUES (?, ?, ?)',
  deleteRoot: 'DELETE FROM roots WHERE uri = ?',
  setSessionRoots: 'UPDATE sessions SET roots = ? WHERE id = ?',
  setInteractive: 'INSERT OR REPLACE INTO interactive (server, definition, at) VALUES (?, ?, ?)',

  // Adds nothing when the principal has too many unfinished tasks, or a task of that key; reading back tells which. The index
  // is named because SQLite would otherwise count through all ended tasks, too.
  addTask: `INSERT INTO tasks (id, principal, server, tool, door, session, status, phase, attempt, owner, epoch, key,
    fingerprint, ttl, created_at, updated_at, created_tick, expires_tick, call)
    SELECT ?, ?, ?, ?, ?, ?, 'working', ?, ?, ?, 1, ?, ?, ?, ?, ?, ?, ?, ?
    WHERE (SELECT count(*) FROM tasks INDEXED BY tasks_open WHERE principal = ? AND phase != 'ended') < ?
    ON CONFLICT DO NOTHING`,
  // Every statement of a task's owner ends in (id, owner, epoch): an owner that has lost the task changes nothing.
  dispatchTask: `UPDATE tasks SET phase = 'dispatching', attempt = attempt + 1
    WHERE id = ? AND owner = ? AND epoch = ? AND phase = 'queued'`,
  // (how many attempts did not count, message, now, …)
  requeueTask: `UPDATE tasks SET phase = 'queued', status = 'working', upstream = NULL, attempt = attempt - ?, message = ?, updated_at = ?
    WHERE id = ? AND owner = ? AND epoch = ? AND phase != 'ended'`,
  setTaskUpstream: `UPDATE tasks SET upstream = ? WHERE id = ? AND owner = ? AND epoch = ? AND phase != 'ended'`,
  setTaskStatus: `UPDATE tasks SET status = ?, message = ?, updated_at = ?
    WHERE id = ? AND owner = ? AND epoch = ? AND phase != 'ended'`,
  setTaskProgress: `UPDATE tasks SET progress = ? WHERE id = ? AND owner = ? AND epoch = ? AND phase != 'ended'`,
  // Result and status are one step.
  endTask: `UPDATE tasks SET phase = 'ended', status = ?, message = ?, outcome = ?, delivery = ?, result = ?, ttl = ?,
    expires_tick = ?, updated_at = ?, progress = ?, call = NULL
    WHERE id = ? AND owner = ? AND epoch = ? AND phase != 'ended'`,
  // Any daemon may cancel: the new epoch takes the task away from its owner.
  cancelTask: `UPDATE tasks SET phase = 'ended', status = 'cancelled', message = ?, outcome = 'cancelled',
    delivery = CASE WHEN attempt = 0 THEN 'not sent' ELSE 'outcome unknown' END,
    result = ?, updated_at = ?, call = NULL, epoch = epoch + 1, expires_tick = min(expires_tick, ?),
    ttl = min(ttl, ? - created_tick) WHERE id = ? AND phase != 'ended'`,
  // (phase and attempt as the owner knows them, …): a dispatch that was being committed is undone.
  releaseTask: `UPDATE tasks SET owner = '', epoch = epoch + 1, phase = ?, attempt = ? WHERE id = ? AND owner = ? AND epoch = ? AND phase != 'ended'`,
  // (new owner, old owner, old owner, this boot, the oldest beat that still counts, names of the configured servers): a task
  // that was sent and has no upstream task needs no server, because it can only be ended.
  adoptTasks: `UPDATE tasks SET owner = ?, epoch = epoch + 1 WHERE owner = ? AND phase != 'ended'
    AND NOT EXISTS (SELECT 1 FROM lives WHERE id = ? AND boot = ? AND beat > ?)
    AND (server IN (SELECT value FROM json_each(?)) OR (phase = 'dispatching' AND upstream IS NULL))`,
  // In small batches, so that no other statement waits long.
  pruneTasks: `DELETE FROM tasks WHERE seq IN (SELECT seq FROM tasks WHERE expires_tick <= ? ORDER BY expires_tick LIMIT 200)`,
  deleteEndedTasks: `DELETE FROM tasks WHERE seq IN
    (SELECT seq FROM tasks WHERE phase = 'ended' AND updated_at <= ? ORDER BY updated_at LIMIT 200)`,
  beat: 'INSERT OR REPLACE INTO lives (id, daemon, boot, beat) VALUES (?, ?, ?, ?)',
  // The earlier lives of a daemon: the holder of its lock knows that they are over.
  forgetLives: 'DELETE FROM lives WHERE daemon = ? AND id != ?',
  forgetLife: 'DELETE FROM lives WHERE id = ?',
  // Only if the row of the task has that owner, epoch and status.
  addTaskEvent: `INSERT INTO outbox (subject, message_id, payload, created_at)
    SELECT ?, ?, ?, ? FROM tasks WHERE id = ? AND owner = ? AND epoch = ? AND status = ?`,

  // Compare and set, because two daemons may set the clock at once: (new value, old value).
  setClock: `INSERT INTO meta (key, value) VALUES ('clock', ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value
    WHERE meta.value = ?`,

  setMeta: 'INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)',
} as const satisfies Record<string, string>;

/** All columns but the large ones, `call` and `result`. */
const TASK_COLUMNS = `seq, id, principal, server, tool, door, session, status, message, phase, attempt, upstream, owner, epoch,
  key, fingerprint, progress, ttl, created_at, updated_at, created_tick, expires_tick, outcome, delivery`;

export const READS = {
  processes: 'SELECT * FROM processes ORDER BY at, kind, name, pid',
  catalog: 'SELECT * FROM catalog WHERE server = ? AND kind = ?',
  catalogs: 'SELECT * FROM catalog ORDER BY server, kind',
  outbox: 'SELECT * FROM outbox ORDER BY id LIMIT ?',
  outboxDepth: 'SELECT count(*) AS depth FROM outbox',
  refused: 'SELECT * FROM refused ORDER BY id DESC LIMIT ?',
  countRefused: 'SELECT count(*) AS count FROM refused',
  // (how many, how many): ids are dense, so it is known in which page the oldest of them is.
  recentAudit: `SELECT * FROM audit WHERE page >= coalesce((SELECT max(id) FROM audit_pages WHERE id <= (${LAST_AUDIT_ID}) + 1 - ?), 0)
    ORDER BY id DESC LIMIT ?`,
  countAudit: `SELECT (SELECT total(count) FROM audit_pages) + (SELECT count(*) FROM audit_rows) AS count`,
  session: 'SELECT * FROM sessions WHERE id = ? AND ended_at IS NULL',
  sessionSubscriptions: 'SELECT server, uri FROM session_subscriptions WHERE session = ?',
  countSessions: 'SELECT count(*) AS count FROM sessions WHERE ended_at IS NULL AND principal = ?',
  leastUsedSessions: `SELECT id, used_at FROM sessions WHERE ended_at IS NULL AND principal = ? ORDER BY used_at LIMIT 100`,
  sessionsEnded: 'SELECT id FROM sessions WHERE ended_at IS NOT NULL AND ended_at >= ?',
  stream: 'SELECT * FROM streams WHERE id = ?',
  // A few at a time: the many events of one reader must not hold up the others.
  eventsAfter: 'SELECT seq, frame, is_last FROM events WHERE stream = ? AND seq > ? ORDER BY seq LIMIT 64',
  newestEvent: 'SELECT max(seq) AS seq FROM events',
  newestEventOf: 'SELECT max(seq) AS seq FROM events WHERE stream = ?',
  streamsSince: 'SELECT DISTINCT stream FROM events WHERE seq > ?',
  credential: `SELECT * FROM credentials
    WHERE kind = ? AND issuer = ? AND server = ? AND resource = ? AND principal = ?`,
  // Of any issuer.
  newestCredential: `SELECT * FROM credentials WHERE kind = ? AND server = ? AND resource = ? AND principal = ?
    ORDER BY at DESC, rowid DESC LIMIT 1`,
  lease: 'SELECT * FROM leases WHERE name = ?',
  ask: 'SELECT * FROM asks WHERE id = ?',
  // Those of all other daemons: (this daemon, limit).
  openAsks: `SELECT * FROM asks WHERE status = 'open' AND daemon != ? ORDER BY opened_at, id LIMIT ?`,
  liveAsks: `SELECT * FROM asks WHERE status != 'ended' AND daemon = ?`,
  answeredAsks: `SELECT * FROM asks WHERE status = 'answered' AND daemon = ?`,
  askOwners: `SELECT daemon, count(*) AS count FROM asks WHERE status = 'open' AND daemon != ? GROUP BY daemon`,
  askDaemons: `SELECT DISTINCT daemon FROM asks WHERE status != 'ended'`,
  approval: 'SELECT fingerprint FROM approvals WHERE principal = ? AND server = ? AND tool = ?',
  // Without those at the times in a list: (server, since, JSON array of times).
  usage: `SELECT count(*) AS requests, total(tokens) AS tokens FROM sampling_usage
    WHERE server = ? AND at > ? AND at NOT IN (SELECT value FROM json_each(?))`,
  roots: 'SELECT uri, name FROM roots ORDER BY uri',
  sessionRoots: `SELECT id, principal, scope, roots FROM sessions WHERE ended_at IS NULL AND roots IS NOT NULL AND used_at > ?
    ORDER BY created_at, id`,
  interactive: 'SELECT definition FROM interactive WHERE server = ?',

  task: `SELECT ${TASK_COLUMNS} FROM tasks WHERE id = ?`,
  taskByKey: `SELECT ${TASK_COLUMNS} FROM tasks WHERE principal = ? AND key = ?`,
  taskResult: `SELECT ${TASK_COLUMNS}, result FROM tasks WHERE id = ?`,
  taskCall: 'SELECT call FROM tasks WHERE id = ?',
  // Newest first: a task that is added meanwhile does not move the pages.
  tasksOf: `SELECT ${TASK_COLUMNS} FROM tasks WHERE principal = ? AND seq < ? ORDER BY seq DESC LIMIT ?`,
  allTasks: `SELECT ${TASK_COLUMNS} FROM tasks WHERE seq < ? ORDER BY seq DESC LIMIT ?`,
  ownedTasks: `SELECT ${TASK_COLUMNS} FROM tasks WHERE owner = ? AND phase != 'ended' ORDER BY seq`,
  taskOwners: `SELECT DISTINCT owner FROM tasks WHERE phase != 'ended'`,
  countOwned: `SELECT count(*) AS count FROM tasks WHERE owner = ? AND phase != 'ended'`,
  unfinishedTasks: `SELECT count(*) AS count FROM tasks WHERE phase != 'ended'`,
  endedTasks: `SELECT count(*) AS count FROM tasks WHERE phase = 'ended' AND updated_at <= ?`,
  expiredTask: 'SELECT 1 FROM tasks WHERE expires_tick <= ? LIMIT 1',
  lives: 'SELECT * FROM lives',

  getMeta: 'SELECT value FROM meta WHERE key = ?',
} as const satisfies Record<string, string>;

export type WriteName = keyof typeof WRITES;
export type ReadName = keyof typeof READS;
export type Value = string | number | bigint | null | Uint8Array;
export type Params = readonly Value[];
export type Op = { readonly name: WriteName; readonly params: Params };

/** How many parameters a statement takes. */
export const arityOf = Object.fromEntries(
  Object.entries({ ...WRITES, ...READS }).map(([name, sql]) => [name, sql.split('?').length - 1]),
) as Record<WriteName | ReadName, number>;
