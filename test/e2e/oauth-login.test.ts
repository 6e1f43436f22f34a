// A server that lets nobody in without a login, in a real daemon: it says so, a person logs in, and it serves; also after
// the daemon was killed, until somebody logs out.

import { createInterface } from 'node:readline';
import { execa } from 'execa';
import { expect, it } from 'vitest';
import { authority, browse, resource } from '../support/authorization.ts';
import { type Daemon, daemon, MAIN } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';

/** What a person does: reads the URL, opens it, and waits for the word. */
async function login({ env }: Daemon, server: string): Promise<{ exitCode?: number; outcome: string }> {
  const words = [MAIN, 'login', server, '--json', '--no-browser'];
  const child = execa(process.execPath, words, { env, extendEnv: false, reject: false, timeout: 30_000 });
  const lines = createInterface({ input: child.stdout });
  const seen: string[] = [];
  for await (const line of lines) {
    seen.push(line);
    const { url } = JSON.parse(line);
    if (url) expect((await browse(url)).status).toBe(200);
  }
  const { exitCode } = await child;
  return { ...(exitCode !== undefined && { exitCode }), outcome: JSON.parse(seen.at(-1) ?? '{}').outcome };
}

it('needs a login, says so to everybody, serves after it, remembers it, and forgets it when told', async () => {
  await using issuer = await authority();
  await using mcp = await resource({ authority: issuer });
  await using d = await daemon({ servers: { guarded: { type: 'http', url: mcp.url } } });

  const { lastError } = await d.until('guarded', 'needs login');
  expect(lastError).toMatch(/HTTP 401; run troupe login guarded$/);
  const refused = await d.request('troupe.call.guarded.hello', {});
  expect(refused).toMatchObject({ code: 503, error: expect.stringMatching(/needs login.*troupe login guarded/) });

  expect(await login(d, 'guarded')).toEqual({ exitCode: 0, outcome: 'done' });
  await d.until('guarded', 'ready');
  const answer = await d.request('troupe.call.guarded.hello', {});
  expect(answer.data).toEqual({ content: [{ type: 'text', text: 'hello' }] });

  await d.kill();
  await d.start();
  await d.until('guarded', 'ready');
  expect(issuer.registered).toHaveLength(1);
  expect(await d.log()).not.toMatch(/Bearer|access_token|refresh_token/);

  expect((await d.cli('logout', 'guarded')).stdout).toBe('You are logged out of guarded.');
  await d.until('guarded', 'needs login');
});

it('needs a login also where only what comes after the handshake does, and then reads its lists', async () => {
  await using issuer = await authority();
  await using mcp = await resource({ authority: issuer, open: ['initialize', 'notifications/initialized'] });
  await using d = await daemon({ servers: { guarded: { type: 'http', url: mcp.url } } });
  await d.until('guarded', 'needs login');
  expect(await login(d, 'guarded')).toEqual({ exitCode: 0, outcome: 'done' });
  await d.until('guarded', 'ready');
  await eventually(async () => expect((await d.server('guarded')).tools).toBe(1));
});
