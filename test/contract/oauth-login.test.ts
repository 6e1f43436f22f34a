// A login against a real authorization server: discovery, registration, PKCE, the loopback callback, the kept grant; and
// every way it can end without one.

import { readdirSync, readFileSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { OAuthSettings } from '../../src/config/schema.ts';
import { type Authority, type AuthorityOptions, authority, browse, resource } from '../support/authorization.ts';
import { freePort } from '../support/nats.ts';
import { oauthClient, remote, request } from '../support/oauth.ts';

const CALLBACK = 'http://127.0.0.1:9/callback';
let issuer: Authority;
let mcp: Awaited<ReturnType<typeof resource>>;

beforeAll(async () => {
  const clients = [
    {
      ...{ client_id: 'known', token_endpoint_auth_method: 'client_secret_post', client_secret: 'a-secret-of-ours' },
      ...{
        redirect_uris: [CALLBACK],
        application_type: 'native',
        grant_types: ['authorization_code', 'refresh_token'],
      },
    },
  ];
  issuer = await authority({ clients });
  mcp = await resource({ authority: issuer });
});
afterAll(async () => {
  await mcp[Symbol.asyncDispose]();
  await issuer[Symbol.asyncDispose]();
});

/** A client that was turned away once, and the login it has begun. */
async function stage(oauth: Partial<OAuthSettings> = {}, loginMs = 20_000, url = mcp.url) {
  const client = await oauthClient({ loginMs });
  const server = remote(url, oauth);
  const authorizer = client.authorizer(server);
  expect(await request(url, authorizer)).toBe('login');
  const begin = async () => {
    const begun = await client.login(server, '_');
    if (!begun) throw new Error('no login was needed');
    return { ...begun, asked: Object.fromEntries(new URL(begun.url).searchParams), done: client.outcome(begun.id) };
  };
  return { ...client, client, server, authorizer, begin };
}

it('logs a person in, and the server lets us in from then on', async () => {
  await using all = await stage();
  const { url, done, asked } = await all.begin();
  expect(asked).toMatchObject({
    ...{ resource: mcp.url, code_challenge_method: 'S256', scope: 'mcp:read offline_access', response_type: 'code' },
    redirect_uri: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/callback$/),
  });
  const page = await browse(url);
  expect([page.status, page.text]).toEqual([200, expect.stringContaining('You are logged in')]);
  expect(page.text).not.toContain('<script');
  await done;
  expect(await request(mcp.url, all.authorizer)).toBe(200);
  expect(await all.authorizer.headers()).toMatchObject({
    ...{ 'x-team': 'one', authorization: expect.stringMatching(/^Bearer \S+$/) },
  });
  expect(issuer.registered.at(-1)).toMatchObject({ application_type: 'native', token_endpoint_auth_method: 'none' });
  expect(await request(mcp.url, all.client.authorizer(all.server, 'alice'))).toBe('login');
});

it('keeps no token in a form that anybody could read', async () => {
  await using all = await stage();
  const { url, done } = await all.begin();
  await browse(url);
  await done;
  const token = String((await all.authorizer.headers()).authorization).slice('Bearer '.length);
  const folder = join(all.path, 'database');
  const bytes = readdirSync(folder).map((name) => readFileSync(join(folder, name)));
  expect(bytes.some((each) => each.includes('credentials_place'))).toBe(true);
  expect(bytes.some((each) => each.includes(token) || each.includes('refresh_token'))).toBe(false);
  const key = statSync(join(all.path, 'seal.key'));
  expect([key.size, key.mode & 0o777]).toEqual([32, 0o600]);
});

it('registers once, and again only where its port is taken', async () => {
  await using all = await stage();
  const before = issuer.registered.length;
  const first = await all.begin();
  await browse(first.url);
  await first.done;
  const second = await all.begin();
  expect([second.asked.client_id, second.asked.redirect_uri]).toEqual([
    first.asked.client_id,
    first.asked.redirect_uri,
  ]);
  await using neighbour = await oauthClient({ path: all.path });
  const elsewhere = await neighbour.login(all.server, '_');
  expect(new URL(elsewhere!.url).searchParams.get('redirect_uri')).not.toBe(first.asked.redirect_uri);
  expect(issuer.registered.length - before).toBe(2);
});

it('lets a second login at the same server take the place of the first', async () => {
  await using all = await stage();
  const [first, second] = [await all.begin(), await all.begin()];
  await expect(first.done).rejects.toThrow('another login at guarded was begun');
  await browse(second.url);
  await second.done;
});

it('uses the client of the configuration, with its secret, and its port', async () => {
  const port = await freePort();
  await using all = await stage({ clientId: 'known', clientSecret: 'a-secret-of-ours', redirectPort: port });
  const before = [issuer.registered.length, issuer.granted.length];
  const { url, done, asked } = await all.begin();
  expect(asked).toMatchObject({ client_id: 'known', redirect_uri: `http://127.0.0.1:${port}/callback` });
  await browse(url);
  await done;
  expect(issuer.registered.length).toBe(before[0]);
  expect(issuer.granted.slice(before[1])).toEqual(['authorization_code 200']);
  expect(await request(mcp.url, all.authorizer)).toBe(200);
});

const changed: [string, AuthorityOptions['metadata'], Partial<OAuthSettings>, RegExp][] = [
  [
    'that offers PKCE without S256',
    (all) => Object.assign(all, { code_challenge_methods_supported: ['plain'] }),
    {},
    /PKCE with S256/,
  ],
  [
    'that does not say that it offers PKCE',
    (all) => Reflect.deleteProperty(all, 'code_challenge_methods_supported'),
    {},
    /PKCE with S256/,
  ],
  [
    'whose metadata are of another issuer',
    (all) => Object.assign(all, { issuer: 'https://other.example' }),
    {},
    /cannot be found/,
  ],
  ['that lives elsewhere than the configuration says', undefined, { issuer: 'http://127.0.0.1:9' }, /cannot be found/],
];
it.each(changed)('refuses an authorization server %s', async (_, metadata, oauth, sentence) => {
  await using other = await authority(metadata ? { metadata } : {});
  await using guarded = await resource({ authority: other });
  await using all = await stage(oauth, 20_000, guarded.url);
  await expect(all.begin()).rejects.toThrow(sentence);
  expect(other.registered).toEqual([]);
});

it('is known by its metadata document where the authorization server takes one', async () => {
  const metadata = (all: Record<string, unknown>) =>
    Object.assign(all, { client_id_metadata_document_supported: true });
  await using other = await authority({ metadata });
  await using guarded = await resource({ authority: other });
  const document = 'https://example.com/troupe.json';
  await using all = await stage({ clientMetadataUrl: document }, 20_000, guarded.url);
  expect((await all.begin()).asked.client_id).toBe(document);
  expect(other.registered).toEqual([]);
});

it('names the resource also where it has no metadata', async () => {
  await using bare = await resource({ authority: issuer, hasMetadata: false });
  await using all = await stage({ issuer: issuer.issuer }, 20_000, bare.url);
  const { url, asked, done } = await all.begin();
  expect(asked.resource).toBe(bare.url);
  await browse(url);
  await done;
  expect(await request(bare.url, all.authorizer)).toBe(200);
});

it('says that the login was denied', async () => {
  await using strict = await authority({ denies: true });
  await using guarded = await resource({ authority: strict });
  await using all = await stage({}, 20_000, guarded.url);
  const { url, done } = await all.begin();
  expect(await browse(url)).toMatchObject({ status: 400, text: expect.stringContaining('was denied') });
  await expect(done).rejects.toThrow('the login at guarded was denied');
});

it('says that nobody came in time, and closes its door', async () => {
  await using all = await stage({}, 50);
  const { asked, done } = await all.begin();
  await expect(done).rejects.toThrow(/nobody logged in to guarded within 0 s/);
  await expect(fetch(`${asked.redirect_uri}?code=x&state=${asked.state}`)).rejects.toThrow();
});

it.each([
  ['a wrong state', () => 'code=x&state=guessed', /wrong state/],
  ['no state', () => 'code=x', /wrong state/],
  [
    'another issuer',
    (state: string) => `code=x&state=${state}&iss=https://evil.example`,
    /another authorization server/,
  ],
  ['no issuer where one is promised', (state: string) => `code=x&state=${state}`, /another authorization server/],
  [
    'an error of another issuer',
    (state: string) => `error=access_denied&state=${state}&iss=https://e.example`,
    /another/,
  ],
])('an answer with %s ends the login, and nothing is asked for', async (_, query, sentence) => {
  await using all = await stage();
  const before = issuer.granted.length;
  const { asked, done } = await all.begin();
  const answer = await fetch(`${asked.redirect_uri}?${query(asked.state ?? '')}`);
  expect(answer.status).toBe(400);
  await expect(done).rejects.toThrow(sentence);
  expect(issuer.granted.length).toBe(before);
  expect(await request(mcp.url, all.authorizer)).toBe('login');
});

it('takes one answer only, though it be the same', async () => {
  await using all = await stage();
  const { url, done } = await all.begin();
  const { url: callback } = await browse(url);
  await done;
  const before = issuer.granted.length;
  const again = await fetch(callback).then(
    ({ status }) => status,
    () => 'nobody there',
  );
  expect([410, 'nobody there']).toContain(again);
  expect(issuer.granted.length).toBe(before);
});

it('asks for no login where everybody is let in', async () => {
  const open = createServer((_, response) => response.writeHead(400).end());
  await new Promise<void>((resolve) => open.listen(0, '127.0.0.1', resolve));
  await using client = await oauthClient();
  const url = `http://127.0.0.1:${(open.address() as AddressInfo).port}/mcp`;
  expect(await client.login(remote(url), '_')).toBeUndefined();
  open.close();
});
