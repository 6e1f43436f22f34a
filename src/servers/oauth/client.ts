// Who we are to an authorization server: the client of the configuration, else our metadata document where it takes one,
// else a registration of our own, which is kept per issuer.

import { createPrivateKey } from 'node:crypto';
import {
  createPrivateKeyJwtAuth,
  isStrictScopeSuperset,
  type OAuthClientInformationMixed,
  type OAuthClientMetadata,
} from '@modelcontextprotocol/client';
import type { OAuthSettings } from '../../config/schema.ts';
import type { Discovery } from './discovery.ts';

/** What we register with. A native application: its secrets, if it is given any, stay on this machine. */
export function metadataOf(settings: OAuthSettings, discovery: Discovery, redirectUrl?: string): OAuthClientMetadata {
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

/** The client that was registered by hand, at whichever issuer discovery led to: the configuration can pin that. */
export function configuredClient({ clientId, clientSecret }: OAuthSettings): OAuthClientInformationMixed | undefined {
  if (!clientId) return undefined;
  return { client_id: clientId, ...(clientSecret && { client_secret: clientSecret }) };
}

/** A registration is good for the redirect address and the scopes that it was made with, and for no others. */
export function isFor(client: OAuthClientInformationMixed, redirectUrl: string, scope: string | undefined): boolean {
  const { redirect_uris: uris = [], scope: registered } = client as Partial<OAuthClientMetadata>;
  const isNarrow = registered !== undefined && isStrictScopeSuperset(scope, registered);
  return !isNarrow && (uris.length === 0 || uris.includes(redirectUrl));
}

/** How requests for tokens are signed, when a key is configured; else the SDK chooses by what the server offers. */
export function signing({ privateKey, algorithm, clientId }: OAuthSettings, client?: OAuthClientInformationMixed) {
  const id = clientId ?? client?.client_id;
  if (!privateKey || !id) return {};
  // As a JWK, because of the forms of PEM the SDK reads only one.
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
