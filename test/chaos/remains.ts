// What a run leaves behind when all daemons have stopped: no process, and a sound database.

import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { execa } from 'execa';
import { expect } from 'vitest';
import type { Daemon } from '../support/daemon.ts';

export async function checkRemains(d: Daemon): Promise<void> {
  const { stdout } = await execa('ps', ['-A', '-o', 'stat=,pid=,args=']);
  const left = stdout.split('\n').filter((line) => line.includes(d.dir) && !line.trim().startsWith('Z'));
  expect(left).toEqual([]);
  const folder = join(d.state, 'database');
  const files = readdirSync(folder).filter((name) => /\.(db|sqlite3?)$/.test(name));
  expect(files).not.toEqual([]);
  for (const file of files) {
    const database = new Database(join(folder, file), { readonly: true });
    expect(database.pragma('integrity_check', { simple: true })).toBe('ok');
    database.close();
  }
}
