// What the SDK's `auth()` asks of us, for one attempt to get a grant. Verifier and discovery belong to the attempt and end with
// it; a grant that exists is replaced only by a new one, never deleted.

import { createPrivateKey } from 'node:crypto';
import {
  createPrivateKeyJwtAuth,
  isStrictScopeSuperset,
  type OAuthClientInformationMixed,
  type OAuthClientMetadata,
  type OAuthClientProvider,
  type OAuthTokens,
  type StoredOAuthClientInformation,
} from '@modelcontextprotocol/client';
import type { OAuthSettings, RemoteServer } from '../../config/schema.ts';
import { TroupeError } from '../../protocol/failures.ts';
import { type Discovery, resourceOf } from './discovery.ts';
import type { Account, Grant, Vault } from './vault.ts';

export type Attempt = {
  readonly server: RemoteServer;
  readonly account: Account;
  readonly vault: Vault;
  readonly discovery: Discovery;
  /** The scopes that are asked for, as far as they are known before the attempt. */
  readonly scope: string | undefined;
  /** A person's login has these three; the grant `client_credentials` needs none. */
  readonly redirectUrl?: string;
  readonly state?: string;
  readonly onRedirect?: (url: URL) => void;
};

export function providerOf(attempt: Attempt): OAuthClientProvider {
  const { server, account, vault, discovery, redirectUrl } = attempt;
  const { oauth } = server;
  const { issuer, resourceMetadata } = discovery;
  const preset = configuredClient(oauth);
  let verifier: string | undefined;

  const client = (): StoredOAuthClientInformation | undefined => {
    if (preset) return { ...preset, issuer };
    const known = vault.client(account, issuer);
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
      if (!preset) await vault.saveClient(account, issuer, information);
    },
    // Every attempt asks for new tokens, so the SDK is not shown those of an existing grant.
    tokens: () => undefined,
    async saveTokens(tokens) {
      const known = client();
      if (!known) throw new TroupeError('internal', `server ${server.name}: its client was forgotten during the login`);
      await vault.saveGrant(account, grantOf(attempt, tokens, known));
    },
    redirectToAuthorization: (url) => attempt.onRedirect?.(url),
    saveCodeVerifier: (text) => {
      verifier = text;
    },
    codeVerifier: () => {
      const text = verifier;
      verifier = undefined; // valid for one code
      if (text === undefined) throw new TroupeError('internal', `server ${server.name}: its login has no verifier`);
      return text;
    },
    // Without metadata of the resource the SDK would leave `resource` out; the specification wants it always.
    ...(!resourceMetadata && { validateResourceURL: async () => new URL(resourceOf(server, discovery)) }),
    async invalidateCredentials(scope) {
      if ((scope === 'client' || scope === 'all') && !preset) await vault.dropClient(account, issuer);
    },
    ...(!redirectUrl && { prepareTokenRequest: clientCredentials }),
  };
}

function clientCredentials(scope?: string): URLSearchParams {
  return new URLSearchParams({ grant_type: 'client_credentials', ...(scope && { scope }) });
}

function grantOf(
  { server, discovery, scope, redirectUrl }: Attempt,
  tokens: OAuthTokens,
  client: StoredOAuthClientInformation,
) {
  if (tokens.token_type.toLowerCase() !== 'bearer')
    throw new TroupeError('unsupported', `server ${server.name}: its tokens are not bearer tokens`);
  const { authorizationServerMetadata, authorizationServerUrl, issuer } = discovery;
  const { issuer: _, ...own } = client;
  const grant: Grant = {
    issuer,
    authorizationServerUrl,
    client: own,
    tokens,
    ...(authorizationServerMetadata && { metadata: authorizationServerMetadata }),
    resource: resourceOf(server, discovery),
    ...lifeOf(tokens),
    ...(redirectUrl !== undefined && { loggedInAt: Date.now() }),
  };
  const granted = tokens.scope ?? scope;
  return granted ? { ...grant, scope: granted } : grant;
}

/** When the tokens were obtained and when they expire, if the server says so. */
export function lifeOf({ expires_in }: OAuthTokens): Pick<Grant, 'obtainedAt' | 'expiresAt'> {
  const obtainedAt = Date.now();
  return expires_in === undefined ? { obtainedAt } : { obtainedAt, expiresAt: obtainedAt + expires_in * 1000 };
}

// ── The client ───────────────────────────────────────────────────────────────
// Which client we are to an authorization server: that of the configuration, else our metadata document where the server takes
// one, else a registration of our own, one for each issuer.

/** The metadata of our registration: a native application, whose secrets stay on this machine. */
function metadataOf(settings: OAuthSettings, discovery: Discovery, redirectUrl?: string): OAuthClientMetadata {
  return {
    client_name: 'troupe',
    redirect_uris: redirectUrl ? [redirectUrl] : [],
    application_type: 'native',
    grant_types: redirectUrl ? ['authorization_code', 'refresh_token'] : ['client_credentials'],
    response_types: redirectUrl ? ['code'] : [],
    token_endpoint_auth_method: authMethodOf(settings, discovery),
    ...(settings.scopes && { scope: settings.scopes.join(' ') }),
  };
}

function authMethodOf({ privateKey }: OAuthSettings, { authorizationServerMetadata: metadata }: Discovery): string {
  if (privateKey) return 'private_key_jwt';
  const offered = metadata?.token_endpoint_auth_methods_supported;
  const known = ['none', 'client_secret_basic', 'client_secret_post'].find((method) => offered?.includes(method));
  return known ?? (offered ? 'client_secret_basic' : 'none');
}

/** The client of the configuration is used at whichever issuer discovery leads to; the configuration can pin the issuer. */
export function configuredClient({ clientId, clientSecret }: OAuthSettings): OAuthClientInformationMixed | undefined {
  if (!clientId) return undefined;
  return { client_id: clientId, ...(clientSecret && { client_secret: clientSecret }) };
}

/** A registration is valid for the redirect address and the scopes that it was made with, and for no others. */
function isFor(client: OAuthClientInformationMixed, redirectUrl: string, scope: string | undefined): boolean {
  const { redirect_uris: uris = [], scope: registered } = client as Partial<OAuthClientMetadata>;
  const isNarrow = registered !== undefined && isStrictScopeSuperset(scope, registered);
  return !isNarrow && (uris.length === 0 || uris.includes(redirectUrl));
}

/** How requests for tokens are signed, when a key is configured; else the SDK chooses by what the server offers. */
export function signing({ privateKey, algorithm, clientId }: OAuthSettings, client?: OAuthClientInformationMixed) {
  const id = clientId ?? client?.client_id;
  if (!privateKey || !id) return {};
  // As a JWK, because the SDK reads only one form of PEM.
  const key = createPrivateKey(privateKey).export({ format: 'jwk' }) as Record<string, unknown>;
  const alg = algorithm ?? ALGORITHMS[String(key.crv ?? key.kty)] ?? 'RS256';
  return { addClientAuthentication: createPrivateKeyJwtAuth({ issuer: id, subject: id, privateKey: key, alg }) };
}

const ALGORITHMS: Record<string, string> = {
  RSA: 'RS256',
  'P-256': 'ES256',
  'P-384': 'ES384',
  'P-521': 'ES512',
  Ed25519: 'EdDSA',
};
