// How a server turns a request away: 401, or 403 for want of scope, with `WWW-Authenticate`. The header is a stranger's word, so
// it is cut and checked before it is saved.

import { extractWWWAuthenticateParams } from '@modelcontextprotocol/client';
import type { Challenge } from './vault.ts';

/** An answer's status and headers, as node:http and undici give them. */
export type Answer = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
};
export type Refusal = { readonly kind: 'unauthorized' | 'insufficient scope'; readonly challenge: Challenge };

const MAX_HEADER = 8_192;
const MAX_SCOPE = 2_000;
/** RFC 6749: printable ASCII without space, quote and backslash. */
const SCOPE = /^[\x21\x23-\x5b\x5d-\x7e]+$/;

/** Undefined for an answer that no login would change. */
export function refusalOf({ status, headers }: Answer): Refusal | undefined {
  if (status !== 401 && status !== 403) return undefined;
  const found = headers['www-authenticate'];
  const said = schemesOf(Array.isArray(found) ? found : [found ?? '']).map(paramsOf);
  const isShort = said.some(({ error }) => error === 'insufficient_scope');
  if (status === 403 && !isShort) return undefined;
  const { scope, resourceMetadataUrl } = said.find((each) => each.scope || each.resourceMetadataUrl) ?? {};
  const scopes =
    scope
      ?.slice(0, MAX_SCOPE)
      .split(/\s+/)
      .filter((each) => SCOPE.test(each)) ?? [];
  const challenge = {
    ...(resourceMetadataUrl && { resourceMetadataUrl: resourceMetadataUrl.href }),
    ...(scopes.length > 0 && { scope: scopes.join(' ') }),
  };
  return { kind: status === 403 ? 'insufficient scope' : 'unauthorized', challenge };
}

/** One header may hold several challenges, and ours need not come first. */
const schemesOf = (values: string[]): string[] =>
  values.flatMap((value) => value.slice(0, MAX_HEADER).split(/,\s*(?=[\w-]+\s+[\w-]+=)/));

const paramsOf = (header: string) =>
  extractWWWAuthenticateParams(
    new Response(null, { headers: { 'www-authenticate': header.replace(/[^\x20-\x7e]/g, '') } }),
  );
