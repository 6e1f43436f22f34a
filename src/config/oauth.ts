// `x-troupe.oauth` of a remote server: how we prove who we are to it. Nearly all of it may be left to the server's own
// metadata; what is written here is for clients that were registered beforehand, and for machines.

import { z } from 'zod';
import { isLoopback, urlOf } from './addresses.ts';
import { word } from './units.ts';

const ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA'] as const;

export const oauthSchema = z
  .strictObject({
    grant: z.enum(['authorization_code', 'client_credentials']).prefault('authorization_code'),
    clientId: word.exactOptional(),
    clientSecret: word.exactOptional(),
    privateKey: word.regex(/-----BEGIN [A-Z ]*PRIVATE KEY-----/, 'must be a private key in PEM form').exactOptional(),
    /** Relative to the configuration file. */
    privateKeyFile: word.exactOptional(),
    algorithm: z.enum(ALGORITHMS).exactOptional(),
    scopes: z
      .array(z.string().regex(/^[\x21\x23-\x5b\x5d-\x7e]+$/, 'must be one scope, without spaces or quotes'))
      .exactOptional(),
    clientMetadataUrl: word
      .refine(isDocument, 'must be an https address with a path, such as "https://example.com/client.json"')
      .exactOptional(),
    issuer: word.refine(isIssuer, 'must be an https address, such as "https://login.example.com"').exactOptional(),
    redirectPort: z
      .int({ error: 'must be a port from 0 to 65535' })
      .min(0, 'must be a port from 0 to 65535')
      .max(65_535, 'must be a port from 0 to 65535')
      .prefault(0),
  })
  .refine(({ privateKey, privateKeyFile }) => privateKey === undefined || privateKeyFile === undefined, {
    path: ['privateKeyFile'],
    error: 'must not stand beside privateKey; remove one of them',
  })
  .refine(({ grant, clientId }) => grant !== 'client_credentials' || clientId !== undefined, {
    path: ['clientId'],
    error: 'is missing; the grant client_credentials needs it',
  })
  .refine(hasProof, {
    path: ['clientSecret'],
    error: 'is missing; the grant client_credentials needs it, or privateKey, or privateKeyFile',
  })
  .meta({ id: 'OAuthSettings' });

type Written = { grant: string; clientSecret?: string; privateKey?: string; privateKeyFile?: string };

function hasProof({ grant, clientSecret, privateKey, privateKeyFile }: Written): boolean {
  return (
    grant !== 'client_credentials' || [clientSecret, privateKey, privateKeyFile].some((each) => each !== undefined)
  );
}

function isDocument(written: string): boolean {
  const url = urlOf(written);
  return url?.protocol === 'https:' && url.pathname !== '/' && url.hash === '' && url.username === '';
}

/** Plain http is for a server on this machine only: what passes there are credentials. */
function isIssuer(written: string): boolean {
  const url = urlOf(written);
  if (url?.username !== '' || url.hash !== '' || url.search !== '') return false;
  return url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url.hostname));
}
