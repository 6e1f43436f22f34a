// Addresses of the network: whether a host is this machine, or at least in this house, and HOST:PORT as people write it.
// Only literal addresses are judged; a name that is resolved is somebody else's word.

import { isIP } from 'node:net';
import { type Reach, reachOf } from './reach.ts';

export function urlOf(written: string): URL | undefined {
  try {
    return new URL(written);
  } catch {
    return undefined; // it is no address
  }
}

/** The machine itself, by number or by a name that always means it (RFC 6761). */
export function isLoopback(host: string): boolean {
  const bare = bareOf(host);
  return bare === 'localhost' || bare.endsWith('.localhost') || isWithin(bare, ['loopback']);
}

/** An address that is not reachable from the internet. */
export const isPrivate = (host: string): boolean =>
  isLoopback(host) || isWithin(bareOf(host), ['private', 'link-local']);

export type HostAndPort = { readonly host: string; readonly port: number };

/** `HOST:PORT`, `:PORT`, `PORT` or `[::1]:PORT`; without a host it is this machine's loopback. */
export function hostAndPort(written: string): HostAndPort | undefined {
  const [, six, plain, digits] = /^(?:(?:\[([^\]]+)\]|([^:[\]\s/@]*)):)?(\d{1,5})$/.exec(written) ?? [];
  const port = Number(digits);
  if (digits === undefined || port > 65_535) return undefined;
  if (six !== undefined) return isIP(six) === 6 ? { host: six, port } : undefined;
  const host = plain || '127.0.0.1';
  const isNumeric = /^[\d.]+$/.test(host);
  return isNumeric && isIP(host) !== 4 ? undefined : { host, port };
}

/** As it stands in a URL. */
export const inUrl = (host: string): string => (isIP(host) === 6 ? `[${host}]` : host);

const bareOf = (host: string): string =>
  host
    .toLowerCase()
    .replace(/^\[|\]$/g, '')
    .replace(/\.$/, '');

const isWithin = (host: string, reaches: readonly Reach[]): boolean =>
  isIP(host) !== 0 && reaches.includes(reachOf(host));
