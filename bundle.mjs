// Makes dist/bundle of the sources: what `troupe` runs. One file is read where hundreds were, and what is rare is in files of
// its own, which are loaded when they are needed. dist/src has the same as single modules, for tests and for types.

import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';

const ROOT = fileURLToPath(new URL('.', import.meta.url));
const DIST = `${ROOT}dist/`;
const BUNDLE = `${DIST}bundle/`;

/** Whoever wants no plugins deletes their folder. */
const plugins = (existsSync(`${ROOT}plugins`) ? readdirSync(`${ROOT}plugins`) : []).filter((name) =>
  existsSync(`${ROOT}plugins/${name}/index.ts`),
);

/** What is started or loaded by its name. */
const input = {
  troupe: 'src/troupe.ts',
  main: 'src/main.ts',
  bundle: 'src/bundle.ts',
  writer: 'src/store/writer.ts',
  'validator-thread': 'src/asks/forms/validator-thread.ts',
  plugin: 'src/plugin/plugin.ts',
  module: 'src/files/module.ts',
  ...Object.fromEntries(plugins.map((name) => [`plugins/${name}/index`, `plugins/${name}/index.ts`])),
};

/** Where it is made; beside its place, so that what stands there is replaced by renaming. */
mkdirSync(DIST, { recursive: true });
const MADE = mkdtempSync(`${DIST}.bundle-`);
process.on('exit', () => rmSync(MADE, { recursive: true, force: true }));
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => process.exit(1));
removeAbandoned();

const bundle = await rolldown({
  cwd: ROOT,
  input,
  platform: 'node',
  // A package of native code, and two that `ws` uses where somebody has installed them.
  external: ['better-sqlite3', 'bufferutil', 'utf-8-validate'],
  // Not `main`, which for one package is a wrapper that cannot be followed.
  resolve: { mainFields: ['module', 'main'] },
});
const { output } = await bundle.write({
  dir: MADE,
  format: 'cjs', // Node loads it sooner than ES modules, and code can be kept for it
  entryFileNames: '[name].cjs',
  chunkFileNames: 'chunks/[name].cjs',
  strict: true, // as the modules are that it is made of, and the tests run
  sourcemap: true,
  charset: 'ascii', // V8 keeps the text, and with one other character in it at two bytes for each
  comments: { jsdoc: false, annotation: false }, // an import in a comment would look like one in code, below
});
await bundle.close();

// What runs by being loaded is not loaded here; and V8 does not let code that it kept import by name. Comments may: types are
// told in them that way.
const runs = ['troupe', 'main', 'writer', 'validator-thread'].map((name) => `${name}.cjs`);
const imports = /^(?!\s*\/?\*).*(?<![.\w])import\(/m;
const chunks = output.filter(({ type, fileName }) => type === 'chunk' && !runs.includes(fileName));
const importing = new Set(chunks.filter(({ code }) => imports.test(code)).map(({ fileName }) => `${MADE}/${fileName}`));
const require = createRequire(import.meta.url);
const { codeFileOf, codeWhileLoading } = require(`${MADE}/bundle.cjs`);
codeWhileLoading(
  MADE,
  () => chunks.map(({ fileName }) => require(`${MADE}/${fileName}`)),
  // V8 runs what it finds there: what is half on the disk when the power fails would end every verb.
  (file, code) => importing.has(file) || writeFileSync(codeFileOf(file), code, { flush: true }),
);

// Replaced file by file, each in one step: a daemon may be running from there and may yet load what is rare, and a verb may start
// this very moment. The texts come first, for no code is taken that is older than its text.
chmodSync(`${MADE}/troupe.cjs`, 0o755);
const isCode = (name) => name.endsWith('.code');
const made = readdirSync(MADE, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map(({ parentPath, name }) => `${parentPath}/${name}`.slice(MADE.length + 1))
  .sort((one, other) => Number(isCode(one)) - Number(isCode(other)));
for (const name of made) {
  const [file, place] = [`${MADE}/${name}`, BUNDLE + name];
  if (existsSync(place) && readFileSync(place).equals(readFileSync(file))) continue;
  mkdirSync(dirname(place), { recursive: true });
  renameSync(file, place);
}
for (const name of readdirSync(BUNDLE, { recursive: true }))
  if (/\.(cjs|map|code)$/.test(name) && !made.includes(name)) rmSync(BUNDLE + name, { force: true });

/** Builds that were killed; one that runs beside this one takes seconds. */
function removeAbandoned() {
  const HOUR_MS = 3_600_000;
  for (const name of readdirSync(DIST).filter((each) => each.startsWith('.bundle-'))) {
    const age = Date.now() - (statSync(DIST + name, { throwIfNoEntry: false })?.mtimeMs ?? Date.now());
    if (age > HOUR_MS) rmSync(DIST + name, { recursive: true, force: true });
  }
}
