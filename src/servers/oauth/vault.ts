// Grants, clients and challenges as encrypted rows of the store, found by server, resource, principal and issuer. A credential of
// one issuer is never read as another's.

import { createHash, randomUUID } from 'node:crypto';
import type {
  AuthorizationServerMetadata,
  OAuthClientInformationMixed,
  OAuthTokens,
} from '@modelcontextprotocol/client';
import type { CredentialRow } from '../../store/rows.ts';
import { openSeal } from '../../store/seal.ts';
import type { Store } from '../../store/store.ts';

/** A principal's account at a server. The address is part of it: a server that moves takes no credential along. */
export type Account = { readonly server: string; readonly resource: string; readonly principal: string };

/** Tokens, and all that is needed to renew them where they came from, whatever the server's metadata says by then. */
export type Grant = {
  readonly issuer: string;
  readonly authorizationServerUrl: string;
  readonly metadata?: AuthorizationServerMetadata;
  readonly resource: string;
  readonly client: OAuthClientInformationMixed;
  readonly tokens: OAuthTokens;
  /** The granted scopes; a server may leave them out when they are those that were asked for. */
  readonly scope?: string;
  readonly obtainedAt: number;
  /** When a person logged in; the tokens may have been renewed since. A client's own grant has none. */
  readonly loggedInAt?: number;
  readonly expiresAt?: number;
};

/** What the MCP server wants, as of its last 401 or 403. */
export type Challenge = { readonly resourceMetadataUrl?: string; readonly scope?: string };

/** A value, and the version of its row when it was read. */
export type Versioned<Value> = { readonly value: Value; readonly version: string };
export type Vault = ReturnType<typeof createVault>;

type Kinds = { grant: Grant; client: OAuthClientInformationMixed; challenge: Challenge };

/** The issuer of a challenge, which comes before any issuer is known. */
const NO_ISSUER = '';

export function createVault(
  store: Store,
  directory: string,
  onSecrets: (values: readonly string[]) => void = () => {},
) {
  const seal = openSeal(directory);
  /** The last value that was decrypted of each row: every request needs a token, and tokens seldom change. */
  const opened = new Map<string, Versioned<unknown>>();

  function open<Kind extends keyof Kinds>(row: CredentialRow | undefined): Versioned<Kinds[Kind]> | undefined {
    if (!row) return undefined;
    const name = nameOf(row.kind, row.issuer, [row.server, row.resource, row.principal]);
    const known = opened.get(name);
    if (known?.version === row.version) return known as Versioned<Kinds[Kind]>;
    const text = seal.open(row.body, name);
    if (text === undefined) return undefined;
    const found = { value: JSON.parse(text), version: row.version };
    onSecrets(secretsIn(found.value));
    opened.set(name, found);
    return found;
  }

  async function put<Kind extends keyof Kinds>(kind: Kind, issuer: string, account: Account, value: Kinds[Kind]) {
    onSecrets(secretsIn(value));
    const body = seal.seal(JSON.stringify(value), nameOf(kind, issuer, keysOf(account)));
    await store.commit('putCredential', [kind, issuer, ...keysOf(account), body, randomUUID(), Date.now()]);
  }

  const find = <Kind extends keyof Kinds>(kind: Kind, issuer: string, account: Account) =>
    open<Kind>(store.get<CredentialRow>('credential', [kind, issuer, ...keysOf(account)]));
  const newest = <Kind extends keyof Kinds>(kind: Kind, account: Account) =>
    open<Kind>(store.get<CredentialRow>('newestCredential', [kind, ...keysOf(account)]));

  return {
    grant: (account: Account) => newest('grant', account),
    saveGrant: (account: Account, grant: Grant) => put('grant', grant.issuer, account, grant),
    /** Only if the row still has the version that was read. */
    async dropGrant(account: Account, { value, version }: Versioned<Grant>): Promise<void> {
      await store.commit('deleteCredential', ['grant', value.issuer, ...keysOf(account), version]);
    },
    client: (account: Account, issuer: string) => find('client', issuer, account)?.value,
    newestClient: (account: Account) => newest('client', account)?.value,
    saveClient: (account: Account, issuer: string, client: OAuthClientInformationMixed) =>
      put('client', issuer, account, client),
    async dropClient(account: Account, issuer: string): Promise<void> {
      const found = find('client', issuer, account);
      if (found) await store.commit('deleteCredential', ['client', issuer, ...keysOf(account), found.version]);
    },
    challenge: (account: Account) => find('challenge', NO_ISSUER, account)?.value,
    saveChallenge: (account: Account, challenge: Challenge) => put('challenge', NO_ISSUER, account, challenge),
    /** Forgets every grant of that server and principal, whatever the address. */
    async forget({ server, principal }: Account): Promise<void> {
      await store.commit('deleteGrants', [server, principal]);
    },
  };
}

/** By the names that OAuth gives them: `access_token`, `refresh_token`, `client_secret` and their like. */
const secretsIn = (value: object): string[] =>
  Object.entries(value).flatMap(([name, each]) => {
    if (typeof each === 'string') return /_token$|secret$/.test(name) ? [each] : [];
    return typeof each === 'object' && each !== null ? secretsIn(each) : [];
  });

type Keys = readonly [server: string, resource: string, principal: string];

/** The row holds a digest of the address: its query may be a secret. */
const keysOf = ({ server, resource, principal }: Account): Keys => [
  server,
  createHash('sha256').update(resource).digest('base64url'),
  principal,
];
const nameOf = (kind: string, issuer: string, keys: Keys): string => JSON.stringify([kind, issuer, ...keys]);
