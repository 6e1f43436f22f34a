// Eight daemons write tasks for a minute: `npm run chaos`.

import { it } from 'vitest';
import { writers, written } from './tasks-writers.ts';

it('lets eight processes write tasks for a minute, and no caller hears of the others', async () => {
  console.log(written(await writers(60_000)));
}, 600_000);
