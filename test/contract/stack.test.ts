// Whoever reads of a crash in the log reads of files that are there to be opened.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { bundled } from '../../src/protocol/version.ts';
import { inSources } from '../../src/telemetry/stack.ts';

const file = fileURLToPath(bundled('bundle'));
const root = fileURLToPath(new URL('../..', import.meta.url));

it('places in the bundle become places in the sources', () => {
  const lineOf = (path: string) =>
    readFileSync(path, 'utf8')
      .split('\n')
      .findIndex((each) => each.includes('function codeOf(')) + 1;
  const stack = `Error: gone\n    at codeOf (${file}:${lineOf(file)}:10)\n    at node:internal/main:1:2`;
  const source = `${root}src/bundle.ts`;
  expect(inSources(stack)).toMatch(`at codeOf (${source}:${lineOf(source)}:`);
});

it('a place that the bundler has made, of no source, stays as it is', () => {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-stack-'));
  try {
    const made = join(folder, 'made.cjs');
    writeFileSync(`${made}.map`, JSON.stringify({ version: 3, sources: ['a.ts'], names: [], mappings: 'A;' }));
    expect(inSources(`Error: gone\n    at there (${made}:1:2)`)).toBe(`Error: gone\n    at there (${made}:1:2)`);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

it('other places stay as they are', () => {
  const stack = 'Error: gone\n    at there (/no/such/place.cjs:1:2)\n    at here (/tmp/plugin.js:3:4)';
  expect(inSources(stack)).toBe(stack);
});
