// `x-troupe.oauth` of a remote server: how the daemon proves to it who is calling. Most of it is found in the server's own
// metadata; these settings are for clients that were registered beforehand, and for machines.

import { z } from 'zod';
import { isLoopback, urlOf } from './addresses.ts';
import { word } from './units.ts';

const ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA'] as const;

export const oauthSchema = z
  .strictObject({
    /** `authorization_code`: a person logs in with `troupe login`. `client_credentials`: the client itself is the principal. */
    grant: z.enum(['authorization_code', 'client_credentials']).prefault('authorization_code'),
    clientId: word.exactOptional(),
    clientSecret: word.exactOptional(),
    /** PEM of the key that signs the client's assertions (private_key_jwt). */
    privateKey: word.regex(/-----BEGIN [A-Z ]*PRIVATE KEY-----/, 'must be a private key in PEM form').exactOptional(),
    /** Relative to the configuration file. */
    privateKeyFile: word.exactOptional(),
    algorithm: z.enum(ALGORITHMS).exactOptional(),
    scopes: z
      .array(z.string().regex(/^[\x21\x23-\x5b\x5d-\x7e]+$/, 'must be one scope, without spaces or quotes'))
      .exactOptional(),
    /** The https URL of our client-id metadata document. */
    clientMetadataUrl: word
      .refine(isDocument, 'must be an https address with a path, such as "https://example.com/client.json"')
      .exactOptional(),
    /** The only authorization server to talk to. */
    issuer: word.refine(isIssuer, 'must be an https address, such as "https://login.example.com"').exactOptional(),
    /** The port of the loopback callback; 0 picks one. */
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

/** Of a key in a file, `privateKey` is what the file held. */
export type OAuthSettings = Readonly<Omit<z.output<typeof oauthSchema>, 'privateKeyFile'>>;

type Credentials = { grant: string; clientSecret?: string; privateKey?: string; privateKeyFile?: string };

function hasProof({ grant, clientSecret, privateKey, privateKeyFile }: Credentials): boolean {
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
