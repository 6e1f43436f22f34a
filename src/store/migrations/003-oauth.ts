// Grants, clients and challenges of remote servers, and the leases under which tokens are renewed. `body` is encrypted; it is
// found by the other columns. No version is given out twice, so that a reader can tell whether its row was replaced.

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
