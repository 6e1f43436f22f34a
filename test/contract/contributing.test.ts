// What the documents for contributors say is true: their links and paths lead somewhere, their commands run, the tree and the
// settings are all named, and the plugin that is shown is the one that is tested.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { execa } from 'execa';
import { describe, expect, it } from 'vitest';
import { oauthSchema } from '../../src/config/oauth.ts';
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

describe('paths', () => {
  const ours = ['src', 'machines', 'test', 'docs', 'plugins', 'examples', 'bench'];
  const paths = ours.flatMap((folder) => [
    folder,
    ...readdirSync(join(ROOT, folder), { recursive: true }).map((path) => join(folder, String(path))),
  ]);
  const known = new Set(paths);
  const names = new Set([...paths, ...readdirSync(ROOT)].map((path) => basename(path)));
  const documents = [
    'README.md',
    'CONTRIBUTING.md',
    'machines/README.md',
    ...paths.filter((path) => /^docs\/.*\.md$/.test(path)),
  ];

  /** Paths from the top, or below src as a page about src may write them; and names of files alone. */
  const pathsIn = (text: string): string[] =>
    [...text.matchAll(/(?<![\w./$<>@-])[\w-]+(?:\.[\w-]+)*(?:\/[\w.{},*-]+)*/g)]
      .map(([path]) => path.replace(/[.,]+$/, ''))
      .filter(
        (path) => /\.(ts|mjs|md|jsonc)$/.test(path) || (path.includes('/') && ours.includes(path.split('/')[0] ?? '')),
      );
  /** `calls/{lane,queue}.ts` is two paths. */
  const expand = (path: string): string[] => {
    const [braces, inner = ''] = /\{([^}]*)\}/.exec(path) ?? [];
    return braces ? inner.split(',').flatMap((each) => expand(path.replace(braces, each))) : [path];
  };
  const isThere = (path: string, document: string): boolean =>
    path.includes('/') ? ['', 'src', dirname(document)].some((from) => known.has(join(from, path))) : names.has(path);

  it.each(documents)('every path that %s names leads to a file', (document) => {
    const missing = pathsIn(read(document))
      .flatMap(expand)
      .filter((path) => !isThere(path, document));
    expect([...new Set(missing)]).toEqual([]);
  });

  it('such a path is found, with and without src, in braces and alone', () => {
    const named = pathsIn(
      '`src/calls/lane.ts`, calls/{queue,record}.ts or (gate.ts); in test/machines, not a/b or https://x.org/y',
    );
    expect(named).toEqual(['src/calls/lane.ts', 'calls/{queue,record}.ts', 'gate.ts', 'test/machines']);
    expect(isThere('src/calls/no-such.ts', 'README.md') || isThere('no-such.ts', 'README.md')).toBe(false);
  });

  it('the tree of docs/ARCHITECTURE.md has every machine and every folder of src', () => {
    const [, tree = ''] = /## The tree\n+```\n([\s\S]*?)```/.exec(read('docs/ARCHITECTURE.md')) ?? [];
    const folders = readdirSync(join(ROOT, 'src'), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => `${name}/`);
    const machines = readdirSync(join(ROOT, 'machines')).filter((name) => name.endsWith('.ts'));
    expect(folders.length).toBeGreaterThan(30);
    expect([...folders, ...machines].filter((name) => !tree.includes(name))).toEqual([]);
  });
});

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

it('TRANSPORTS.md has a row for every key of x-troupe.oauth, and for no other', () => {
  const [, section = ''] = read('docs/TRANSPORTS.md').split('## Logging in to a server behind an address\n');
  const rows = [...section.matchAll(/^\| `(\w+)` \|/gm)].map(([, key]) => key);
  expect(rows).toEqual(Object.keys(oauthSchema.shape));
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
