// Whoever reads of a crash in the log reads of files that are there to be opened.

import { readFileSync } from 'node:fs';
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

it('other places stay as they are', () => {
  const stack = 'Error: gone\n    at there (/no/such/place.cjs:1:2)\n    at here (/tmp/plugin.js:3:4)';
  expect(inSources(stack)).toBe(stack);
});
