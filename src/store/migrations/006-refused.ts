// Events that the bus will never take. What is put here leaves the outbox in the same step, so that it is not sent again;
// only the newest thousand are kept.

export const refused = `
  CREATE TABLE refused (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    message_id TEXT NOT NULL UNIQUE,
    subject TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    why TEXT NOT NULL,
    at INTEGER NOT NULL
  ) STRICT;

  CREATE TRIGGER put_aside AFTER INSERT ON refused BEGIN
    DELETE FROM outbox WHERE message_id = NEW.message_id;
    DELETE FROM refused WHERE id <= NEW.id - 1000;
  END;
`;
