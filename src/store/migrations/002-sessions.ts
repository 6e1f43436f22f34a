// Sessions of hosts, their subscriptions, and the streams they may resume. SQLite gives each event its number, so that it is
// higher than every earlier one, whichever daemon writes it, and never given twice.

export const sessions = `
  CREATE TABLE sessions (
    id TEXT PRIMARY KEY NOT NULL,
    principal TEXT NOT NULL,
    door TEXT NOT NULL,
    scope TEXT NOT NULL,
    era TEXT NOT NULL,
    client TEXT NOT NULL,
    capabilities TEXT NOT NULL,
    level TEXT,
    created_at INTEGER NOT NULL,
    used_at INTEGER NOT NULL,
    ended_at INTEGER
  ) STRICT;
  CREATE INDEX sessions_ended ON sessions (ended_at) WHERE ended_at IS NOT NULL;
  CREATE INDEX sessions_used ON sessions (used_at);

  CREATE TABLE session_subscriptions (
    session TEXT NOT NULL,
    server TEXT NOT NULL,
    uri TEXT NOT NULL,
    PRIMARY KEY (session, server, uri)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE streams (
    id TEXT PRIMARY KEY NOT NULL,
    session TEXT NOT NULL,
    request_id TEXT NOT NULL,
    daemon TEXT NOT NULL,
    is_over INTEGER NOT NULL,
    at INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX streams_open ON streams (daemon) WHERE is_over = 0;
  CREATE INDEX streams_session ON streams (session);
  CREATE INDEX streams_at ON streams (at);

  CREATE TABLE events (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    stream TEXT NOT NULL,
    frame BLOB NOT NULL,
    is_last INTEGER NOT NULL,
    at INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX events_stream ON events (stream, seq);

  CREATE TRIGGER stream_over AFTER INSERT ON events WHEN NEW.is_last = 1 BEGIN
    UPDATE streams SET is_over = 1 WHERE id = NEW.stream;
  END;
  CREATE TRIGGER session_gone AFTER DELETE ON sessions BEGIN
    DELETE FROM session_subscriptions WHERE session = OLD.id;
    DELETE FROM streams WHERE session = OLD.id;
  END;
`;
