// The address of a remote server. Redirects and endpoints that the server names must be at the same origin: our credentials go
// nowhere else. People are told the host only, because a path or a query may hold a secret.

import type { RemoteServer } from '../../config/schema.ts';

export type Address = {
  readonly url: URL;
  readonly origin: string;
  /** With the query. */
  readonly path: string;
  /** The host, for people. */
  readonly where: string;
};

const PROTOCOLS: Record<RemoteServer['transport'], RegExp> = { http: /^https?:$/, sse: /^https?:$/, ws: /^wss?:$/ };

/** The address, or the sentence why the url is none. */
export function addressOf({ url: text, transport }: RemoteServer): Address | string {
  const url = parse(text);
  if (!url) return 'its url is no URL; correct it in the configuration';
  if (!PROTOCOLS[transport].test(url.protocol))
    return `its url begins with ${url.protocol}, which is not for ${transport}; correct it in the configuration`;
  if (url.username || url.password) return 'its url has a password in it; put credentials into headers';
  return { url, origin: url.origin, path: `${url.pathname}${url.search}`, where: url.host };
}

/** The path of a url that the server gave, or undefined when it is at another origin. */
export function pathWithin(address: Address, pointer: string): string | undefined {
  const url = parse(pointer, address.url);
  if (!url || url.origin !== address.origin || url.username || url.password) return undefined;
  return `${url.pathname}${url.search}`;
}

/** The host of a url that the server gave, for people. */
export const hostOf = (address: Address, pointer: string): string =>
  parse(pointer, address.url)?.host.slice(0, 100) || 'nowhere';

function parse(text: string, base?: URL): URL | undefined {
  try {
    return new URL(text, base);
  } catch {
    return undefined; // the callers say what is wrong with it
  }
}
