// From where an address can be reached: everywhere, or only from this machine, its link or its network. Whatever is neither
// is reserved: an address that embeds another one, such as NAT64, could mean anything.

import { BlockList, isIP } from 'node:net';

export type Reach = 'public' | 'private' | 'reserved' | 'loopback' | 'link-local';

/** Of a literal address, without the brackets of a URL. */
export function reachOf(address: string): Reach {
  const bare = address.split('%', 1)[0] ?? ''; // a zone is no part of the address
  const family = isIP(bare) === 6 ? 'ipv6' : 'ipv4';
  if (isIP(bare) === 0) return 'reserved'; // no address at all: nobody should go there
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
/** Where clouds keep the credentials of the machine. */
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
