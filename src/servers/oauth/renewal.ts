// A new token in place of one that ends or was refused, asked for by one process at a time: with rotation, two refreshes of
// the same token are taken for theft, and the grant is revoked. The second process waits, and takes what the first got.

import { createHash } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { auth, OAuthError, OAuthErrorCode, refreshAuthorization } from '@modelcontextprotocol/client';
import type { RemoteServer } from '../../config/schema.ts';
import { sentence, TroupeError } from '../../protocol/failures.ts';
import { LEASE_MS, type Leases } from '../../store/lease.ts';
import { withoutControls } from '../../telemetry/printable.ts';
import { discover, httpUrlOf } from './discovery.ts';
import { type Fetch, guardedFetch } from './guarded-fetch.ts';
import { configuredClient, lifeOf, providerOf, signing } from './provider.ts';
import type { Account, Grant, Vault, Versioned } from './vault.ts';

export type Renewal = {
  readonly server: RemoteServer;
  readonly account: Account;
  readonly vault: Vault;
  readonly leases: Leases;
  /** The scopes of a new grant of `client_credentials`, if they are wider than before. */
  readonly scope?: string | undefined;
};

const PAUSE_MS = 40;
/** After these errors the tokens or the client are invalid for good; all others may pass. */
const FINAL: readonly string[] = [
  OAuthErrorCode.InvalidGrant,
  OAuthErrorCode.InvalidClient,
  OAuthErrorCode.UnauthorizedClient,
];

/** The grant that follows `stale`, or undefined when only a person can get one. Throws when the renewal fails for now. */
export async function renew(
  renewal: Renewal,
  stale: Versioned<Grant> | undefined,
): Promise<Versioned<Grant> | undefined> {
  const { account, vault, leases } = renewal;
  const mayAsk = (found: Versioned<Grant> | undefined) =>
    renewal.server.oauth.grant === 'client_credentials' || found?.value.tokens.refresh_token !== undefined;
  const deadline = performance.now() + LEASE_MS + 5_000;
  while (performance.now() < deadline) {
    const found = vault.grant(account);
    if (found && found.version !== stale?.version) return found;
    if (!mayAsk(found)) return undefined;
    const release = await leases.take(leaseOf(renewal, found?.value));
    if (release) {
      try {
        const latest = vault.grant(account); // it may have been renewed between the look and the lease
        if (latest?.version === found?.version) await ask(renewal, latest);
        return vault.grant(account);
      } finally {
        await release();
      }
    }
    await wait(PAUSE_MS + Math.random() * PAUSE_MS);
  }
  throw new TroupeError(
    'unavailable',
    `server ${account.server}: another process has been renewing its token for long`,
  );
}

/** One for issuer, client and principal, because servers that share a client share its refresh. Hashed: a url may hold a secret. */
function leaseOf({ server, account }: Renewal, grant: Grant | undefined): string {
  const client = grant?.client.client_id ?? server.oauth.clientId;
  const about = JSON.stringify([grant?.issuer ?? server.url, client, account.principal]);
  return createHash('sha256').update(about).digest('base64url');
}

async function ask(renewal: Renewal, found: Versioned<Grant> | undefined): Promise<void> {
  const { server, account, vault } = renewal;
  const fetchFn = guardedFetch(httpUrlOf(server.url));
  try {
    if (server.oauth.grant === 'client_credentials') await obtain(renewal, fetchFn);
    else if (found) await vault.saveGrant(account, await refreshed(server, found.value, fetchFn));
  } catch (error) {
    const isFinal = error instanceof OAuthError && FINAL.includes(error.code);
    if (!isFinal) throw new TroupeError('unavailable', `server ${server.name}: no new token: ${reasonOf(error)}`);
    if (found) await vault.dropGrant(account, found);
  }
}

async function refreshed({ oauth }: RemoteServer, grant: Grant, fetchFn: Fetch): Promise<Grant> {
  const preset = configuredClient(oauth);
  const client = preset?.client_id === grant.client.client_id ? preset : grant.client; // the secret of the configuration may have changed
  const tokens = await refreshAuthorization(grant.authorizationServerUrl, {
    ...(grant.metadata && { metadata: grant.metadata }),
    clientInformation: client,
    refreshToken: grant.tokens.refresh_token ?? '',
    resource: grant.resource,
    ...signing(oauth, client),
    fetchFn,
  });
  const { expiresAt: _, ...rest } = grant;
  return { ...rest, tokens, ...lifeOf(tokens), ...(tokens.scope && { scope: tokens.scope }) };
}

/** By the client's own credentials, which give any number of tokens. */
async function obtain({ server, account, vault, scope }: Renewal, fetchFn: Fetch): Promise<void> {
  const challenge = vault.challenge(account) ?? {};
  const discovery = await discover(server, challenge, fetchFn);
  const wanted = scope ?? server.oauth.scopes?.join(' ') ?? challenge.scope;
  const provider = providerOf({ server, account, vault, discovery, scope: wanted });
  await auth(provider, { serverUrl: httpUrlOf(server.url), fetchFn, ...(wanted && { scope: wanted }) });
}

/** The text of an authorization server may repeat what it was sent, so only its code is passed on. */
export function reasonOf(error: unknown): string {
  if (error instanceof OAuthError) return `the authorization server said ${error.code.slice(0, 60)}`;
  return withoutControls(sentence(error).replace(/\s+/g, ' ').slice(0, 300));
}
