// What the documents for contributors say is true: their links lead somewhere, their commands run, the settings are all
// named, and the plugin that is shown is the one that is tested.

import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { execa } from 'execa';
import { describe, expect, it } from 'vitest';
import { settingsSchema } from '../../src/config/schema.ts';
import { ROOT } from '../support/daemon.ts';

const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');
const contributing = read('CONTRIBUTING.md');
const [setup = [], single = []] = [...contributing.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, text]) =>
  String(text).trim().split('\n'),
);

it.each(['CONTRIBUTING.md', 'docs/PLUGINS.md', 'README.md', 'docs/ARCHITECTURE.md'])(
  'every link of %s leads to a file',
  (path) => {
    const links = [...read(path).matchAll(/\]\((?!https?:|#)([^)#]+)/g)].map(([, link = '']) => link);
    expect(links.length).toBeGreaterThan(0);
    expect(links.filter((link) => !existsSync(join(ROOT, dirname(path), link)))).toEqual([]);
  },
);

describe('CONTRIBUTING.md', () => {
  it('names scripts that there are, and tests that there are', () => {
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
    const named = [...contributing.matchAll(/npm run (\w+)/g)].map(([, script = '']) => script);
    expect(setup.length).toBe(3);
    expect(named.filter((script) => !Object.hasOwn(scripts, script))).toEqual([]);
    const tests = [...contributing.matchAll(/test\/[\w/-]+(\.test\.ts)?/g)].map(([path]) => path);
    expect(tests.length).toBeGreaterThan(8);
    expect(tests.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
  });

  // In a process of its own each; the last one of them checks the whole tree and has its own turn in every run.
  it.each(single.slice(0, -1))('%s', async (command) => {
    const { exitCode, all } = await execa('bash', ['-c', command], { cwd: ROOT, reject: false, all: true });
    expect(exitCode, all).toBe(0);
    expect(all).toMatch(/\d+ passed/);
  });
});

it('the README names every setting of a server', () => {
  const readme = read('README.md');
  const settings = Object.keys(settingsSchema.parse({})).filter((name) => name !== 'enabled'); // hosts say `disabled`
  expect(settings.length).toBeGreaterThan(20);
  expect(settings.filter((name) => !readme.includes(`\`${name}\``))).toEqual([]);
});

it('docs/PLUGINS.md shows the plugin of examples/plugin', () => {
  const [, shown = ''] = /```js\n([\s\S]*?)```/.exec(read('docs/PLUGINS.md')) ?? [];
  expect(read('examples/plugin/index.js')).toContain(shown);
  expect(shown).toContain("from 'troupe/plugin'");
});
