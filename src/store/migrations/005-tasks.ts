// Calls whose outcome is kept, and the daemons that run them. Every write to a task names its epoch: a daemon that was taken for
// dead and wakes up writes nothing. Ticks are those of store/clock.ts; large columns come last.

export const tasks = `
  CREATE TABLE tasks (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT UNIQUE NOT NULL,
    principal TEXT NOT NULL,
    server TEXT NOT NULL,
    tool TEXT NOT NULL,
    door TEXT NOT NULL,
    session TEXT,
    status TEXT NOT NULL CHECK (status IN ('working', 'input_required', 'completed', 'failed', 'cancelled')),
    message TEXT,
    phase TEXT NOT NULL CHECK (phase IN ('queued', 'dispatching', 'ended')),
    attempt INTEGER NOT NULL,
    upstream TEXT,
    owner TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    key TEXT,
    fingerprint TEXT NOT NULL,
    progress TEXT,
    ttl INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    created_tick INTEGER NOT NULL,
    expires_tick INTEGER NOT NULL,
    outcome TEXT,
    delivery TEXT,
    call BLOB,
    result BLOB,
    CHECK ((phase = 'ended') = (status IN ('completed', 'failed', 'cancelled')))
  ) STRICT;
  CREATE UNIQUE INDEX tasks_key ON tasks (principal, key) WHERE key IS NOT NULL;
  CREATE INDEX tasks_owner ON tasks (owner) WHERE phase != 'ended';
  CREATE INDEX tasks_open ON tasks (principal) WHERE phase != 'ended';
  CREATE INDEX tasks_list ON tasks (principal, seq);
  CREATE INDEX tasks_expiry ON tasks (expires_tick);
  CREATE INDEX tasks_ended ON tasks (updated_at) WHERE phase = 'ended';

  CREATE TABLE lives (
    id TEXT PRIMARY KEY NOT NULL,
    daemon TEXT NOT NULL,
    boot TEXT NOT NULL,
    beat INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
`;
