// `troupe login` and `troupe logout` as processes, on a real control socket with the daemon's own methods behind it.

import { join } from 'node:path';
import { expect, it } from 'vitest';
import { openControl } from '../../src/doors/control.ts';
import type { Ports } from '../../src/operations/operations.ts';
import { authority, browse, resource } from '../support/authorization.ts';
import { workplace } from '../support/cli.ts';
import { eventually } from '../support/eventually.ts';
import { oauthClient, remote, request } from '../support/oauth.ts';

/** A daemon as far as logins go: the servers it knows, and what it was told about them. */
async function stage(options: { denies?: boolean; loginMs?: number } = {}) {
  const issuer = await authority(options);
  const mcp = await resource({ authority: issuer });
  const place = workplace();
  const told: string[] = [];
  const config = remote(mcp.url);
  const client = await oauthClient({
    ...{ path: place.directory, ...(options.loginMs && { loginMs: options.loginMs }) },
    members: () => (told.length > 0 ? [] : [{ name: 'guarded', config, onBehalfOf: '_', state: 'needs login' }]),
    onLogin: (name) => told.push(`login.done ${name}`),
  });
  const members: Record<string, object> = {
    guarded: { name: 'guarded', onBehalfOf: '_', state: 'ready', config },
    local: { name: 'local', onBehalfOf: '_', state: 'ready', config: { transport: 'stdio', name: 'local' } },
  };
  const fleet = {
    member: (name: string) => members[name],
    tell: (name: string, { type }: { type: string }) => told.push(`${type} ${name}`),
  };
  const ports = { fleet, oauth: () => client.oauth } as unknown as Ports;
  const control = await openControl({ path: join(place.directory, 'control.sock'), ports });
  return {
    ...{ mcp, place, told, authorizer: client.authorizer(config) },
    async [Symbol.asyncDispose]() {
      await control.close();
      for (const each of [client, place, mcp, issuer]) await each[Symbol.asyncDispose]();
    },
  };
}

/** The URL it prints, as soon as it does. */
const printed = (stdout: () => string) =>
  eventually(() => {
    const [url] = /http:\/\/127\.0\.0\.1:\d+\/auth\?[^\s"]+/.exec(stdout()) ?? [];
    if (!url) throw new Error(`no URL in ${stdout()}`);
    return url;
  }, 15_000);

it('prints the URL, waits, and says that it is done; the server is told', async () => {
  await using all = await stage();
  const { stdout, done } = all.place.start('login', 'guarded', '--no-browser');
  await browse(await printed(stdout));
  expect(await done).toMatchObject({ code: 0, stdout: expect.stringContaining('You are logged in to guarded.') });
  await eventually(() => expect(all.told).toEqual(['login.done guarded']));
  expect(await request(all.mcp.url, all.authorizer)).toBe(200);
  expect(await all.place.run('logout', 'guarded')).toMatchObject({
    code: 0,
    stdout: 'You are logged out of guarded.\n',
  });
  expect(all.told).toContain('restart guarded');
  expect(await all.place.run('logout', 'guarded')).toMatchObject({ stdout: 'You were not logged in to guarded.\n' });
});

it('for programs it prints the URL and the outcome, a line each', async () => {
  await using all = await stage();
  const { stdout, done } = all.place.start('login', 'guarded', '--json', '--no-browser');
  const url = await printed(stdout);
  await browse(url);
  const lines = (await done).stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(lines).toEqual([
    { server: 'guarded', url },
    { server: 'guarded', outcome: 'done' },
  ]);
});

it.each([
  ['it was denied', { denies: true }, browse, 3, 'troupe: the login at guarded was denied\n'],
  [
    'its state is wrong',
    {},
    wrongState,
    3,
    /^troupe: the answer to the login at guarded had a wrong state; .*again\n$/,
  ],
  ['nobody came', { loginMs: 1 }, async () => {}, 1, /^troupe: nobody logged in to guarded within 0 s; .*again\n$/],
] as const)('says in one sentence that %s', async (_, options, act, code, sentence) => {
  await using all = await stage(options);
  const { stdout, done } = all.place.start('login', 'guarded', '--no-browser');
  await act(await printed(stdout));
  const ended = await done;
  expect(ended.code).toBe(code);
  if (typeof sentence === 'string') expect(ended.stderr).toBe(sentence);
  else expect(ended.stderr).toMatch(sentence);
  expect(all.told).toEqual([]);
});

it('says that there is no such server, and which needs no login', async () => {
  await using all = await stage();
  expect(await all.place.run('login', 'nobody')).toMatchObject({
    ...{ code: 1, stderr: 'troupe: there is no server nobody; troupe ps lists them\n' },
  });
  expect(await all.place.run('login', 'local')).toMatchObject({
    ...{ code: 0, stdout: 'server local is a process of this machine and needs no login\n' },
  });
});

async function wrongState(url: string): Promise<void> {
  const redirect = new URL(url).searchParams.get('redirect_uri');
  await fetch(`${redirect}?code=x&state=guessed`);
}
