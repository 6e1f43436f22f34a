// What holds a process of a server and all its descendants, so that none outlives it: also one that has left its group and its
// session, has dropped its environment and is nobody's child any more. A cgroup where one may be made, else a limit that
// marks them (ADR 32). Elsewhere than on Linux there is neither, and only the process group is held.

import { writeFileSync } from 'node:fs';
import { doorOf, endGroup, killGroup, makeGroup } from './cgroup.ts';
import { findCommand, hasInterpreter } from './command.ts';
import { limitFor, limiting } from './limit-mark.ts';
import { endLimited } from './strays.ts';

type Program = {
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string | undefined;
  readonly env: Readonly<Record<string, string>>;
};

export type Cage = {
  /**
   * What to launch in its place: it goes into the cage first and then becomes the program, with the same pid. Throws when the
   * machine is too short of something to tell.
   */
  around(program: Program): readonly [command: string, args: readonly string[]];
  /** It runs. One that could not go in by itself is put in now. */
  launched(pid: number): void;
  /** The process is gone: ends what is left of its descendants, once the machine lets us look for them. */
  end(): Promise<void>;
};

export const NO_CAGE: Cage = {
  around: ({ command, args }) => [command, args],
  launched: () => {},
  end: async () => {},
};

const SHELL = '/bin/sh';
const SYSTEM_PATH = '/usr/bin:/bin';
/** What a shell adds to the environment by itself. */
const OF_THE_SHELL = ['PWD', 'OLDPWD', 'SHLVL'];
const NOWHERE = '/dev/null';

const groups = new Set<string>();
let count = 0;

// The last resort of a daemon that ends without saying goodbye.
process.on('exit', () => {
  for (const folder of groups) killGroup(folder);
});

/** `server` is the name in the configuration: it becomes the name of a folder. `TROUPE_CGROUP=off` leaves cgroups alone. */
export function openCage(mark: string, server: string, own: NodeJS.ProcessEnv): Cage {
  if (process.platform !== 'linux') return NO_CAGE;
  const number = ++count;
  let folder: string | undefined;
  let limit: bigint | undefined;
  let isInside = false;

  return {
    around(program) {
      folder = own.TROUPE_CGROUP === 'off' ? undefined : makeGroup(mark, `${number}-${server}`);
      if (folder !== undefined) groups.add(folder);
      const { command, args, env } = program;
      if (!isRunnable(program)) return [command, args];
      limit = limitFor(mark, number);
      isInside = survivesShell(env);
      if (!isInside) return limit ? limited(limit, command, args) : [command, args];
      const added = OF_THE_SHELL.filter((name) => env[name] === undefined).join(' ');
      const door = folder === undefined ? NOWHERE : doorOf(folder);
      const lines = [limit && limiting(limit), '{ echo $$ >"$0"; } 2>/dev/null', added && `unset ${added}`];
      return [SHELL, ['-c', [...lines.filter(Boolean), 'exec "$@"'].join('\n'), door, command, ...args]];
    },
    launched(pid) {
      if (isInside || folder === undefined) return;
      try {
        writeFileSync(doorOf(folder), String(pid));
      } catch {} // it is gone already
    },
    async end() {
      if (folder !== undefined) {
        await endGroup(folder);
        groups.delete(folder);
        if (isInside) return;
      }
      if (limit !== undefined) await endLimited(limit); // also what it had started before it was put in
    },
  };
}

/** A program that cannot be run is left to the system, whose error says why. */
function isRunnable({ command, cwd, env }: Program): boolean {
  if (command.startsWith('-') || (env.PATH === undefined && !command.includes('/'))) return false;
  const program = findCommand(command, cwd, env.PATH ?? '');
  return program !== undefined && hasInterpreter(program);
}

/** Whether a shell hands the environment on as it is: it drops variables whose names it could not have written. */
const survivesShell = (env: Program['env']): boolean =>
  Object.keys(env).every((name) => /^[A-Za-z_]\w*$/.test(name)) && findCommand(SHELL, undefined, '') !== undefined;

/** The same limit without a shell; where there is no such program the process goes without it. */
function limited(limit: bigint, command: string, args: readonly string[]): readonly [string, readonly string[]] {
  const prlimit = findCommand('prlimit', undefined, SYSTEM_PATH);
  return prlimit === undefined ? [command, args] : [prlimit, [`--locks=${limit}`, '--', command, ...args]];
}
