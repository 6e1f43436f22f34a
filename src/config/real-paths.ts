// The paths by which the disk is touched: one state directory has one name, through whatever link or spelling it is
// reached. Two daemons that spell it differently would take each other for strangers, and their servers for orphans.

import { realpathSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { type Paths, type PathsOptions, pathsOf } from './paths.ts';

export function realPathsOf(env: NodeJS.ProcessEnv, options: PathsOptions = {}): Paths {
  const { state } = pathsOf(env, options);
  return pathsOf({ ...env, TROUPE_STATE: real(state) }, options);
}

/** What is not there yet is no link, so that a directory has the same name before and after it was made. */
function real(path: string): string {
  try {
    return realpathSync.native(path); // which also knows how a disk that ignores case spells it
  } catch {
    const parent = dirname(path);
    return parent === path ? path : join(real(parent), basename(path));
  }
}
