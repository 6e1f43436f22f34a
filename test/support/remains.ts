// For vitest's `globalSetup`: every temporary file of a run goes into one directory, and a run that leaves a file in it, or a
// process that was told of it, has failed.

import { mkdtempSync, readdirSync, realpathSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execaSync } from 'execa';
import { environmentOf } from './processes.ts';

export function setup(): () => void {
  // A short name: a unix socket's path has room for about a hundred characters.
  const directory = mkdtempSync(join(realpathSync(tmpdir()), 'tt-'));
  const before = process.env.TMPDIR;
  process.env.TMPDIR = directory;
  return () => {
    if (before === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = before;
    const left = [...processesOf(directory), ...filesIn(directory)];
    rmSync(directory, { recursive: true, force: true });
    if (left.length === 0) return;
    process.exitCode = 1; // an error here is shown by vitest, but does not count
    throw new Error(`the tests left behind:\n${left.join('\n')}`);
  };
}

/**
 * Ours are named `troupe-…`; whatever else is there belongs to the programs that tests run, vitest included. What is in them tells
 * whose they were.
 */
const filesIn = (directory: string): string[] =>
  readdirSync(directory)
    .filter((name) => name.startsWith('troupe-'))
    .map((name) => `${name}: ${contentsOf(join(directory, name)).slice(0, 20).join(' ') || 'empty'}`);

const contentsOf = (path: string): string[] =>
  statSync(path).isDirectory() ? (readdirSync(path, { recursive: true }) as string[]) : ['a file'];

/** Those whose command line or environment names the directory. */
function processesOf(directory: string): string[] {
  const { stdout } = execaSync('ps', ['-A', '-o', 'pid=,stat=,args=']);
  return stdout.split('\n').filter((line) => {
    const [pid = '', stat = ''] = line.trim().split(/\s+/);
    if (Number(pid) === process.pid || stat.startsWith('Z')) return false;
    return line.includes(directory) || environmentOf(pid).includes(`=${directory}/troupe-`);
  });
}
