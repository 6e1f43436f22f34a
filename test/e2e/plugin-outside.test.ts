// A plugin that lives outside the tree: examples/plugin, copied next to a configuration, with `troupe` among its packages.

import { cp, mkdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Daemon, daemon, fixture, ROOT } from '../support/daemon.ts';
import { type Scratch, scratch } from '../support/scratch.ts';

let home: Scratch;
let config: string;

/**
 *   conf/troupe.json, conf/node_modules/state-news-package -> ../../outside/state-news
 *   outside/state-news/{package.json,index.js}, outside/node_modules/troupe -> the repository
 */
beforeAll(async () => {
  home = await scratch();
  config = join(home.path, 'conf/troupe.json');
  const plugin = join(home.path, 'outside/state-news');
  await mkdir(join(home.path, 'conf/node_modules'), { recursive: true });
  await mkdir(join(home.path, 'outside/node_modules'), { recursive: true });
  await cp(join(ROOT, 'examples/plugin'), plugin, { recursive: true });
  await symlink(ROOT, join(home.path, 'outside/node_modules/troupe'));
  await symlink(plugin, join(home.path, 'conf/node_modules/state-news-package'));
});
afterAll(() => home[Symbol.asyncDispose]());

const started = (plugins: object): Promise<Daemon> =>
  daemon({ config, servers: { echo: fixture('echo') }, troupe: { plugins } });

test('a plugin is named by its folder, its module or its package, and speaks under its own name', async () => {
  const names = ['../outside/state-news', '../outside/state-news/index.js', 'state-news-package'];
  await using d = await started(Object.fromEntries(names.map((name) => [name, { states: ['ready'] }])));
  expect((await d.status()).plugins).toEqual(names.map((name) => ({ name, state: 'running' })));
  const news = (await d.nats()).subscribe('troupe.plugin.>', { max: names.length });
  await d.cli('restart', 'echo');
  for await (const { subject, data } of news) {
    expect(subject).toBe('troupe.plugin.state-news.echo');
    expect(JSON.parse(Buffer.from(data).toString())).toMatchObject({ state: 'ready' });
  }
  expect(await d.down()).toBe(0);
  expect(await d.log()).toContain('"plugin":"state-news"');
});

test('wrong options, a missing path and a missing package are each one sentence, and nothing else is troubled', async () => {
  const name = '../outside/state-news';
  await using d = await started({ [name]: { state: 'ready' }, './nowhere': {}, 'no-such-package': {}, fs: {} });
  expect((await d.status()).plugins.map(({ error }) => error)).toEqual([
    'state-news: state is not a setting; did you mean "states"?',
    'there is no such plugin',
    'there is no such plugin',
    'there is no such plugin',
  ]);
});

test('`troupe/plugin` brings its types along', async () => {
  const tsc = join(ROOT, 'node_modules/.bin/tsc');
  const check = () => execa(tsc, ['-p', '.'], { cwd: join(home.path, 'outside/state-news'), reject: false, all: true });
  expect((await check()).all).toBe('');
  await cp(join(ROOT, 'test/fixtures/plugin-wrong.js'), join(home.path, 'outside/state-news/index.js'));
  expect((await check()).all).toMatch(/'asyncDispose'|AsyncDisposable/);
});
