// Addresses of the network: from where one can be reached, whether it is this machine, and HOST:PORT as people write it.
// Only literal addresses are judged: what a name resolves to is for its owner to change at any time.

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
  return bare === 'localhost' || bare.endsWith('.localhost') || isWithin(bare, ['loopback']);
}

/** An address that is not reachable from the internet. */
export const isPrivate = (host: string): boolean =>
  isLoopback(host) || isWithin(bareOf(host), ['private', 'link-local']);

type HostAndPort = { readonly host: string; readonly port: number };

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

/** A host as it stands in a URL. */
export const inUrl = (host: string): string => (isIP(host) === 6 ? `[${host}]` : host);

const bareOf = (host: string): string =>
  host
    .toLowerCase()
    .replace(/^\[|\]$/g, '')
    .replace(/\.$/, '');

const isWithin = (host: string, reaches: readonly Reach[]): boolean =>
  isIP(host) !== 0 && reaches.includes(reachOf(host));

/**
 * From where an address can be reached: everywhere, or only from this machine, its link or its network. The rest is
 * reserved, addresses that embed another one (NAT64) included.
 */
export type Reach = 'public' | 'private' | 'reserved' | 'loopback' | 'link-local';

/** Of a literal address, without the brackets of a URL. */
export function reachOf(address: string): Reach {
  const bare = address.split('%', 1)[0] ?? ''; // a zone is no part of the address
  const family = isIP(bare) === 6 ? 'ipv6' : 'ipv4';
  if (isIP(bare) === 0) return 'reserved'; // no address at all
  if (LOOPBACK.check(bare, family)) return 'loopback';
  if (LINK_LOCAL.check(bare, family)) return 'link-local';
  if (PRIVATE.check(bare, family)) return 'private';
  return RESERVED.check(bare, family) ? 'reserved' : 'public';
}

const listOf = (subnets: readonly (readonly [string, number])[]): BlockList => {
  const list = new BlockList();
  for (const [net, prefix] of subnets) list.addSubnet(net, prefix, isIP(net) === 6 ? 'ipv6' : 'ipv4');
  return list;
};

// IPv4 addresses that are written as IPv6 (::ffff:10.0.0.1) are found in the IPv4 subnets by BlockList itself.
const LOOPBACK = listOf([
  ['127.0.0.0', 8],
  ['::1', 128],
]);
/** The metadata services of clouds, which hand out the credentials of the machine, are here. */
const LINK_LOCAL = listOf([
  ['169.254.0.0', 16],
  ['fe80::', 10],
]);
const PRIVATE = listOf([
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['172.16.0.0', 12],
  ['192.168.0.0', 16],
  ['fc00::', 7],
]);
const RESERVED = listOf([
  ['0.0.0.0', 8],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
  ['::', 96],
  ['64:ff9b::', 96],
  ['64:ff9b:1::', 48],
  ['100::', 64],
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['fec0::', 10],
  ['ff00::', 8],
]);
