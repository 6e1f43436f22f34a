// For vitest's `globalSetup`: no test runs a stale `dist`. When the sources differ from those that `dist` was built from,
// it is built first; and no run builds it while another run is using it.

import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite, { type Database } from 'better-sqlite3';
import { execaSync } from 'execa';
import type { TestProject } from 'vitest/node';

const ROOT = new URL('../..', import.meta.url).pathname;
const DIST = join(ROOT, 'dist');
const STAMP = join(DIST, '.built-from');
const FOLDERS = ['src', 'machines', 'plugins'];
const SETTINGS = ['bundle.mjs', 'package.json', 'package-lock.json', 'tsconfig.json', 'tsconfig.build.json'];
/** Longer than a build takes on a slow machine, so that of two runs that begin together one builds and one waits. */
const WAIT_MS = 120_000;

/** Holds a lock on `dist` until the run ends; the kernel frees it when the run is killed. */
export function setup(project: TestProject): () => void {
  mkdirSync(DIST, { recursive: true });
  const lock = new Sqlite(join(DIST, '.lock.db'), { timeout: WAIT_MS });
  const prepare = () => {
    if (!isFresh()) rebuild(lock);
    // An open read: who wants to build must wait for its end.
    lock.exec('BEGIN; SELECT * FROM sqlite_schema');
  };
  prepare();
  project.onTestsRerun(() => {
    lock.exec('ROLLBACK');
    prepare();
  });
  return () => lock.close();
}

function rebuild(lock: Database): void {
  try {
    lock.exec('BEGIN EXCLUSIVE');
  } catch {
    throw new Error('dist is older than the sources, and another test run is using it: try again when that has ended');
  }
  try {
    if (isFresh()) return; // another run has just built it
    const sources = fingerprint();
    const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
    for (const step of [[tsc, '-p', 'tsconfig.build.json'], ['bundle.mjs']]) {
      const { failed, all } = execaSync(process.execPath, step, { cwd: ROOT, reject: false, all: true });
      if (failed) throw new Error(`dist is older than the sources, and they do not compile:\n${all}`);
    }
    removeOrphans();
    writeFileSync(STAMP, sources);
  } finally {
    lock.exec('ROLLBACK');
  }
}

function isFresh(): boolean {
  return existsSync(STAMP) && readFileSync(STAMP, 'utf8') === fingerprint();
}

function fingerprint(): string {
  const hash = createHash('sha256');
  const sources = FOLDERS.flatMap((folder) => filesIn(join(ROOT, folder))).filter((path) => path.endsWith('.ts'));
  for (const path of [...sources.sort(), ...SETTINGS.map((file) => join(ROOT, file))])
    hash.update(path.slice(ROOT.length)).update('\0').update(readFileSync(path)).update('\0');
  return hash.digest('hex');
}

/** The compiler leaves what it made of a source that is gone, and an import of it would still work. */
function removeOrphans(): void {
  for (const built of FOLDERS.flatMap((folder) => filesIn(join(DIST, folder)))) {
    const source = join(ROOT, built.slice(DIST.length).replace(/(\.d\.ts|\.js)$/, '.ts'));
    if (!existsSync(source)) rmSync(built);
  }
}

function filesIn(folder: string): string[] {
  if (!existsSync(folder)) return [];
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}
