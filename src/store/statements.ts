// Every SQL statement of troupe, by name. Parameters are positional, in the order of the columns as written here.
// Times named `at`, `*_at` are milliseconds since 1970; `duration_us` is microseconds.

import { TASK_READS, TASK_WRITES } from './task-statements.ts';

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

  addAudit: `INSERT INTO audit (at, daemon, door, principal, request_id, server, method, name, outcome, code, error,
    duration_us, bytes_in, bytes_out) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  // Looks at the oldest 1,000 rows only, so that it costs the same however long the table is: (older than, rows to keep).
  pruneAudit: `DELETE FROM audit WHERE id IN (SELECT id FROM audit ORDER BY id LIMIT 1000)
    AND (at < ? OR id <= (SELECT max(id) FROM audit) - ?)`,

  addSession: `INSERT INTO sessions (id, principal, door, scope, era, client, capabilities, created_at, used_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
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
  // The last event of every stream that its daemon can no longer go on with: (error object, now, daemon, begun until).
  interruptStreams: `INSERT INTO events (stream, frame, is_last, at)
    SELECT id, CAST('{"jsonrpc":"2.0","id":' || request_id || ',"error":' || ? || '}' AS BLOB), 1, ? FROM streams
    WHERE daemon = ? AND is_over = 0 AND at <= ?`,
  // (stream, stream, how many to keep)
  trimStream: `DELETE FROM events WHERE stream = ? AND seq <=
    (SELECT seq FROM events WHERE stream = ? ORDER BY seq DESC LIMIT 1 OFFSET ?)`,
  pruneStreams: 'DELETE FROM streams WHERE id IN (SELECT id FROM streams WHERE at < ? ORDER BY at LIMIT 1000)',
  // Large ones would fill the disk long before there are too many.
  pruneLargeEvents: `DELETE FROM events WHERE seq IN
    (SELECT seq FROM events WHERE at < ? AND length(frame) > 262144 ORDER BY seq LIMIT 100)`,
  pruneEvents: `DELETE FROM events WHERE seq IN (SELECT seq FROM events ORDER BY seq LIMIT 1000)
    AND (at < ? OR seq <= (SELECT max(seq) FROM events) - ?)`,

  putCredential: `INSERT OR REPLACE INTO credentials (kind, issuer, server, resource, principal, body, version, at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
  // Only the very one that was read: whoever lost a race must not take away what the winner saved.
  deleteCredential: `DELETE FROM credentials
    WHERE kind = ? AND issuer = ? AND server = ? AND resource = ? AND principal = ? AND version = ?`,
  deleteGrants: `DELETE FROM credentials WHERE kind = 'grant' AND server = ? AND principal = ?`,

  // (name, owner, until, now, the latest end that is believed): a clock that was set back must not hold it for ever.
  takeLease: `INSERT INTO leases (name, owner, epoch, until) VALUES (?, ?, 1, ?) ON CONFLICT (name) DO UPDATE
    SET owner = excluded.owner, epoch = leases.epoch + 1, until = excluded.until
    WHERE leases.until < ? OR leases.until > ?`,
  releaseLease: 'UPDATE leases SET until = 0 WHERE name = ? AND owner = ? AND epoch = ?',

  addAsk: `INSERT INTO asks (id, kind, server, tool, principal, daemon, status, stage, body, opened_at, expires_at)
    VALUES (?, ?, ?, ?, ?, ?, 'open', ?, ?, ?, ?)`,
  setAskBody: `UPDATE asks SET body = ?, stage = ? WHERE id = ? AND status = 'open'`,
  // The first answer stands: (answer, who, a token by which the winner knows itself, id, what it is an answer to).
  answerAsk: `UPDATE asks SET status = 'answered', answer = ?, answered_by = ?, token = ?
    WHERE id = ? AND status = 'open' AND stage = ?`,
  // After a word that is not the last one: (new body, what is wanted next, id).
  reopenAsk: `UPDATE asks SET status = 'open', body = ?, stage = ?, answer = NULL WHERE id = ? AND status = 'answered'`,
  // What was asked and answered is nobody's business any more.
  endAsk: `UPDATE asks SET status = 'ended', outcome = ?, answered_by = ?, ended_at = ?, body = NULL, answer = NULL
    WHERE id = ? AND status != 'ended'`,
  // (now, daemon): it was killed, and its calls with it.
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

  ...TASK_WRITES,
  // Compare and set: two daemons may want to set it at once.
  setClock: `INSERT INTO meta (key, value) VALUES ('clock', ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value
    WHERE meta.value = ?`,

  setMeta: 'INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)',
} as const satisfies Record<string, string>;

export const READS = {
  processes: 'SELECT * FROM processes ORDER BY at, kind, name, pid',
  catalog: 'SELECT * FROM catalog WHERE server = ? AND kind = ?',
  catalogs: 'SELECT * FROM catalog ORDER BY server, kind',
  outbox: 'SELECT * FROM outbox ORDER BY id LIMIT ?',
  outboxDepth: 'SELECT count(*) AS depth FROM outbox',
  recentAudit: 'SELECT * FROM audit ORDER BY id DESC LIMIT ?',
  countAudit: 'SELECT count(*) AS count FROM audit',
  session: 'SELECT * FROM sessions WHERE id = ? AND ended_at IS NULL',
  sessionSubscriptions: 'SELECT server, uri FROM session_subscriptions WHERE session = ?',
  countSessions: 'SELECT count(*) AS count FROM sessions WHERE ended_at IS NULL AND principal = ?',
  leastUsedSessions: `SELECT id FROM sessions WHERE ended_at IS NULL AND principal = ? ORDER BY used_at LIMIT 100`,
  sessionsEnded: 'SELECT id FROM sessions WHERE ended_at IS NOT NULL AND ended_at >= ?',
  stream: 'SELECT * FROM streams WHERE id = ?',
  // A few at a time: a reader that was away for long must not hold up the others.
  eventsAfter: 'SELECT seq, frame, is_last FROM events WHERE stream = ? AND seq > ? ORDER BY seq LIMIT 64',
  newestEvent: 'SELECT max(seq) AS seq FROM events',
  newestEventOf: 'SELECT max(seq) AS seq FROM events WHERE stream = ?',
  streamsSince: 'SELECT DISTINCT stream FROM events WHERE seq > ?',
  credential: `SELECT * FROM credentials
    WHERE kind = ? AND issuer = ? AND server = ? AND resource = ? AND principal = ?`,
  // Whichever issuer it is from.
  newestCredential: `SELECT * FROM credentials WHERE kind = ? AND server = ? AND resource = ? AND principal = ?
    ORDER BY at DESC, rowid DESC LIMIT 1`,
  lease: 'SELECT * FROM leases WHERE name = ?',
  ask: 'SELECT * FROM asks WHERE id = ?',
  // Of all daemons but that one.
  openAsks: `SELECT * FROM asks WHERE status = 'open' AND daemon != ? ORDER BY opened_at, id LIMIT ?`,
  liveAsks: `SELECT * FROM asks WHERE status != 'ended' AND daemon = ?`,
  answeredAsks: `SELECT * FROM asks WHERE status = 'answered' AND daemon = ?`,
  askOwners: `SELECT daemon, count(*) AS count FROM asks WHERE status = 'open' AND daemon != ? GROUP BY daemon`,
  askDaemons: `SELECT DISTINCT daemon FROM asks WHERE status != 'ended'`,
  approval: 'SELECT fingerprint FROM approvals WHERE principal = ? AND server = ? AND tool = ?',
  // But for those of the times in that list.
  usage: `SELECT count(*) AS requests, total(tokens) AS tokens FROM sampling_usage
    WHERE server = ? AND at > ? AND at NOT IN (SELECT value FROM json_each(?))`,
  roots: 'SELECT uri, name FROM roots ORDER BY uri',
  sessionRoots: `SELECT id, principal, scope, roots FROM sessions WHERE ended_at IS NULL AND roots IS NOT NULL AND used_at > ?
    ORDER BY created_at, id`,
  interactive: 'SELECT definition FROM interactive WHERE server = ?',
  ...TASK_READS,
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
