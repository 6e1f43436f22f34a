// Questions of servers to people and models. `body` and `answer` are encrypted, and erased when the ask ends; the rest of the
// row says who was asked by which server and how it ended. Beside them: approvals, tokens that models used, and roots.

export const asks = `
  CREATE TABLE asks (
    id TEXT PRIMARY KEY NOT NULL,
    kind TEXT NOT NULL,
    server TEXT NOT NULL,
    tool TEXT NOT NULL,
    principal TEXT NOT NULL,
    daemon TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('open', 'answered', 'ended')),
    stage TEXT NOT NULL,
    body BLOB,
    answer BLOB,
    answered_by TEXT,
    token TEXT,
    outcome TEXT,
    opened_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    ended_at INTEGER
  ) STRICT;
  CREATE INDEX asks_live ON asks (status, opened_at) WHERE status != 'ended';
  CREATE INDEX asks_ended ON asks (ended_at) WHERE ended_at IS NOT NULL;

  CREATE TABLE approvals (
    principal TEXT NOT NULL,
    server TEXT NOT NULL,
    tool TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (principal, server, tool)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE sampling_usage (
    server TEXT NOT NULL,
    tokens INTEGER NOT NULL,
    at INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX sampling_usage_server ON sampling_usage (server, at);
  CREATE INDEX sampling_usage_at ON sampling_usage (at);

  CREATE TABLE roots (
    uri TEXT PRIMARY KEY NOT NULL,
    name TEXT,
    at INTEGER NOT NULL
  ) STRICT;
  ALTER TABLE sessions ADD COLUMN roots TEXT;

  CREATE TABLE interactive (
    server TEXT PRIMARY KEY NOT NULL,
    definition TEXT NOT NULL,
    at INTEGER NOT NULL
  ) STRICT;
`;
