// The port by which requests to a remote server get their credentials. Without OAuth these are the headers of the configuration.

import type { IncomingHttpHeaders } from 'node:http';
import type { RemoteServer } from '../../config/schema.ts';

export type Authorizer = {
  headers(): Promise<Record<string, string>>;
  /** A 401 or 403 came: true = try once more with new headers, false = a person must log in. */
  challenged(response: { status: number; headers: Record<string, string | string[] | undefined> }): Promise<boolean>;
};

export const staticAuthorizer = ({ headers }: RemoteServer): Authorizer => ({
  headers: async () => headers,
  challenged: async () => false,
});

/** A bare 403 refuses one request for good; with `WWW-Authenticate` it asks for other credentials. */
export const isChallenge = (status: number, headers: IncomingHttpHeaders): boolean =>
  status === 401 || (status === 403 && headers['www-authenticate'] !== undefined);
