// What the SDK's `auth()` asks of us, for one attempt to get a grant. The attempt keeps its verifier and its discovery to
// itself: they die with it, and a grant that exists is replaced only by a new one, never taken away.

import type { OAuthClientProvider, OAuthTokens, StoredOAuthClientInformation } from '@modelcontextprotocol/client';
import type { RemoteServer } from '../../config/schema.ts';
import { TroupeError } from '../../protocol/failures.ts';
import { configuredClient, isFor, metadataOf, signing } from './client.ts';
import { type Discovery, resourceOf } from './discovery.ts';
import type { Grant, Place, Vault } from './vault.ts';

export type Attempt = {
  readonly server: RemoteServer;
  readonly place: Place;
  readonly vault: Vault;
  readonly discovery: Discovery;
  /** The scopes that are asked for, as far as they are known before. */
  readonly scope: string | undefined;
  /** A person's login has these; a client's own credentials need none. */
  readonly redirectUrl?: string;
  readonly state?: string;
  readonly onRedirect?: (url: URL) => void;
};

export function providerOf(attempt: Attempt): OAuthClientProvider {
  const { server, place, vault, discovery, redirectUrl } = attempt;
  const { oauth } = server;
  const { issuer, resourceMetadata } = discovery;
  const preset = configuredClient(oauth);
  let verifier: string | undefined;

  const client = (): StoredOAuthClientInformation | undefined => {
    if (preset) return { ...preset, issuer };
    const known = vault.client(place, issuer);
    return known && isFor(known, redirectUrl ?? '', attempt.scope) ? { ...known, issuer } : undefined;
  };

  return {
    redirectUrl,
    clientMetadata: metadataOf(oauth, discovery, redirectUrl),
    ...(oauth.clientMetadataUrl && { clientMetadataUrl: oauth.clientMetadataUrl }),
    ...(attempt.state !== undefined && { state: () => attempt.state as string }),
    ...signing(oauth, preset),
    discoveryState: () => discovery,
    saveDiscoveryState: () => {},
    clientInformation: client,
    async saveClientInformation(information) {
      if (!preset) await vault.saveClient(place, issuer, information);
    },
    // Every attempt asks anew: what is there already is for the requests to use, and for the renewal to renew.
    tokens: () => undefined,
    async saveTokens(tokens) {
      const known = client();
      if (!known) throw new TroupeError('internal', `server ${server.name}: its client was forgotten during the login`);
      await vault.saveGrant(place, grantOf(attempt, tokens, known));
    },
    redirectToAuthorization: (url) => attempt.onRedirect?.(url),
    saveCodeVerifier: (text) => {
      verifier = text;
    },
    codeVerifier: () => {
      const text = verifier;
      verifier = undefined; // good for one code
      if (text === undefined) throw new TroupeError('internal', `server ${server.name}: its login has no verifier`);
      return text;
    },
    // Without metadata of the resource the SDK would leave `resource` out; the specification wants it always.
    ...(!resourceMetadata && { validateResourceURL: async () => new URL(resourceOf(server, discovery)) }),
    async invalidateCredentials(scope) {
      if ((scope === 'client' || scope === 'all') && !preset) await vault.dropClient(place, issuer);
    },
    ...(!redirectUrl && { prepareTokenRequest: clientCredentials }),
  };
}

function clientCredentials(scope?: string): URLSearchParams {
  return new URLSearchParams({ grant_type: 'client_credentials', ...(scope && { scope }) });
}

function grantOf({ server, discovery, scope }: Attempt, tokens: OAuthTokens, client: StoredOAuthClientInformation) {
  if (tokens.token_type.toLowerCase() !== 'bearer')
    throw new TroupeError('unsupported', `server ${server.name}: its tokens are not bearer tokens`);
  const { authorizationServerMetadata, authorizationServerUrl, issuer } = discovery;
  const { issuer: _, ...own } = client;
  const grant: Grant = {
    ...{ issuer, authorizationServerUrl, client: own, tokens },
    ...(authorizationServerMetadata && { metadata: authorizationServerMetadata }),
    resource: resourceOf(server, discovery),
    ...lifeOf(tokens),
  };
  const granted = tokens.scope ?? scope;
  return granted ? { ...grant, scope: granted } : grant;
}

/** When it was given and until when it is good, as far as the server says. */
export function lifeOf({ expires_in }: OAuthTokens): Pick<Grant, 'obtainedAt' | 'expiresAt'> {
  const obtainedAt = Date.now();
  return expires_in === undefined ? { obtainedAt } : { obtainedAt, expiresAt: obtainedAt + expires_in * 1000 };
}
