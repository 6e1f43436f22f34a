// Every SQL statement of troupe, by name. Parameters are positional, in the order of the columns as written here.
// Times named `at`, `*_at` are milliseconds since 1970; `duration_us` is microseconds.

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

  addAudit: `INSERT INTO audit (at, daemon, door, principal, request_id, server, method, name, outcome, code, error,
    duration_us, bytes_in, bytes_out) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  // Looks at the oldest 1,000 rows only, so that it costs the same however long the table is: (older than, rows to keep).
  pruneAudit: `DELETE FROM audit WHERE id IN (SELECT id FROM audit ORDER BY id LIMIT 1000)
    AND (at < ? OR id <= (SELECT max(id) FROM audit) - ?)`,

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
  getMeta: 'SELECT value FROM meta WHERE key = ?',
} as const satisfies Record<string, string>;

export type WriteName = keyof typeof WRITES;
export type ReadName = keyof typeof READS;
export type Value = string | number | bigint | null | Uint8Array;
export type Params = readonly Value[];
export type Op = { readonly name: WriteName; readonly params: Params };

export type ProcessRow = {
  kind: string;
  name: string;
  pid: number;
  start_time: string;
  boot_id: string;
  daemon: string;
  at: number;
};
export type CatalogRow = { server: string; kind: string; body: Buffer; hash: string; fetched_at: number };
export type OutboxRow = { id: number; subject: string; message_id: string; payload: Buffer; created_at: number };
export type AuditRow = {
  id: number;
  at: number;
  daemon: string;
  door: string;
  principal: string;
  request_id: string;
  server: string;
  method: string;
  name: string;
  outcome: string;
  code: number | null;
  error: string | null;
  duration_us: number;
  bytes_in: number;
  bytes_out: number;
};

/** How many parameters a statement takes. */
export const arityOf = Object.fromEntries(
  Object.entries({ ...WRITES, ...READS }).map(([name, sql]) => [name, sql.split('?').length - 1]),
) as Record<WriteName | ReadName, number>;
