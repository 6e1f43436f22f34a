import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { connect } from 'nats';
import { expect, test } from 'vitest';
import { natsFromEnvironment } from '../../src/bus/environment.ts';
import { natsServer } from '../support/nats.ts';
import { scratch } from '../support/scratch.ts';

const nowhere = { HOME: '/nonexistent' };

test('no choice is no choice', () => {
  expect(natsFromEnvironment(nowhere)).toBeUndefined();
  expect(natsFromEnvironment({ ...nowhere, NATS_TOKEN: 't' })).toBeUndefined();
});

test.each([
  [{ NATS_URL: 'nats://h:4222' }, ['h:4222'], {}],
  [{ NATS_URL: 'h' }, ['h'], {}],
  [{ NATS_URL: 'nats://a:1, nats://b:2,' }, ['a:1', 'b:2'], {}],
  [{ NATS_URL: 'nats://s%40cret@h:1' }, ['h:1'], { token: 's@cret' }],
  [{ NATS_URL: 'nats://me:p%3Aw@h:1,nats://i:2' }, ['h:1', 'i:2'], { user: 'me', pass: 'p:w' }],
  [{ NATS_URL: 'h:1', NATS_TOKEN: 't' }, ['h:1'], { token: 't' }],
  [{ NATS_URL: 'h:1', NATS_USER: 'u', NATS_PASSWORD: 'p' }, ['h:1'], { user: 'u', pass: 'p' }],
  [{ NATS_URL: 'tls://h:1' }, ['h:1'], { tls: {} }],
  [{ NATS_URL: 'nats://[::1]:4222' }, ['[::1]:4222'], {}],
])('%j', (env, servers, options) => expect(natsFromEnvironment({ ...nowhere, ...env })).toEqual({ servers, options }));

test('connects with what it found', async () => {
  await using server = await natsServer({ token: 'tok/en' });
  const { servers, options } = natsFromEnvironment({
    NATS_URL: `nats://${encodeURIComponent('tok/en')}@127.0.0.1:${server.port}`,
  }) ?? { servers: [], options: {} };
  const connection = await connect({ servers, ...options });
  await connection.flush();
  await connection.close();
});

test('the selected context of the nats CLI is followed, unless NATS_URL says otherwise', async () => {
  await using home = await scratch();
  await mkdir(join(home.path, 'nats/context'), { recursive: true });
  await writeFile(join(home.path, 'nats/context.txt'), 'work\n');
  const context = { url: 'nats://w:1', user: 'u', password: 'p', inbox_prefix: '_INBOX_u', ca: '~/ca.pem', token: '' };
  await writeFile(join(home.path, 'nats/context/work.json'), JSON.stringify(context));
  await writeFile(join(home.path, 'nats/context/other.json'), JSON.stringify({ url: 'nats://o:1' }));
  const env = { XDG_CONFIG_HOME: home.path, HOME: '/home/me' };
  expect(natsFromEnvironment(env)).toEqual({
    servers: ['w:1'],
    options: { user: 'u', pass: 'p', inboxPrefix: '_INBOX_u', tls: { caFile: '/home/me/ca.pem' } },
  });
  expect(natsFromEnvironment({ ...env, NATS_CONTEXT: 'other' })?.servers).toEqual(['o:1']);
  expect(natsFromEnvironment({ ...env, NATS_URL: 'x:1' })).toEqual({ servers: ['x:1'], options: {} });
});

test('a choice that cannot be followed is a sentence, and repeats no secret', async () => {
  await using home = await scratch();
  const env = { XDG_CONFIG_HOME: home.path, HOME: home.path };
  expect(() => natsFromEnvironment({ ...env, NATS_CONTEXT: 'gone' })).toThrow(/context .*gone.json cannot be read/);
  const creds = join(home.path, 'none.creds');
  expect(() => natsFromEnvironment({ ...env, NATS_URL: 'h:1', NATS_CREDS: creds })).toThrow(
    /none.creds cannot be read/,
  );
  expect(() => natsFromEnvironment({ ...env, NATS_URL: 'nats://me:hunter2@:x' })).toThrow(/^(?!.*hunter2).*not one/);
});
