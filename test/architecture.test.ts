// The rules of the house that a linter cannot say: who may know whom, and what must be explained.
// A rule here is a sentence; when one fails, it names the file.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('..', import.meta.url));

function filesIn(folder: string, extension = /\.ts$/): string[] {
  if (!existsSync(join(root, folder))) return [];
  return readdirSync(join(root, folder), { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && extension.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name).slice(root.length))
    .filter((path) => !path.includes('node_modules/'))
    .sort();
}
const read = (path: string) => readFileSync(join(root, path), 'utf8');

/** Bottom up: a file imports from its own folder and from those before it. docs/ARCHITECTURE.md draws them, top down. */
const LAYERS = [
  'machines',
  'world',
  'protocol',
  'files',
  'telemetry',
  'config',
  'store',
  'calls',
  'bus',
  'plugin',
  'catalog',
  'servers',
  'roots',
  'tasks',
  'asks',
  'sessions',
  'operations',
  'doors',
  'nats-transport',
  'daemon',
  'cli',
  'main',
];
const layerOf = (path: string): string => {
  const [first = '', second = '', third] = path.split('/');
  return first !== 'src' ? first : third === undefined ? 'main' : second;
};

type Import = { readonly from: string; readonly to: string };

/** Relative imports are resolved to paths of the project, others stay as they are written. */
function importsOf(path: string): Import[] {
  const statement = /^(?:import|export)\s+(?:type\s)?(?:[^'";]*?\sfrom\s+)?['"]([^'"]+)['"]/gm;
  const expression = /\bimport\(\s*['"]([^'"]+)['"]/g;
  const resolve = (to: string) => (to.startsWith('.') ? normalize(join(dirname(path), to)) : to);
  return [
    ...[...read(path).matchAll(statement)].map(([, to = '']) => ({
      from: path,
      to: resolve(to),
    })),
    ...[...read(path).matchAll(expression)].map(([, to = '']) => ({ from: path, to: resolve(to) })),
  ];
}
const importsIn = (folder: string) => filesIn(folder).flatMap(importsOf);

/** Code without comments and without the contents of strings. */
const codeOf = (path: string) =>
  read(path)
    .replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '')
    .replace(/'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"/g, "''");

describe('who may know whom', () => {
  it('machines import xstate and each other, nothing else', () => {
    expect(importsIn('machines').length).toBeGreaterThan(5);
    expect(importsIn('machines').filter(({ to }) => to !== 'xstate' && !to.startsWith('machines/'))).toEqual([]);
  });

  it('machines know no clock, no chance, no console and no process', () => {
    const worldly = /\b(Date\b|Math\.random|performance\b|console\.|process\.|globalThis\b|setTimeout|setInterval)/;
    expect(filesIn('machines').filter((path) => worldly.test(codeOf(path)))).toEqual([]);
  });

  it('imports go down the layers only, types included', () => {
    const upward = importsIn('src')
      .filter(({ to }) => /^(src|machines)\//.test(to))
      .filter(
        ({ from, to }) => layerOf(from) !== layerOf(to) && LAYERS.indexOf(layerOf(from)) <= LAYERS.indexOf(layerOf(to)),
      );
    expect(upward.map(({ from, to }) => `${from} imports ${to}`)).toEqual([]);
  });

  it('every folder of src is a layer', () => {
    expect(filesIn('src').filter((path) => !LAYERS.includes(layerOf(path)))).toEqual([]);
  });

  it('docs/ARCHITECTURE.md draws these layers, and behind each those that it imports from', () => {
    const [, drawing = ''] = /## The layers\n[\s\S]*?```\n([\s\S]*?)\n```/.exec(read('docs/ARCHITECTURE.md')) ?? [];
    const imported = new Set(importsIn('src').map(({ from, to }) => `${layerOf(from)} ${layerOf(to)}`));
    const lines = LAYERS.toReversed().map((layer) => {
      const below = LAYERS.toReversed().filter((other) => other !== layer && imported.has(`${layer} ${other}`));
      return below.length > 0 ? `${layer.padEnd(15)} ▶ ${below.join(' ')}` : layer;
    });
    expect(drawing).toBe(lines.join('\n'));
  });

  it('no file imports itself over others, types included', () => {
    const files = [...filesIn('src'), ...filesIn('machines')];
    const known = new Map(files.map((path) => [path, importsOf(path)]));
    const isDone = new Set<string>();
    const cycleFrom = (path: string, way: readonly string[]): readonly string[] => {
      if (way.includes(path)) return [...way.slice(way.indexOf(path)), path];
      if (isDone.has(path)) return [];
      const found = (known.get(path) ?? []).map(({ to }) => cycleFrom(to, [...way, path])).find((each) => each.length);
      isDone.add(path);
      return found ?? [];
    };
    expect(files.map((path) => cycleFrom(path, [])).filter((cycle) => cycle.length > 0)).toEqual([]);
  });

  it('NATS and SQLite are known to few', () => {
    const natsMay = /^src\/(bus|doors\/nats|nats-transport|daemon)\//;
    const speakers = [
      'asks/asking',
      'asks/bus',
      'sessions/handover',
      'sessions/hosting',
      'tasks/peers',
      'tasks/tasking',
    ];
    const natsUsers = importsIn('src').filter(({ from, to }) => to === 'nats' && !natsMay.test(from));
    expect([...new Set(natsUsers.map(({ from }) => from))]).toEqual(speakers.map((name) => `src/${name}.ts`));
    const sqliteUsers = importsIn('src').filter(
      ({ from, to }) => to === 'better-sqlite3' && !from.startsWith('src/store/'),
    );
    expect(sqliteUsers.map(({ from }) => from)).toEqual(['src/cli/doctor/machine.ts']); // which version it is, and whether it loads
  });

  it('a plugin knows of us only src/plugin/plugin.ts', () => {
    const ours = importsIn('plugins').filter(
      ({ to }) => /^(src|machines|test|plugins)\//.test(to) || to.startsWith('..'),
    );
    const own = (path: string) => path.split('/').slice(0, 2).join('/');
    const isAllowed = ({ from, to }: Import) =>
      to === 'src/plugin/plugin.ts' || (to.startsWith('plugins/') && own(to) === own(from));
    expect(ours.filter((each) => !isAllowed(each))).toEqual([]);
  });

  it('nobody names a plugin in an import, so that any can be deleted', () => {
    const everyone = [...importsIn('src'), ...importsIn('machines')];
    expect(everyone.filter(({ to }) => /(^|\/)plugins\//.test(to))).toEqual([]);
  });

  it('production code imports no test', () => {
    const everyone = ['src', 'machines', 'plugins'].flatMap(importsIn);
    expect(everyone.filter(({ to }) => to.startsWith('test/') || to === 'vitest')).toEqual([]);
  });
});

describe('what must be explained', () => {
  it('an error is swallowed only with the reason beside it', () => {
    const swallows = /catch\s*(\([^)]*\)\s*)?\{\s*\}/;
    const silent = ['src', 'machines', 'plugins', 'test'].flatMap((folder) =>
      filesIn(folder).flatMap((path) =>
        read(path)
          .split('\n')
          .filter((line) => swallows.test(line) && !/\/\/|\/\*/.test(line))
          .map((line) => `${path}: ${line.trim()}`),
      ),
    );
    expect(silent).toEqual([]);
  });

  it('every file of src and machines begins with what it promises', () => {
    const files = [...filesIn('src'), ...filesIn('machines')];
    expect(files.filter((path) => !/^(#!.*\n)?\/\/ \S/.test(read(path)))).toEqual([]);
  });

  it.each(['README.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'machines/README.md', 'docs/ARCHITECTURE.md'])(
    '%s exists',
    (path) => {
      expect(existsSync(join(root, path))).toBe(true);
    },
  );
});
