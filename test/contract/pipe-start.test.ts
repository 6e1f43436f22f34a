// `troupe connect` starts in little more than the time of Node itself, because it loads next to nothing. How much more is a
// figure of the bench.

import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** What is loaded before the first byte is read: static imports of values, all the way down. */
function loaded(file: string, seen = new Set<string>()): Set<string> {
  if (seen.has(file)) return seen;
  seen.add(file);
  if (!file.endsWith('.ts')) return seen;
  for (const [, to = ''] of readFileSync(file, 'utf8').matchAll(/^import (?!type\b)(?:[^;]*? from )?'([^']+)';/gm))
    loaded(to.startsWith('.') ? join(dirname(file), to) : to, seen);
  return seen;
}

it('loads a dozen small files of ours, a few parts of Node, and no package', () => {
  const all = [...loaded(join(ROOT, 'src/cli/connect/connect.ts'))].map((file) => file.replace(ROOT, ''));
  expect(all.filter((file) => !file.startsWith('src/') && !file.startsWith('node:'))).toEqual([]);
  expect(all).not.toContain('node:child_process');
  expect(all.length).toBeLessThan(24);
  expect(loaded(join(ROOT, 'src/main.ts')).size).toBe(1); // everything else is loaded on demand
});
