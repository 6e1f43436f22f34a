// The configuration the daemon runs with: the file, or the embedded one when there is none. A broken file is refused
// whole, with everything that is wrong in it; a running daemon then keeps what it has.

import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Complaint, formatComplaint } from '../config/complaints.ts';
import { defaultConfig } from '../config/defaults.ts';
import { loadConfig } from '../config/load.ts';
import type { Paths } from '../config/paths.ts';
import type { Config } from '../config/schema.ts';
import { TroupeError } from '../protocol/failures.ts';

export type Settings = { readonly config: Config; readonly warnings: readonly Complaint[] };

export function readConfig(paths: Paths, env: NodeJS.ProcessEnv): Settings {
  if (!existsSync(paths.config)) {
    if (isAsked(paths, env))
      throw new TroupeError('invalid', `there is no configuration ${paths.config}; correct the path`);
    welcome(paths);
    return { config: defaultConfig(paths), warnings: [] };
  }
  const loaded = loadConfig(paths.config, env);
  if (loaded.ok) return loaded;
  throw new TroupeError('invalid', loaded.complaints.map(formatComplaint).join('\n'));
}

/** A file that was named must be there; only the usual place may be empty. */
const isAsked = ({ config }: Paths, env: NodeJS.ProcessEnv) =>
  env.TROUPE_CONFIG !== undefined || !config.endsWith(join('troupe', 'troupe.json'));

/** The reference filesystem server needs a folder to show. */
function welcome({ state }: Paths): void {
  const folder = join(state, 'files');
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const file = join(folder, 'welcome.txt');
  if (!existsSync(file)) writeFileSync(file, 'Whatever you put into this folder, the filesystem server can read.\n');
}
