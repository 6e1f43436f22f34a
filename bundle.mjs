// Makes dist/bundle of the sources: what `troupe` runs. One file is read where hundreds were, and what is rare is in files of
// its own, which are loaded when they are needed. dist/src has the same as single modules, for tests and for types.

import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';

const ROOT = fileURLToPath(new URL('.', import.meta.url));
const BUNDLE = fileURLToPath(new URL('dist/bundle/', import.meta.url));

/** Whoever wants no plugins deletes their folder. */
const plugins = existsSync(`${ROOT}plugins`) ? readdirSync(`${ROOT}plugins`) : [];

/** What is started or loaded by its name. */
const input = {
  troupe: 'src/troupe.ts',
  main: 'src/main.ts',
  bundle: 'src/bundle.ts',
  writer: 'src/store/writer.ts',
  'validator-thread': 'src/asks/forms/validator-thread.ts',
  plugin: 'src/plugin/plugin.ts',
  ...Object.fromEntries(plugins.map((name) => [`plugins/${name}/index`, `plugins/${name}/index.ts`])),
};

rmSync(BUNDLE, { recursive: true, force: true });
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
  dir: BUNDLE,
  format: 'cjs', // it loads in half the time that Node's loader of modules takes
  entryFileNames: '[name].cjs',
  chunkFileNames: 'chunks/[name].cjs',
  sourcemap: true,
});
await bundle.close();

// What runs by being loaded is not loaded here.
const RUNS = ['troupe', 'main', 'writer', 'validator-thread'].map((name) => `${name}.cjs`);
const require = createRequire(import.meta.url);
const scripts = new Map();
require(`${BUNDLE}bundle.cjs`).loadWithCode(BUNDLE, (script, file) => scripts.set(file, script));
for (const { type, fileName } of output) if (type === 'chunk' && !RUNS.includes(fileName)) require(BUNDLE + fileName);
for (const [file, script] of scripts) writeFileSync(`${file}.code`, script.createCachedData());
