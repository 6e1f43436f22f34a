// Which authorization server an MCP server trusts, and whether we trust it with a login: it must offer PKCE with S256, and it
// must be the issuer of the configuration, if that names one.

import {
  discoverAuthorizationServerMetadata,
  discoverOAuthProtectedResourceMetadata,
  discoverOAuthServerInfo,
  type OAuthDiscoveryState,
} from '@modelcontextprotocol/client';
import type { RemoteServer } from '../../config/schema.ts';
import { sentence, TroupeError } from '../../protocol/failures.ts';
import type { Fetch } from './guarded-fetch.ts';
import type { Challenge } from './vault.ts';

export type Discovery = OAuthDiscoveryState & { readonly issuer: string };

export async function discover(server: RemoteServer, challenge: Challenge, fetchFn: Fetch): Promise<Discovery> {
  const serverUrl = httpUrlOf(server.url);
  const resourceMetadataUrl = challenge.resourceMetadataUrl ? new URL(challenge.resourceMetadataUrl) : undefined;
  const { issuer } = server.oauth;
  try {
    const found = issuer
      ? await pinned(issuer, serverUrl, resourceMetadataUrl, fetchFn)
      : await discoverOAuthServerInfo(serverUrl, { ...(resourceMetadataUrl && { resourceMetadataUrl }), fetchFn });
    return {
      ...found,
      ...(resourceMetadataUrl && { resourceMetadataUrl: resourceMetadataUrl.href }),
      issuer: found.authorizationServerMetadata?.issuer ?? found.authorizationServerUrl,
    };
  } catch (error) {
    throw new TroupeError('unavailable', `server ${server.name}: its authorization cannot be found: ${said(error)}`);
  }
}

/** The address at which the resource is known: a WebSocket's is that of its handshake. */
export const httpUrlOf = (url: string): string => url.replace(/^ws/i, 'http');

/** What tokens are asked for: the resource as its own metadata names it, else its address. */
export const resourceOf = ({ url }: RemoteServer, { resourceMetadata }: OAuthDiscoveryState): string =>
  resourceMetadata?.resource ?? new URL(httpUrlOf(url)).href;

async function pinned(issuer: string, serverUrl: string, resourceMetadataUrl: URL | undefined, fetchFn: Fetch) {
  const authorizationServerMetadata = await discoverAuthorizationServerMetadata(issuer, { fetchFn });
  const options = resourceMetadataUrl ? { resourceMetadataUrl } : {};
  const resourceMetadata = await discoverOAuthProtectedResourceMetadata(serverUrl, options, fetchFn).catch((error) => {
    if (error instanceof TypeError) throw error; // refused or unreachable, which is not the same as not there
    return undefined;
  });
  return {
    authorizationServerUrl: issuer,
    ...(authorizationServerMetadata && { authorizationServerMetadata }),
    ...(resourceMetadata && { resourceMetadata }),
  };
}

/** The SDK lets a server pass that does not say which methods it knows; the specification does not. */
export function assertPkce(server: string, { authorizationServerMetadata: metadata, issuer }: Discovery): void {
  if (!metadata) return; // the endpoints of 2025-03-26, which came without metadata
  if (!metadata.code_challenge_methods_supported?.includes('S256'))
    throw new TroupeError(
      'unsupported',
      `server ${server}: its authorization server ${issuer} does not offer PKCE with S256, so a login there is not safe`,
    );
}

const said = (error: unknown): string => sentence(error).replace(/\s+/g, ' ').slice(0, 300);
