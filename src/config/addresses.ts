// Addresses of the network: whether a host is this machine, or at least in this house, and HOST:PORT as people write it.
// Only literal addresses are judged; a name that is resolved is somebody else's word.

import { BlockList, isIP } from 'node:net';

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
  return bare === 'localhost' || bare.endsWith('.localhost') || isIn(LOOPBACK, bare);
}

/** An address that is not reachable from the internet. */
export const isPrivate = (host: string): boolean => isLoopback(host) || isIn(PRIVATE, bareOf(host));

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

function isIn(list: BlockList, host: string): boolean {
  const family = isIP(host);
  return family !== 0 && list.check(host, family === 6 ? 'ipv6' : 'ipv4');
}

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet('127.0.0.0', 8);
LOOPBACK.addAddress('::1', 'ipv6');

const PRIVATE = new BlockList();
for (const [net, prefix] of [
  ['10.0.0.0', 8],
  ['172.16.0.0', 12],
  ['192.168.0.0', 16],
  ['169.254.0.0', 16],
  ['100.64.0.0', 10],
] as const)
  PRIVATE.addSubnet(net, prefix);
PRIVATE.addSubnet('fc00::', 7, 'ipv6');
PRIVATE.addSubnet('fe80::', 10, 'ipv6');
