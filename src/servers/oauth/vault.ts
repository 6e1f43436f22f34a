// What is kept of each authorization: rows of the store, encrypted, found by server, resource, principal and issuer. A
// credential of one issuer is never read as another's.

import { createHash, randomUUID } from 'node:crypto';
import type {
  AuthorizationServerMetadata,
  OAuthClientInformationMixed,
  OAuthTokens,
} from '@modelcontextprotocol/client';
import type { CredentialRow } from '../../store/rows.ts';
import { openSeal } from '../../store/seal.ts';
import type { Store } from '../../store/store.ts';

/** Whose credentials, and for what: a server that moves to another address takes none of them along. */
export type Place = { readonly server: string; readonly resource: string; readonly principal: string };

/** Tokens, and all that is needed to renew them where they came from, whatever the server's metadata says today. */
export type Grant = {
  readonly issuer: string;
  readonly authorizationServerUrl: string;
  readonly metadata?: AuthorizationServerMetadata;
  readonly resource: string;
  readonly client: OAuthClientInformationMixed;
  readonly tokens: OAuthTokens;
  /** What was granted; servers leave it out when it is what was asked for. */
  readonly scope?: string;
  readonly obtainedAt: number;
  readonly expiresAt?: number;
};

/** What the MCP server said when it turned us away. */
export type Challenge = { readonly resourceMetadataUrl?: string; readonly scope?: string };

export type Kept<Value> = { readonly value: Value; readonly version: string };
export type Vault = ReturnType<typeof createVault>;

type Kinds = { grant: Grant; client: OAuthClientInformationMixed; challenge: Challenge };

/** Stands for "no issuer yet". */
const NOBODY = '';

export function createVault(store: Store, directory: string) {
  const seal = openSeal(directory);
  /** The last one opened of each place: a token is wanted for every request, and seldom changes. */
  const opened = new Map<string, Kept<unknown>>();

  function open<Kind extends keyof Kinds>(row: CredentialRow | undefined): Kept<Kinds[Kind]> | undefined {
    if (!row) return undefined;
    const name = nameOf(row.kind, row.issuer, [row.server, row.resource, row.principal]);
    const known = opened.get(name);
    if (known?.version === row.version) return known as Kept<Kinds[Kind]>;
    const text = seal.open(row.body, name);
    if (text === undefined) return undefined;
    const kept = { value: JSON.parse(text), version: row.version };
    opened.set(name, kept);
    return kept;
  }

  async function put<Kind extends keyof Kinds>(kind: Kind, issuer: string, place: Place, value: Kinds[Kind]) {
    const body = seal.seal(JSON.stringify(value), nameOf(kind, issuer, keysOf(place)));
    await store.commit('putCredential', [kind, issuer, ...keysOf(place), body, randomUUID(), Date.now()]);
  }

  const find = <Kind extends keyof Kinds>(kind: Kind, issuer: string, place: Place) =>
    open<Kind>(store.get<CredentialRow>('credential', [kind, issuer, ...keysOf(place)]));
  const newest = <Kind extends keyof Kinds>(kind: Kind, place: Place) =>
    open<Kind>(store.get<CredentialRow>('newestCredential', [kind, ...keysOf(place)]));

  return {
    grant: (place: Place) => newest('grant', place),
    saveGrant: (place: Place, grant: Grant) => put('grant', grant.issuer, place, grant),
    /** Only if it is still the one that was read. */
    async dropGrant(place: Place, { value, version }: Kept<Grant>): Promise<void> {
      await store.commit('deleteCredential', ['grant', value.issuer, ...keysOf(place), version]);
    },
    client: (place: Place, issuer: string) => find('client', issuer, place)?.value,
    newestClient: (place: Place) => newest('client', place)?.value,
    saveClient: (place: Place, issuer: string, client: OAuthClientInformationMixed) =>
      put('client', issuer, place, client),
    async dropClient(place: Place, issuer: string): Promise<void> {
      const found = find('client', issuer, place);
      if (found) await store.commit('deleteCredential', ['client', issuer, ...keysOf(place), found.version]);
    },
    challenge: (place: Place) => find('challenge', NOBODY, place)?.value,
    saveChallenge: (place: Place, challenge: Challenge) => put('challenge', NOBODY, place, challenge),
    /** Forgets every grant of that server and principal, whatever the address. */
    async forget({ server, principal }: Place): Promise<void> {
      await store.commit('deleteGrants', [server, principal]);
    },
  };
}

type Keys = readonly [server: string, resource: string, principal: string];

/** Of an address only a digest is written down: its query may be a secret. */
const keysOf = ({ server, resource, principal }: Place): Keys => [
  server,
  createHash('sha256').update(resource).digest('base64url'),
  principal,
];
const nameOf = (kind: string, issuer: string, keys: Keys): string => JSON.stringify([kind, issuer, ...keys]);
