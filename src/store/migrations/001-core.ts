// The first schema: processes to sweep after a crash, lists of the servers, events to send, and the audit of all calls.
// STRICT tables refuse a value of the wrong type instead of keeping it.

export const core = `
  CREATE TABLE meta (
    key TEXT PRIMARY KEY NOT NULL,
    value TEXT NOT NULL
  ) STRICT;

  CREATE TABLE processes (
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    pid INTEGER NOT NULL,
    start_time TEXT,
    boot_id TEXT,
    daemon TEXT,
    at INTEGER NOT NULL,
    PRIMARY KEY (kind, name, pid)
  ) STRICT;

  CREATE TABLE catalog (
    server TEXT NOT NULL,
    kind TEXT NOT NULL,
    body BLOB NOT NULL,
    hash TEXT,
    fetched_at INTEGER NOT NULL,
    PRIMARY KEY (server, kind)
  ) STRICT;

  CREATE TABLE outbox (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    subject TEXT NOT NULL,
    message_id TEXT NOT NULL UNIQUE,
    payload BLOB NOT NULL,
    created_at INTEGER NOT NULL
  ) STRICT;

  CREATE TABLE audit (
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    daemon TEXT,
    door TEXT,
    principal TEXT,
    request_id TEXT,
    server TEXT,
    method TEXT,
    name TEXT,
    outcome TEXT,
    code INTEGER,
    error TEXT,
    duration_us INTEGER,
    bytes_in INTEGER,
    bytes_out INTEGER
  ) STRICT;
`;
