// A new token in place of one that ends or was refused, asked for by one process at a time: with rotation, two refreshes of
// the same token are taken for theft, and both sides lose. Whoever comes second waits, and takes what the first got.

import { createHash } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { auth, OAuthError, OAuthErrorCode, refreshAuthorization } from '@modelcontextprotocol/client';
import type { RemoteServer } from '../../config/schema.ts';
import { sentence, TroupeError } from '../../protocol/failures.ts';
import { withoutControls } from '../../telemetry/printable.ts';
import { configuredClient, signing } from './client.ts';
import { discover, httpUrlOf } from './discovery.ts';
import { type Fetch, guardedFetch } from './guarded-fetch.ts';
import { LEASE_MS, type Leases } from './lease.ts';
import { lifeOf, providerOf } from './provider.ts';
import type { Grant, Kept, Place, Vault } from './vault.ts';

export type Renewal = {
  readonly server: RemoteServer;
  readonly place: Place;
  readonly vault: Vault;
  readonly leases: Leases;
  /** Further scopes that a client's own credentials shall have. */
  readonly scope?: string | undefined;
};

const PAUSE_MS = 40;
/** The tokens or the client are no longer any good; everything else may pass. */
const FINAL: readonly string[] = [
  OAuthErrorCode.InvalidGrant,
  OAuthErrorCode.InvalidClient,
  OAuthErrorCode.UnauthorizedClient,
];

/** The grant that follows `stale`, or nothing when only a person can get one. Throws when it cannot be known now. */
export async function renew(renewal: Renewal, stale: Kept<Grant> | undefined): Promise<Kept<Grant> | undefined> {
  const { place, vault, leases } = renewal;
  const mayAsk = (found: Kept<Grant> | undefined) =>
    renewal.server.oauth.grant === 'client_credentials' || found?.value.tokens.refresh_token !== undefined;
  const deadline = performance.now() + LEASE_MS + 5_000;
  while (performance.now() < deadline) {
    const found = vault.grant(place);
    if (found && found.version !== stale?.version) return found;
    if (!mayAsk(found)) return undefined;
    const release = await leases.take(leaseOf(renewal, found?.value));
    if (release) {
      try {
        const latest = vault.grant(place); // it may have been renewed between the look and the lease
        if (latest?.version === found?.version) await ask(renewal, latest);
        return vault.grant(place);
      } finally {
        await release();
      }
    }
    await wait(PAUSE_MS + Math.random() * PAUSE_MS);
  }
  throw new TroupeError('unavailable', `server ${place.server}: another process has been renewing its token for long`);
}

/** Per issuer, client and principal: servers that share a client share its refresh. An address may hold a secret. */
function leaseOf({ server, place }: Renewal, grant: Grant | undefined): string {
  const client = grant?.client.client_id ?? server.oauth.clientId;
  const about = JSON.stringify([grant?.issuer ?? server.url, client, place.principal]);
  return createHash('sha256').update(about).digest('base64url');
}

async function ask(renewal: Renewal, found: Kept<Grant> | undefined): Promise<void> {
  const { server, place, vault } = renewal;
  const fetchFn = guardedFetch(httpUrlOf(server.url));
  try {
    if (server.oauth.grant === 'client_credentials') await obtain(renewal, fetchFn);
    else if (found) await vault.saveGrant(place, await refreshed(server, found.value, fetchFn));
  } catch (error) {
    const isFinal = error instanceof OAuthError && FINAL.includes(error.code);
    if (!isFinal) throw new TroupeError('unavailable', `server ${server.name}: no new token: ${reasonOf(error)}`);
    if (found) await vault.dropGrant(place, found);
  }
}

async function refreshed({ oauth }: RemoteServer, grant: Grant, fetchFn: Fetch): Promise<Grant> {
  const preset = configuredClient(oauth);
  const client = preset?.client_id === grant.client.client_id ? preset : grant.client; // its secret may have changed
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

/** A client's own credentials are good for as many tokens as it likes. */
async function obtain({ server, place, vault, scope }: Renewal, fetchFn: Fetch): Promise<void> {
  const challenge = vault.challenge(place) ?? {};
  const discovery = await discover(server, challenge, fetchFn);
  const wanted = scope ?? server.oauth.scopes?.join(' ') ?? challenge.scope;
  const provider = providerOf({ server, place, vault, discovery, scope: wanted });
  await auth(provider, { serverUrl: httpUrlOf(server.url), fetchFn, ...(wanted && { scope: wanted }) });
}

/** An authorization server's own words may repeat what it was sent, so only its code is passed on. */
export function reasonOf(error: unknown): string {
  if (error instanceof OAuthError) return `the authorization server said ${error.code.slice(0, 60)}`;
  return withoutControls(sentence(error).replace(/\s+/g, ' ').slice(0, 300));
}
