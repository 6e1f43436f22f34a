// What troupe needs of the machine: Node, SQLite, and a state directory that is private, writable, local and not full.

import { accessSync, constants, existsSync, statfsSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { sentence } from '../../protocol/failures.ts';
import { networkFilesystem } from '../../store/directory.ts';
import { isNotBuilt } from '../../store/trouble.ts';
import { type Limits, readLimits, sharesOf } from '../../world/limits.ts';
import { bytes } from '../terminal/table.ts';
import type { Cli } from '../verb.ts';

export type Check = {
  readonly name: string;
  readonly state: 'ok' | 'warn' | 'fail';
  readonly detail: string;
  readonly remedy?: string;
};

/** `engines` of package.json: versions without support lack what the program and its build use. */
const LEAST_NODE_20 = [20, 19, 0];
const LEAST_NODE = [22, 12, 0];
const LEAST_SQLITE = [3, 51, 3];
const LEAST_FREE = 100 * 2 ** 20;
const ENOUGH_FREE = 2 ** 30;
const LEAST_DESCRIPTORS = 1_024;

export async function* machineChecks({ paths }: Cli): AsyncGenerator<Check> {
  yield nodeCheck(process.versions.node);
  yield await sqliteCheck();
  yield descriptorCheck(readLimits());
  yield* stateChecks(paths.state);
}

export function nodeCheck(version: string): Check {
  const is20 = version.startsWith('20.') && isAtLeast(version, LEAST_NODE_20);
  if (is20 || isAtLeast(version, LEAST_NODE)) return { name: 'node', state: 'ok', detail: `v${version}` };
  const remedy = `install Node ${LEAST_NODE.slice(0, 2).join('.')} or newer (https://nodejs.org)`;
  return { name: 'node', state: 'fail', detail: `v${version} is too old`, remedy };
}

/** What a daemon started from here would have. */
export function descriptorCheck(limits: Limits): Check {
  const { hosts, servers } = sharesOf(limits);
  const most = Number.isFinite(limits.descriptors) ? limits.descriptors : 'no limit of';
  const processes = Number.isFinite(servers) ? servers : 'as many';
  const detail = `${most} descriptors: for ${hosts} connections of hosts and ${processes} processes of servers`;
  if (limits.descriptors >= LEAST_DESCRIPTORS) return { name: 'limits', state: 'ok', detail };
  return { name: 'limits', state: 'warn', detail, remedy: `raise ulimit -n to ${LEAST_DESCRIPTORS} or more` };
}

async function sqliteCheck(): Promise<Check> {
  const name = 'sqlite';
  try {
    const { default: Sqlite } = await import('better-sqlite3');
    const db = new Sqlite(':memory:');
    const version = String(db.prepare('SELECT sqlite_version()').pluck().get());
    db.close();
    if (isAtLeast(version, LEAST_SQLITE)) return { name, state: 'ok', detail: version };
    const detail = `${version} can corrupt a database that two processes use`;
    return { name, state: 'fail', detail, remedy: 'npm install better-sqlite3@latest' };
  } catch (error) {
    const remedy = 'npm rebuild better-sqlite3; to compile it takes a C++ compiler, make and Python 3';
    const detail = isNotBuilt(error) ? 'better-sqlite3 is not built for this Node' : firstLine(error);
    return { name, state: 'fail', detail, remedy };
  }
}

function* stateChecks(directory: string): Generator<Check> {
  const name = 'state';
  const existing = nearestExisting(directory);
  const choose = 'choose another directory with TROUPE_STATE';
  try {
    if (!statSync(existing).isDirectory()) throw new Error(`${existing} is not a directory`);
    accessSync(existing, constants.W_OK | constants.X_OK);
  } catch (error) {
    yield { name, state: 'fail', detail: `${directory} cannot be written: ${firstLine(error)}`, remedy: choose };
    return;
  }
  const isLoose = existing === directory && (statSync(directory).mode & 0o077) !== 0;
  if (isLoose)
    yield { name, state: 'warn', detail: `${directory} is open to other users`, remedy: `chmod 700 ${directory}` };
  else
    yield { name, state: 'ok', detail: existing === directory ? directory : `${directory} (made at the first start)` };
  yield diskCheck(existing, choose);
}

function diskCheck(existing: string, choose: string): Check {
  const name = 'disk';
  const { type, bavail, bsize } = statfsSync(existing);
  // The type numbers mean something only on Linux.
  const network = process.platform === 'linux' ? networkFilesystem(type) : undefined;
  if (network)
    return {
      name,
      state: 'fail',
      detail: `${existing} is on ${network}, where SQLite can corrupt data`,
      remedy: choose,
    };
  const free = bavail * bsize;
  const detail = `${bytes(free)} free`;
  if (free < LEAST_FREE) return { name, state: 'fail', detail, remedy: `free some space, or ${choose}` };
  return free < ENOUGH_FREE
    ? { name, state: 'warn', detail, remedy: 'free some space' }
    : { name, state: 'ok', detail };
}

function nearestExisting(path: string): string {
  return existsSync(path) || dirname(path) === path ? path : nearestExisting(dirname(path));
}

function isAtLeast(version: string, least: readonly number[]): boolean {
  const parts = version.split('.').map(Number);
  const index = least.findIndex((part, at) => part !== (parts[at] ?? 0));
  return index < 0 || (parts[index] ?? 0) > (least[index] ?? 0);
}

export const firstLine = (error: unknown): string => sentence(error).split('\n', 1)[0] ?? '';
