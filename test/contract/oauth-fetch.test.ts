// Where a stranger's metadata cannot lead us: the addresses that only this machine or its network can reach, by number, by
// name, by redirect, and by a DNS that changes its mind.

import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { discoverAuthorizationServerMetadata } from '@modelcontextprotocol/client';
import { describe, expect, it } from 'vitest';
import { reachOf } from '../../src/config/addresses.ts';
import { guardedFetch, type Lookup } from '../../src/servers/oauth/guarded-fetch.ts';

/** A DNS of our own: each name has these addresses, in this order of asking. */
function dns(...answers: string[][]): Lookup {
  let asked = 0;
  const lookup = (_: string, _options: object, done: (error: null, found: object[]) => void) => {
    const found = answers[Math.min(asked++, answers.length - 1)] ?? [];
    done(
      null,
      found.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
    );
  };
  return lookup as unknown as Lookup;
}
const PUBLIC = 'https://8.8.8.8/mcp';

async function web(listener: RequestListener) {
  const http = createServer(listener);
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  const { port } = http.address() as AddressInfo;
  const close = async () => {
    http.closeAllConnections();
    await new Promise((resolve) => http.close(resolve));
  };
  return { port, url: `http://127.0.0.1:${port}`, [Symbol.asyncDispose]: close };
}

it.each([
  ['8.8.8.8', 'public'],
  ['2606:4700::1111', 'public'],
  ['::ffff:8.8.8.8', 'public'],
  ['127.0.0.1', 'loopback'],
  ['127.255.0.3', 'loopback'],
  ['::1', 'loopback'],
  ['::ffff:127.0.0.1', 'loopback'],
  ['169.254.169.254', 'link-local'],
  ['::ffff:169.254.169.254', 'link-local'],
  ['fe80::1%eth0', 'link-local'],
  ['10.1.2.3', 'private'],
  ['172.31.0.1', 'private'],
  ['192.168.1.1', 'private'],
  ['100.64.0.1', 'private'],
  ['0.0.0.0', 'reserved'],
  ['255.255.255.255', 'reserved'],
  ['224.0.0.1', 'reserved'],
  ['fd00::1', 'private'],
  ['64:ff9b::a00:1', 'reserved'],
  ['2002:a00:1::', 'reserved'],
  ['::', 'reserved'],
  ['not an address', 'reserved'],
])('%s is %s', (address, reach) => expect(reachOf(address)).toBe(reach));

describe('for a server that is out in the internet', () => {
  it.each([
    ['https://127.0.0.1/', /is loopback/],
    ['https://[::1]/', /is loopback/],
    ['https://2130706433/', /is loopback/],
    ['https://0x7f.1/', /is loopback/],
    ['https://169.254.169.254/latest/meta-data/', /is link-local/],
    ['https://10.0.0.1/', /is private/],
    ['https://[fd00::1]/', /is private/],
    ['https://[::ffff:10.0.0.1]/', /is private/],
    ['http://8.8.8.8/', /only https/],
    ['http://auth.example/', /only https/],
    ['http://127.0.0.1:1/', /is loopback/],
    ['http://localhost:8443/', /which is loopback/],
    ['https://localhost:8443/', /which is loopback/],
    ['file:///etc/passwd', /only https/],
    ['ftp://8.8.8.8/', /only https/],
  ])('refuses %s', async (url, sentence) => {
    await expect(guardedFetch(PUBLIC)(url)).rejects.toThrow(sentence);
  });

  it('refuses a name if only one of its addresses is private', async () => {
    const fetch = guardedFetch(PUBLIC, { lookup: dns(['8.8.8.8', '10.0.0.1']) });
    await expect(fetch('https://auth.example/')).rejects.toThrow('auth.example is 10.0.0.1, which is private');
  });

  it('judges the address it connects to, not the one it was told before', async () => {
    await using site = await web((_, response) => response.end('inside'));
    const fetch = guardedFetch('https://mcp.example/', { lookup: dns(['8.8.8.8'], ['127.0.0.1']) });
    await expect(fetch(`https://auth.example:${site.port}/`)).rejects.toThrow(/which is loopback/);
  });

  it('takes a server for public that has one public address among others', async () => {
    const fetch = guardedFetch('https://mcp.example/', { lookup: dns(['10.0.0.1', '8.8.8.8'], ['10.0.0.2']) });
    await expect(fetch('https://auth.example/')).rejects.toThrow(/which is private/);
  });
});

describe('for a server on this machine', () => {
  it('goes to this machine, in plain http too, but not to the link, and not in http beyond', async () => {
    await using site = await web((_, response) => response.end('{}'));
    const fetch = guardedFetch(`${site.url}/mcp`);
    expect(await (await fetch(`${site.url}/x`)).text()).toBe('{}');
    expect((await fetch(`http://localhost:${site.port}/x`)).status).toBe(200);
    await expect(fetch('https://169.254.169.254/')).rejects.toThrow(/is link-local/);
    await expect(fetch('http://10.0.0.1/')).rejects.toThrow(/only https/);
    const lying = guardedFetch(`${site.url}/mcp`, { lookup: dns(['10.0.0.1']) });
    await expect(lying('http://localhost:8443/')).rejects.toThrow(/which is private/);
  });

  it('follows a redirect within the origin, and hands any other back', async () => {
    await using other = await web((_, response) => response.end('{"stolen":true}'));
    const asked: string[] = [];
    await using site = await web(({ url = '' }, response) => {
      asked.push(url);
      const to = url.endsWith('oauth-authorization-server') ? '/moved' : `${other.url}/`;
      response.writeHead(302, { location: to }).end();
    });
    const fetchFn = guardedFetch(`${site.url}/mcp`);
    expect(await discoverAuthorizationServerMetadata(site.url, { fetchFn })).toBeUndefined();
    expect(asked).toContain('/moved');
  });

  it('gives up on an answer that is too long, or too slow', async () => {
    await using site = await web(({ url }, response) => {
      if (url === '/long') response.end(Buffer.alloc(5_000));
    });
    const fetch = guardedFetch(`${site.url}/mcp`, { maxBytes: 4_000, timeoutMs: 300 });
    await expect(fetch(`${site.url}/long`)).rejects.toThrow(/longer than 4000 bytes/);
    await expect(fetch(`${site.url}/slow?secret=1`)).rejects.toThrow(/\/slow cannot be asked: .*time/i);
  });
});
