// What remote servers' authorization servers gave us, and who may use it to ask for more. `body` is encrypted; the other
// columns are what it is looked up by. A version is never given twice, so that what was read can be told from what is.

export const oauth = `
  CREATE TABLE credentials (
    kind TEXT NOT NULL CHECK (kind IN ('grant', 'client', 'challenge')),
    issuer TEXT NOT NULL,
    server TEXT NOT NULL,
    resource TEXT NOT NULL,
    principal TEXT NOT NULL,
    body BLOB NOT NULL,
    version TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (kind, issuer, server, resource, principal)
  ) STRICT;
  CREATE INDEX credentials_place ON credentials (kind, server, resource, principal, at);

  CREATE TABLE leases (
    name TEXT PRIMARY KEY NOT NULL,
    owner TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    until INTEGER NOT NULL
  ) STRICT;
`;
