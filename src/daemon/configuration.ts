// The configuration the daemon runs with: the file, or the embedded one when there is none. A broken file is refused whole,
// with everything that is wrong in it; a running daemon then keeps what it has. Changes are applied one after the other.

import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { Logger } from 'pino';
import { type Complaint, formatComplaint } from '../config/complaints.ts';
import { defaultConfig } from '../config/defaults.ts';
import { type Difference, difference } from '../config/difference.ts';
import { watchConfig } from '../config/file/watch.ts';
import { loadConfig } from '../config/load.ts';
import type { Paths } from '../config/paths.ts';
import type { Config } from '../config/schema.ts';
import { sentence, TroupeError } from '../protocol/failures.ts';

export type LoadedConfig = { readonly config: Config; readonly warnings: readonly Complaint[] };

export type Configuration = ReturnType<typeof createConfiguration>;
type ConfigurationOptions = {
  readonly paths: Paths;
  readonly env: NodeJS.ProcessEnv;
  readonly logger: Logger;
  /** What the daemon was started with. */
  readonly config: Config;
  /** Another one was read, and is not in force yet. */
  readonly onRead?: (config: Config) => void;
};

/** What makes a changed configuration true. */
export type Reloading = {
  /** While the old one is still in force. If it throws, the new one is refused. */
  prepare(next: Config, change: Difference): Promise<void>;
  /** The new one is in force. */
  apply(next: Config, change: Difference): void;
};

const FOR_NEXT_START =
  'the root x-troupe has changed (nats, http, plugins, requests or logLevel); that takes effect at the next start';

export function createConfiguration({ paths, env, logger, config, onRead }: ConfigurationOptions) {
  let current = config;
  let refused: string | undefined;
  let latest: Promise<unknown> = Promise.resolve();
  const isForNextStart = (next: Config) => !isDeepStrictEqual(readOnce(config), readOnce(next));

  /** Applies only what differs: a server that is not touched keeps its process and its calls. */
  async function change({ prepare, apply }: Reloading): Promise<Difference> {
    if (current.path !== undefined && !existsSync(current.path))
      throw new TroupeError('invalid', `${current.path} is gone; what runs goes on running`);
    const { config: next, warnings } = readConfig(paths, env);
    onRead?.(next);
    if (isForNextStart(next)) logger.warn(FOR_NEXT_START);
    for (const { message } of warnings) logger.warn(message);
    const changed = difference(current, next);
    await prepare(next, changed);
    current = next;
    refused = undefined;
    apply(next, changed);
    const counts = {
      added: changed.added.length,
      removed: changed.removed.length,
      relaunched: changed.relaunched.length,
      retuned: changed.retuned.length,
    };
    if (Object.values(counts).some((count) => count > 0)) logger.info(counts, 'configuration applied');
    return changed;
  }

  function reload(reloading: Reloading): Promise<Difference> {
    const changing = latest.then(() => change(reloading));
    latest = changing.catch(() => {}); // the caller of `reload` gets the error; the next reload is tried all the same
    return changing;
  }

  return {
    get current(): Config {
      return current;
    },
    /** Why the file as it is now is not in force. */
    get trouble(): string | null {
      return refused ?? (isForNextStart(current) ? FOR_NEXT_START : null);
    },
    reload,
    /** Reloads whenever the file has changed; when it could not be read for lack of something, again until it could. */
    watch(reloading: Reloading): { close(): Promise<void> } {
      let again: NodeJS.Timeout | undefined;
      const follow = (): void => {
        clearTimeout(again);
        reload(reloading).catch((error) => {
          refused = sentence(error);
          logger.error(`the configuration was not applied: ${refused}`);
          if (error instanceof NotNow) again = setTimeout(follow, AGAIN_MS).unref();
        });
      };
      const watcher = watchConfig(paths.config, follow);
      return {
        close() {
          clearTimeout(again);
          return watcher.close();
        },
      };
    },
  };
}

const AGAIN_MS = 1_000;

/** The machine cannot open the file at this moment, which says nothing of the file. */
class NotNow extends TroupeError {}

/** The settings that are read once, at the start. */
const readOnce = ({ nats, plugins, requests, logLevel, http }: Config) => [nats, plugins, requests, logLevel, http];

export function readConfig(paths: Paths, env: NodeJS.ProcessEnv): LoadedConfig {
  if (!existsSync(paths.config)) {
    if (isNamed(paths, env))
      throw new TroupeError('invalid', `there is no configuration ${paths.config}; correct the path`);
    welcome(paths);
    return { config: defaultConfig(paths), warnings: [] };
  }
  const loaded = loadConfig(paths.config, env);
  if (loaded.ok) return loaded;
  const text = loaded.complaints.map(formatComplaint).join('\n');
  if (loaded.complaints.some(({ isPassing }) => isPassing)) throw new NotNow('unavailable', text);
  throw new TroupeError('invalid', text);
}

/** A file that was named must exist; only the usual place may be empty. */
const isNamed = ({ config }: Paths, env: NodeJS.ProcessEnv) =>
  env.TROUPE_CONFIG !== undefined || !config.endsWith(join('troupe', 'troupe.json'));

/** The reference filesystem server needs a folder to show. */
function welcome({ state }: Paths): void {
  const folder = join(state, 'files');
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const file = join(folder, 'welcome.txt');
  if (existsSync(file)) return;
  writeFileSync(file, 'Whatever you put into this folder, the filesystem server can read.\n', { flag: 'wx' });
}
