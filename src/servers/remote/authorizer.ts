// How a remote server is told who we are. Who cannot log in sends the headers of the configuration, and nothing else.

import type { IncomingHttpHeaders } from 'node:http';
import type { RemoteServer } from '../../config/schema.ts';

export type Authorizer = {
  headers(): Promise<Record<string, string>>;
  /** A 401 or 403 came back: true = try once more with new headers, false = a person must log in. */
  challenged(response: { status: number; headers: Record<string, string | string[] | undefined> }): Promise<boolean>;
};

export const staticAuthorizer = ({ headers }: RemoteServer): Authorizer => ({
  headers: async () => headers,
  challenged: async () => false,
});

/** A bare 403 refuses one request and asks for nothing; with a challenge it wants to know more of us. */
export const isChallenge = (status: number, headers: IncomingHttpHeaders): boolean =>
  status === 401 || (status === 403 && headers['www-authenticate'] !== undefined);
