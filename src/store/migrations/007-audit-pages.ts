// The audit as pages of many records each. `audit` was a table with a row for each record, and is a view now that shows the same,
// and the page that a record is in: a question that names pages expands no others.

export const auditPages = `
  ALTER TABLE audit RENAME TO audit_rows;

  -- The id of a page is that of its first record; the next page begins where this one ends.
  CREATE TABLE audit_pages (
    id INTEGER PRIMARY KEY,
    first_at INTEGER NOT NULL,
    last_at INTEGER NOT NULL,
    count INTEGER NOT NULL,
    -- [[daemon, door, principal, server, method, name, outcome, code, error], …]
    about TEXT NOT NULL,
    -- [[number of what it is about, at - first_at, request_id, duration_us, bytes_in, bytes_out], …]
    records TEXT NOT NULL
  ) STRICT;

  CREATE VIEW audit (id, at, daemon, door, principal, request_id, server, method, name, outcome, code, error,
    duration_us, bytes_in, bytes_out, page) AS
  SELECT id, at, about ->> 0, about ->> 1, about ->> 2, record ->> 2, about ->> 3, about ->> 4, about ->> 5, about ->> 6,
    about ->> 7, about ->> 8, record ->> 3, record ->> 4, record ->> 5, page
  FROM (
    SELECT page.id + each.key AS id, page.first_at + (each.value ->> 1) AS at, each.value AS record,
      page.about -> (each.value ->> 0) AS about, page.id AS page
    FROM audit_pages AS page, json_each(page.records) AS each
  )
  UNION ALL
  SELECT id, at, daemon, door, principal, request_id, server, method, name, outcome, code, error, duration_us, bytes_in, bytes_out,
    id
  FROM audit_rows;

  -- An older daemon on the same file still adds rows, which follow on the pages that are there.
  CREATE TRIGGER audit_of_an_older_daemon INSTEAD OF INSERT ON audit BEGIN
    INSERT INTO audit_rows (id, at, daemon, door, principal, request_id, server, method, name, outcome, code, error,
      duration_us, bytes_in, bytes_out)
    SELECT 1 + max(coalesce((SELECT max(id) FROM audit_rows), 0),
        coalesce((SELECT id + count - 1 FROM audit_pages ORDER BY id DESC LIMIT 1), 0)),
      NEW.at, NEW.daemon, NEW.door, NEW.principal, NEW.request_id, NEW.server, NEW.method, NEW.name, NEW.outcome, NEW.code,
      NEW.error, NEW.duration_us, NEW.bytes_in, NEW.bytes_out;
  END;
`;
