// Plugins are optional: the daemon starts with none, with each alone and with all. One that fails is reported and left
// out, unless it is required; none of them takes the daemon down.

import { readdirSync, writeFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { workplace } from '../support/cli.ts';
import { type Daemon, daemon, fixture, ROOT } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { natsBinary } from '../support/nats.ts';
import { type Scratch, scratch } from '../support/scratch.ts';

/** What each plugin needs to start; a new one must be given its line here. */
const OPTIONS: Record<string, object> = {
  redact: { patterns: ['sk-[a-z0-9]{6,}'] },
  'sampling-openai': { baseUrl: 'http://127.0.0.1:11434/v1', models: [{ name: 'm' }] },
  'sampling-anthropic': { apiKey: 'k', models: [{ name: 'm' }] },
};
const SHIPPED = readdirSync(join(ROOT, 'plugins'));
const SECRET = 'sk-abc123def';

let dir: Scratch;
beforeAll(async () => {
  dir = await scratch();
});
afterAll(() => dir[Symbol.asyncDispose]());

/** A module of a plugin whose `start` is this. */
async function plugin(name: string, start: string, parse = 'return options;'): Promise<string> {
  const path = join(dir.path, `${name}.mjs`);
  const body = `export const plugin = { name: '${name}', parse(options) { ${parse} }, async start(troupe, options) { ${start} } };`;
  await writeFile(path, body);
  return path;
}

const echo = async (d: Daemon) => (await d.request('troupe.call.echo.echo', { message: 'hi' })).data.content[0].text;

test.each([['none', []], ...SHIPPED.map((name) => [name, [name]] as const), ['all', SHIPPED]] as const)(
  'the daemon starts with %s of the plugins, answers, and stops',
  async (_, names) => {
    const plugins = Object.fromEntries(names.map((name) => [name, OPTIONS[name] ?? {}]));
    await using d = await daemon({ servers: { echo: fixture('echo') }, troupe: { plugins } });
    expect((await d.status()).plugins).toEqual(names.map((name) => ({ name, state: 'running' })));
    expect(await echo(d)).toBe('hi');
    expect(await d.down()).toBe(0);
  },
);

test('redact masks what it is told to in log lines and audit rows, whoever said it', async () => {
  const loud = {
    command: process.execPath,
    args: ['-e', `process.stderr.write('my key is ${SECRET}\\n'); import('${join(ROOT, 'test/fixtures/echo.mjs')}');`],
  };
  const troupe = { plugins: { redact: OPTIONS.redact } };
  await using d = await daemon({ servers: { loud, resources: fixture('resources') }, troupe });
  const unknown = await d.request(`troupe.call.loud.${SECRET}`, {});
  expect(unknown).toMatchObject({ code: 404 });
  expect(unknown.error).toContain(SECRET); // the caller said it itself
  await d.request('troupe.call.resources.log', { level: 'error', text: `it holds ${SECRET}` });
  await eventually(async () => expect(await d.log()).toContain('it holds [masked]'));
  await eventually(async () => expect(await d.log()).toContain('my key is [masked]'));
  expect((await d.cli('logs')).stdout).not.toContain(SECRET);
  expect(await d.down()).toBe(0);

  expect(await d.log()).not.toContain(SECRET);
  const db = new Sqlite(join(d.state, 'database/troupe.db'), { readonly: true });
  const rows = db.prepare("SELECT * FROM audit WHERE server = 'loud'").all() as { name: string; error: string }[];
  db.close();
  expect(rows).toHaveLength(1);
  expect(rows[0]).toMatchObject({ name: '[masked]', error: expect.stringContaining('no tool [masked]') });
  expect(JSON.stringify(rows)).not.toContain(SECRET);
});

test('plugins that fail in any way are reported one by one, and everything else goes on', async () => {
  const broken = join(dir.path, 'broken.mjs');
  await writeFile(broken, 'export const plugin = {');
  const wanted = {
    [await plugin('picky', 'return {};', "throw new Error('picky needs a colour');")]: {},
    [await plugin('starts-badly', "throw new Error('the moon is not full');")]: {},
    [await plugin('ends-badly', "return { [Symbol.asyncDispose]: async () => { throw new Error('no goodbye'); } };")]:
      {},
    [broken]: {},
    [join(dir.path, 'nowhere.mjs')]: {},
    'no-such-plugin': {},
    redact: { patterns: ['('] },
    [await plugin('good', "troupe.logger.info('good day'); return { async [Symbol.asyncDispose]() {} };")]: {},
  };
  await using d = await daemon({ servers: { echo: fixture('echo') }, troupe: { plugins: wanted } });
  const { plugins } = await d.status();
  expect(plugins.map(({ state, error }) => error ?? state)).toEqual([
    'picky needs a colour',
    'the moon is not full',
    'running',
    expect.stringMatching(/\S/), // the words of the engine
    'there is no such plugin',
    'there is no such plugin',
    'redact: a pattern of 1 characters is no regular expression',
    'running',
  ]);
  expect((await d.cli('status')).stdout).toContain('the moon is not full');
  expect(await echo(d)).toBe('hi');
  expect(await d.down()).toBe(0);
  const log = await d.log();
  for (const words of ['did not start: picky needs a colour', 'good day', 'did not stop well: no goodbye'])
    expect(log).toContain(words);
});

test('a plugin sees the servers, hears their states, calls a tool and publishes', async () => {
  const path = await plugin(
    'busy',
    `const stop = troupe.watch(async ({ name, state }) => {
      if (state !== 'ready') return;
      const { content } = await troupe.call(name, 'echo', { message: 'from a plugin' });
      const unknown = await troupe.call('nobody', 'echo', {}).catch((error) => error.message);
      troupe.logger.info({ servers: troupe.servers().map((each) => each.name), said: content[0].text, unknown }, 'seen');
      troupe.publish('greeting', 'hello');
    });
    return { [Symbol.asyncDispose]: async () => stop() };`,
  );
  await using d = await daemon({ servers: { echo: fixture('echo') }, troupe: { plugins: { [path]: {} } } });
  const heard = (await d.nats()).subscribe('troupe.plugin.>', { max: 1 });
  await d.cli('restart', 'echo');
  for await (const msg of heard) expect(msg.string()).toBe('hello');
  await eventually(async () => expect(await d.log()).toContain('"msg":"seen"'));
  const line = (await d.log()).split('\n').find((each) => each.includes('"msg":"seen"')) ?? '';
  expect(JSON.parse(line)).toMatchObject({
    ...{ servers: ['echo'], said: 'from a plugin', unknown: 'there is no server nobody' },
  });
});

test('a plugin that throws when it is called is reported, and what it should have masked is not seen', async () => {
  const clumsy = await plugin(
    'clumsy',
    `troupe.watch(() => { throw new Error('I tripped'); });
    troupe.watch(async () => { throw new Error('I tripped later'); });
    return { async [Symbol.asyncDispose]() {} };`,
  );
  const blind = await plugin(
    'blind',
    `troupe.mask((text) => { if (text.includes('${SECRET}')) throw new Error('no'); return text; });
    return { async [Symbol.asyncDispose]() {} };`,
  );
  await using d = await daemon({
    servers: { echo: fixture('echo') },
    troupe: { plugins: { [clumsy]: {}, [blind]: {} } },
  });
  await d.cli('restart', 'echo');
  await d.request(`troupe.call.echo.${SECRET}`, {});
  expect(await echo(d)).toBe('hi');
  await eventually(async () => {
    for (const words of ['I tripped"', 'I tripped later"', 'left out: plugin blind failed to mask it'])
      expect(await d.log()).toContain(words);
  });
  expect(await d.log()).not.toContain(SECRET);
  expect((await d.status()).daemon.state).toBe('running');
});

test('without a required plugin the daemon does not start, says why, and leaves nothing behind', async () => {
  await using place = workplace({ TROUPE_NATS_SERVER: (await natsBinary()).path });
  const path = await plugin('needed', "throw new Error('the vault is closed');");
  const ran = join(dir.path, 'first-was-stopped');
  const first = await plugin(
    'first',
    `const { writeFileSync } = await import('node:fs');
     return { [Symbol.asyncDispose]: async () => writeFileSync(${JSON.stringify(ran)}, '') };`,
  );
  await mkdir(place.directory, { recursive: true });
  const plugins = { [first]: {}, [path]: { required: true } };
  writeFileSync(place.config, JSON.stringify({ mcpServers: {}, 'x-troupe': { plugins } }));
  const { code, stdout } = await place.run('up');
  expect(code).toBe(1);
  expect(stdout).toContain(`troupe stopped: plugin ${path} is required and did not start: the vault is closed`);
  expect(readdirSync(dir.path)).toContain('first-was-stopped');
  expect(readdirSync(place.directory)).not.toContain('daemon.json');
  const detached = await place.run('up', '--detach');
  expect(detached.code).not.toBe(0);
  expect(detached.stderr).toContain('the vault is closed');
});
