// Tokens that end: one refresh whoever needs it, in however many processes; what a refused refresh leaves; more scope; and
// clients that are their own principal.

import { type ChildProcess, spawn } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect, it, vi } from 'vitest';
import type { OAuthOptions } from '../../src/servers/oauth/oauth.ts';
import { renew } from '../../src/servers/oauth/renewal.ts';
import { createVault, type Grant } from '../../src/servers/oauth/vault.ts';
import { createLeases } from '../../src/store/lease.ts';
import { authority, browse, resource } from '../support/authorization.ts';
import { eventually } from '../support/eventually.ts';
import { oauthClient, remote, request } from '../support/oauth.ts';

type Server = ReturnType<OAuthOptions['members']>[number];

const CALLER = fileURLToPath(new URL('../support/oauth-caller.mjs', import.meta.url));

/** Somebody has logged in, with tokens of that many seconds. */
async function stage(accessTtl: number, options: Partial<OAuthOptions> = {}) {
  const issuer = await authority({ accessTtl });
  const mcp = await resource({ authority: issuer });
  const client = await oauthClient(options);
  const server = remote(mcp.url);
  const authorizer = client.authorizer(server);
  const login = async () => {
    expect(await request(mcp.url, authorizer)).toBe('login');
    const begun = await client.login(server, '_');
    await browse(begun!.url);
    await client.outcome(begun!.id);
    return new URL(begun!.url).searchParams;
  };
  await login();
  const account = { server: 'guarded', resource: mcp.url, principal: '_' };
  const vault = createVault(client.store, client.path);
  const token = async () => String((await authorizer.headers()).authorization).slice(7);
  return {
    ...{ issuer, mcp, client, server, authorizer, login, token, account, vault },
    async [Symbol.asyncDispose]() {
      for (const each of [client, mcp, issuer]) await each[Symbol.asyncDispose]();
    },
  };
}
const refreshes = (granted: string[]) => granted.filter((each) => each.startsWith('refresh_token'));

it('four calls in each of two processes after the end of a token make one refresh', async () => {
  await using all = await stage(60);
  await using one = caller(all.client.path, JSON.stringify(all.server));
  await using two = caller(all.client.path, JSON.stringify(all.server));
  const callers = [one, two];
  await Promise.all(callers.map(({ line }) => line()));
  const { value } = all.vault.grant(all.account)!;
  await all.vault.saveGrant(all.account, { ...value, expiresAt: Date.now() - 1 });
  all.mcp.revoked.add(value.tokens.access_token);
  for (const { child } of callers) child.stdin?.write('go\n');
  const statuses = await Promise.all(callers.map(async ({ line }) => JSON.parse(await line())));
  expect(statuses.flat().filter((each) => each === 'login' || each === 401)).toEqual([]);
  expect(statuses.flat()).toHaveLength(8);
  expect(refreshes(all.issuer.granted)).toEqual(['refresh_token 200']);
});

it('renews before the end, so that no request is turned away', async () => {
  await using all = await stage(2);
  const first = await all.token();
  await eventually(async () => (await all.token()) !== first);
  expect(refreshes(all.issuer.granted)).toEqual(['refresh_token 200']);
  expect(await request(all.mcp.url, all.authorizer)).toBe(200);
});

it('renews a token that the server refuses before its time, once for all who hold it', async () => {
  await using all = await stage(60);
  const first = await all.token();
  all.mcp.revoked.add(first);
  const neighbour = all.client.authorizer(all.server);
  const requests = [1, 2, 3, 4].map((n) => request(all.mcp.url, n % 2 ? all.authorizer : neighbour));
  expect(await Promise.all(requests)).toEqual([200, 200, 200, 200]);
  expect(refreshes(all.issuer.granted)).toEqual(['refresh_token 200']);
});

it('takes a late refusal for one of the token before', async () => {
  await using all = await stage(60);
  const neighbour = all.client.authorizer(all.server);
  const { authorization = '' } = await neighbour.headers();
  all.mcp.revoked.add(authorization.slice('Bearer '.length));
  await all.authorizer.headers();
  expect(await request(all.mcp.url, all.authorizer)).toBe(200);
  for (const each of [neighbour, all.authorizer])
    expect(await each.challenged({ status: 401, headers: {} })).toBe(true);
  expect(refreshes(all.issuer.granted)).toEqual(['refresh_token 200']);
});

it('looks again once it holds the lease, and asks for nothing that is there already', async () => {
  await using all = await stage(60);
  const { vault, account, server } = all;
  const stale = vault.grant(account)!;
  const leases = {
    async take() {
      const tokens = { access_token: 'from another', token_type: 'Bearer' };
      await vault.saveGrant(account, { ...stale.value, tokens });
      return async () => {};
    },
  };
  const renewed = await renew({ server, account, vault, leases }, stale);
  expect(renewed?.value.tokens.access_token).toBe('from another');
  expect(refreshes(all.issuer.granted)).toEqual([]);
});

it('needs a person again when the refresh is refused, and keeps nothing of the old grant', async () => {
  await using all = await stage(60);
  const { vault, account } = all;
  const { value } = vault.grant(account)!;
  await vault.saveGrant(account, { ...value, tokens: { ...value.tokens, refresh_token: 'used up' } });
  all.mcp.revoked.add(value.tokens.access_token);
  expect(await request(all.mcp.url, all.authorizer)).toBe('login');
  expect(vault.grant(account)).toBeUndefined();
  await all.login();
  expect(await request(all.mcp.url, all.authorizer)).toBe(200);
});

it('uses a token to its end when it cannot be renewed, and says so afterwards', async () => {
  await using all = await stage(60);
  const { vault, account } = all;
  const { value } = vault.grant(account)!;
  const { metadata: _, ...known } = value;
  const astray: Grant = { ...known, authorizationServerUrl: 'http://127.0.0.1:9/' };
  await vault.saveGrant(account, { ...astray, expiresAt: Date.now() + 3_000 });
  expect(await all.token()).toBe(value.tokens.access_token);
  await vault.saveGrant(account, { ...astray, expiresAt: Date.now() - 1 });
  await expect(all.token()).rejects.toThrow(
    /server guarded: no new token: http:\/\/127\.0\.0\.1:9\/token cannot be asked/,
  );
  expect(vault.grant(account)).toBeDefined();
});

it('asks a person for more scope, on top of what was granted', async () => {
  await using all = await stage(60);
  expect(await request(all.mcp.url, all.authorizer)).toBe(200);
  all.mcp.needed.scope = 'mcp:write';
  const asked = await all.login();
  expect(asked.get('scope')?.split(' ')).toEqual(expect.arrayContaining(['mcp:read', 'mcp:write']));
  expect(await request(all.mcp.url, all.authorizer)).toBe(200);
});

it('takes no token for a login that a person has not made: what needs one waits for one', async () => {
  const told: string[] = [];
  const waiting: Server[] = [];
  await using all = await stage(60, { members: () => waiting, onLogin: (name) => told.push(name) });
  all.mcp.needed.scope = 'mcp:write';
  expect(await request(all.mcp.url, all.authorizer)).toBe('login');
  waiting.push({ name: 'guarded', config: all.server, onBehalfOf: '_', state: 'needs login' });
  const { value } = all.vault.grant(all.account)!;
  await all.vault.saveGrant(all.account, { ...value, obtainedAt: Date.now() }); // as a renewal does
  await looked();
  expect(told).toEqual([]);
  await all.login();
  expect(told).toContain('guarded');
});

/** The time within which a look for logins that were made elsewhere must have come. */
async function looked(): Promise<void> {
  const from = performance.now();
  await eventually(() => expect(performance.now() - from).toBeGreaterThan(2_100));
}

it('forgets its grant at a logout', async () => {
  await using all = await stage(60);
  await all.client.logout(all.server, '_');
  expect(await all.authorizer.headers()).toEqual({ 'x-team': 'one' });
  expect(await request(all.mcp.url, all.authorizer)).toBe('login');
});

const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const pem = privateKey.export({ type: 'sec1', format: 'pem' }).toString();
const machine = {
  redirect_uris: [],
  response_types: [],
  grant_types: ['client_credentials'],
  scope: 'mcp:read mcp:write',
};
const jwks = { keys: [{ ...publicKey.export({ format: 'jwk' }), use: 'sig', alg: 'ES256' }] };
it.each([
  ['a secret', { clientSecret: 'a-secret-of-ours' }, { client_secret: 'a-secret-of-ours' }],
  ['a key', { privateKey: pem }, { token_endpoint_auth_method: 'private_key_jwt', jwks }],
])('a client with %s lets itself in, once for all, and gets itself more scope', async (_, proof, registered) => {
  await using issuer = await authority({ clients: [{ client_id: 'robot', ...machine, ...registered }] });
  await using mcp = await resource({ authority: issuer });
  await using client = await oauthClient();
  const server = remote(mcp.url, { grant: 'client_credentials', clientId: 'robot', ...proof });
  const authorizers = [client.authorizer(server), client.authorizer(server)];
  const all = [0, 1, 0, 1].map((n) => request(mcp.url, authorizers[n]!));
  expect(await Promise.all(all)).toEqual([200, 200, 200, 200]);
  expect(issuer.granted).toEqual(['client_credentials 200']);
  mcp.needed.scope = 'mcp:write';
  expect(await request(mcp.url, authorizers[0]!)).toBe(200);
  mcp.needed.scope = 'mcp:admin';
  for (let n = 0; n < 6; n++) await request(mcp.url, authorizers[0]!).catch(() => {}); // it is never granted
  expect(issuer.granted.length).toBeLessThanOrEqual(5);
});

it('one holder at a time: the lease of the dead is inherited, also after the machine was started anew', async () => {
  await using client = await oauthClient();
  const leases = createLeases(client.store);
  const [one, other] = await Promise.all([leases.take('a'), leases.take('a')]);
  expect([one, other].filter(Boolean)).toHaveLength(1);
  expect(await leases.take('b')).toBeDefined();
  await (one ?? other)!();
  expect(await leases.take('a')).toBeDefined();
  const now = Number(process.hrtime.bigint() / 1_000_000n);
  for (const [name, until] of [
    ['c', now - 1],
    ['d', now + 86_400_000], // from before the machine was started anew
  ] as const) {
    await client.store.commit('takeLease', [name, 'dead', until, now, now]);
    expect(await leases.take(name)).toBeDefined();
  }
});

it('a lease is no shorter because somebody set the clock', async () => {
  await using client = await oauthClient();
  const leases = createLeases(client.store);
  expect(await leases.take('a')).toBeDefined();
  for (const jump of [3_600_000, -3_600_000]) {
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + jump });
    expect(await leases.take('a')).toBeUndefined();
    vi.useRealTimers();
  }
});

it('whoever drops what it read takes nothing away that was saved since', async () => {
  await using client = await oauthClient();
  const vault = createVault(client.store, client.path);
  const account = { server: 's', resource: 'https://s.example/mcp', principal: '_' };
  const grant = (access_token: string): Grant => ({
    ...{ issuer: 'https://a.example', authorizationServerUrl: 'https://a.example', resource: account.resource },
    ...{ client: { client_id: 'c' }, tokens: { access_token, token_type: 'Bearer' }, obtainedAt: 1 },
  });
  await vault.saveGrant(account, grant('old'));
  const seen = vault.grant(account)!;
  await vault.saveGrant(account, grant('new'));
  await vault.dropGrant(account, seen);
  expect(vault.grant(account)?.value.tokens.access_token).toBe('new');
});

it('writes down no address, whose query may be a secret', async () => {
  await using client = await oauthClient();
  const vault = createVault(client.store, client.path);
  const account = { server: 's', resource: 'https://s.example/mcp?key=hush-hush', principal: '_' };
  await vault.saveChallenge(account, { scope: 'mcp:read' });
  expect(vault.challenge(account)).toEqual({ scope: 'mcp:read' });
  expect(vault.challenge({ ...account, resource: 'https://s.example/mcp?key=other' })).toBeUndefined();
  const folder = join(client.path, 'database');
  for (const name of readdirSync(folder)) expect(readFileSync(join(folder, name)).includes('hush-hush')).toBe(false);
});

it('tells of every token and secret that it saves or reads, so that none is said', async () => {
  await using client = await oauthClient();
  const account = { server: 's', resource: 'https://s.example/mcp', principal: '_' };
  const known = new Set<string>();
  const learn = (values: readonly string[]) => {
    for (const each of values) known.add(each);
  };
  const vaults = [0, 1].map(() => createVault(client.store, client.path, learn));
  await vaults[0]?.saveGrant(account, {
    ...{ issuer: 'https://a.example', authorizationServerUrl: 'https://a.example', resource: account.resource },
    client: { client_id: 'c', client_secret: 'client-hush' },
    tokens: { access_token: 'access-hush', refresh_token: 'refresh-hush', token_type: 'Bearer' },
    obtainedAt: 1,
  });
  const all = ['access-hush', 'client-hush', 'refresh-hush'];
  expect([...known].sort()).toEqual(all);
  known.clear();
  vaults[1]?.grant(account); // as another daemon finds it
  expect([...known].sort()).toEqual(all);
});

function caller(path: string, server: string) {
  const child: ChildProcess = spawn(process.execPath, [CALLER, path, server, '4'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const lines = createInterface(child.stdout!);
  const line = async (): Promise<string> => String((await once(lines, 'line'))[0]);
  const kill = async () => void child.kill('SIGKILL');
  return { child, line, [Symbol.asyncDispose]: kill };
}
