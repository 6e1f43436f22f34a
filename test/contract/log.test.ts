// The file of the log: when it is put aside or taken away, the next lines are in a new one.

import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { openLog } from '../../src/telemetry/log.ts';
import { eventually } from '../support/eventually.ts';
import { scratch } from '../support/scratch.ts';

it('is made anew when somebody has taken it away', async () => {
  await using dir = await scratch();
  const log = openLog(join(dir.path, 'logs'), 'info');
  rmSync(log.file);
  await eventually(() => expect(existsSync(log.file)).toBe(true), 15_000);
  log.logger.info('here again');
  log.close();
  expect(readFileSync(log.file, 'utf8')).toContain('here again');
}, 20_000);
