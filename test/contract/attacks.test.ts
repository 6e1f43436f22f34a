// docs/ATTACKS.md names every attack of the kit in its order, and every surface is a file that can be run.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ATTACKS } from '../attack/attacks.ts';
import { ROOT } from '../support/daemon.ts';

const kit = Object.entries(ATTACKS).flatMap(([surface, attacks]) => attacks.map((attack) => `${surface}: ${attack}`));

it('docs/ATTACKS.md has a row for each attack, and no other', () => {
  const page = readFileSync(join(ROOT, 'docs/ATTACKS.md'), 'utf8');
  const rows = [...page.matchAll(/^\| ([\w-]+) \| ([^|]+) \| [^|]+ \|$/gm)].map(
    ([, surface, attack]) => `${surface}: ${attack}`,
  );
  expect(rows.slice(1)).toEqual(kit);
});

it('each surface is a file of the kit, and each file a surface', () => {
  const files = readdirSync(join(ROOT, 'test/attack')).filter((name) => name.endsWith('.attack.ts'));
  expect(files.sort()).toEqual(
    Object.keys(ATTACKS)
      .map((surface) => `${surface}.attack.ts`)
      .sort(),
  );
  expect(existsSync(join(ROOT, 'test/attack/vitest.config.ts'))).toBe(true);
});
