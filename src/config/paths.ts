// Where things live on this machine: a pure function of the environment and the platform.
// Daemon and CLI both ask here, so that they always meet at the same socket.

import { createHash } from 'node:crypto';
import { homedir, userInfo } from 'node:os';
import { isAbsolute, join, resolve } from 'node:path';

export type Paths = {
  readonly state: string;
  readonly config: string;
  readonly cache: string;
  readonly socket: string;
  /** The directory of the SQLite files. */
  readonly database: string;
  readonly logs: string;
  readonly broker: string;
};

type Options = { readonly config?: string; readonly platform?: NodeJS.Platform };

/** A unix socket's path may have 104 bytes on macOS and 108 on Linux, the final NUL included. */
const LONGEST_SOCKET_PATH = 100;

export function pathsOf(env: NodeJS.ProcessEnv, options: Options = {}): Paths {
  const home = env.HOME || homedir();
  const state = stateOf(env, home, options.platform ?? process.platform);
  return {
    state,
    config: configOf(env, home, options.config),
    cache: join(xdg(env.XDG_CACHE_HOME) ?? join(home, '.cache'), 'troupe'),
    socket: socketOf(env, state),
    database: join(state, 'database'),
    logs: join(state, 'logs'),
    broker: join(state, 'nats'),
  };
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

function socketOf(env: NodeJS.ProcessEnv, state: string): string {
  const near = join(state, 'control.sock');
  if (fits(near)) return near;
  const hash = createHash('sha256').update(state).digest('hex').slice(0, 16);
  const far = (directory: string) => join(directory, `troupe-${userInfo().uid}`, `${hash}.sock`);
  const inTemporary = far(temporaryOf(env));
  return fits(inTemporary) ? inTemporary : far('/tmp');
}

const fits = (path: string): boolean => Buffer.byteLength(path) <= LONGEST_SOCKET_PATH;

/** What os.tmpdir() answers, but for the given environment and not for that of this process. */
function temporaryOf(env: NodeJS.ProcessEnv): string {
  return resolve(env.TMPDIR || env.TMP || env.TEMP || '/tmp');
}
