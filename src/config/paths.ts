// Where things live on this machine, by the environment and the platform. Daemon and CLI both ask here, so that they
// meet at the same socket. Several daemons may share one state directory: all but the first have a name, and the files
// that do not bear it are shared.

import { createHash } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { homedir, userInfo } from 'node:os';
import { basename, dirname, isAbsolute, join, resolve } from 'node:path';
import { TroupeError } from '../protocol/failures.ts';
import { isServerName, mendName, NAME_RULE } from './names.ts';

export type Paths = {
  readonly state: string;
  readonly config: string;
  readonly cache: string;
  readonly socket: string;
  /** The directory of the SQLite files. */
  readonly database: string;
  readonly logs: string;
  readonly broker: string;
  /** The name of this daemon among those on the state directory; the usual one has none. */
  readonly instance?: string;
  /** The name of the lock that this daemon holds while it lives. */
  readonly lock: string;
  /** The daemon's note of itself, which a clean stop removes. */
  readonly note: string;
  readonly logFile: string;
  /** What the last start in the background said. */
  readonly startLog: string;
  /** The port that hosts know this daemon by. */
  readonly httpPort: string;
};

type PathsOptions = {
  readonly config?: string;
  readonly instance?: string;
  readonly platform?: NodeJS.Platform;
};

/** A unix socket's path may have 104 bytes on macOS and 108 on Linux, the final NUL included. */
const LONGEST_SOCKET_PATH = 100;

export function pathsOf(env: NodeJS.ProcessEnv, options: PathsOptions = {}): Paths {
  const home = env.HOME || homedir();
  const state = stateOf(env, home, options.platform ?? process.platform);
  const instance = instanceOf(options.instance ?? env.TROUPE_INSTANCE);
  const suffix = instance === undefined ? '' : `-${instance}`;
  const logs = join(state, 'logs');
  return {
    state,
    config: configOf(env, home, options.config),
    cache: join(xdg(env.XDG_CACHE_HOME) ?? join(home, '.cache'), 'troupe'),
    socket: socketOf(env, state, suffix),
    database: join(state, 'database'),
    logs,
    broker: join(state, 'nats'),
    ...(instance !== undefined && { instance }),
    lock: `daemon${suffix}`,
    note: join(state, `daemon${suffix}.json`),
    logFile: join(logs, `troupe${suffix}.log`),
    startLog: join(logs, `up${suffix}.log`),
    httpPort: join(state, `http-port${suffix}`),
  };
}

/** The name of the daemon that holds a lock: nothing for `daemon`, `<name>` for `daemon-<name>`. */
export const instanceOfLock = (lock: string): string | undefined => lock.slice('daemon-'.length) || undefined;

function instanceOf(name: string | undefined): string | undefined {
  if (!name) return undefined;
  if (isServerName(name)) return name;
  const message = `the name of an instance must match ${NAME_RULE}; call it "${mendName(name)}"`;
  throw new TroupeError('invalid', message);
}

function stateOf(env: NodeJS.ProcessEnv, home: string, platform: NodeJS.Platform): string {
  if (env.TROUPE_STATE) return resolve(env.TROUPE_STATE);
  const native = platform === 'darwin' ? join(home, 'Library', 'Application Support') : join(home, '.local', 'state');
  return join(xdg(env.XDG_STATE_HOME) ?? native, 'troupe');
}

function configOf(env: NodeJS.ProcessEnv, home: string, option: string | undefined): string {
  const chosen = option || env.TROUPE_CONFIG;
  if (chosen) return resolve(chosen);
  return join(xdg(env.XDG_CONFIG_HOME) ?? join(home, '.config'), 'troupe', 'troupe.json');
}

/** The XDG specification tells programs to ignore relative paths. */
function xdg(value: string | undefined): string | undefined {
  return value && isAbsolute(value) ? value : undefined;
}

function socketOf(env: NodeJS.ProcessEnv, state: string, suffix: string): string {
  const near = join(state, `control${suffix}.sock`);
  if (fits(near)) return near;
  // No path holds a NUL, so that no two of them can be the same.
  const hash = createHash('sha256')
    .update(suffix === '' ? state : `${state}\0${suffix}`)
    .digest('hex')
    .slice(0, 16);
  const far = (directory: string) => join(directory, `troupe-${userInfo().uid}`, `${hash}.sock`);
  const inTemporary = far(temporaryOf(env));
  return fits(inTemporary) ? inTemporary : far('/tmp');
}

const fits = (path: string): boolean => Buffer.byteLength(path) <= LONGEST_SOCKET_PATH;

/** What os.tmpdir() answers, but for the given environment and not for that of this process. */
function temporaryOf(env: NodeJS.ProcessEnv): string {
  return resolve(env.TMPDIR || env.TMP || env.TEMP || '/tmp');
}

/**
 * The paths by which the disk is touched: one state directory has one name, whatever link or spelling led to it. Two
 * daemons that spelled it differently would each end the servers of the other as leftovers.
 */
export function realPathsOf(env: NodeJS.ProcessEnv, options: PathsOptions = {}): Paths {
  const { state } = pathsOf(env, options);
  return pathsOf({ ...env, TROUPE_STATE: real(state) }, options);
}

/** The part of a path that does not exist yet is kept as it is, so that a directory has one name before and after it was made. */
function real(path: string): string {
  try {
    return realpathSync.native(path); // `native` also gives the spelling of a disk that ignores case
  } catch {
    const parent = dirname(path);
    return parent === path ? path : join(real(parent), basename(path));
  }
}
