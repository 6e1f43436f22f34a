// The process of a server, the leader of its own process group, so that its own children go down with it; and what the process
// may see of our environment. Its goodbye is a ladder: close stdin, SIGTERM to the group, SIGKILL to the group.

import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { MARKER } from '../../protocol/version.ts';
import { shortageOf } from '../../world/limits.ts';
import { createBatches } from './batches.ts';
import { type Cage, NO_CAGE } from './cage.ts';

export type ChildOptions = {
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string | undefined;
  readonly env: Readonly<Record<string, string>>;
  /** What its descendants cannot leave; nothing unless told. */
  readonly cage?: Cage;
  readonly stdinMs: number;
  readonly termMs: number;
  readonly onOutput: (chunk: Buffer) => void;
  readonly onErrorOutput: (chunk: Buffer) => void;
  readonly onSpawn: (pid: number) => void;
  /** Exactly once. */
  readonly onExit: (why: string, end: ChildEnd) => void;
};

export type Child = {
  readonly pid: number | undefined;
  write(frame: Buffer): void;
  hasRoom(): boolean;
  onRoom(listener: () => void): void;
  pause(): void;
  resume(): void;
  close(): void;
  kill(): void;
};

/** `missing`: the command itself was not found or may not be run. `short`: the machine had nothing left to run it with. */
export type ChildEnd = 'ended' | 'missing' | 'short';

const MAX_UNREAD_BYTES = 16 * 1024 * 1024;
/** How long the pipe of a dead leader may be held open by a descendant that left its group. */
const PIPE_HELD_MS = 500;
const living = new Set<number>();

// The last resort of a daemon that ends without saying goodbye: children must not outlive it.
process.on('exit', () => {
  for (const pid of living) signalGroup(pid, 'SIGKILL');
});

export function spawnChild(options: ChildOptions): Child {
  const { cage = NO_CAGE, onOutput, onErrorOutput } = options;
  const subprocess = launch(options);
  if (!subprocess) return UNBORN;
  const { stdin, stdout, stderr, pid } = subprocess;
  const batches = createBatches((batch) => {
    if (!isOver && stdin.writable) stdin.write(batch);
  });
  let ladder: NodeJS.Timeout | undefined;
  let isOver = false;
  living.add(pid);
  cage.launched(pid);
  options.onSpawn(pid);
  stdout.on('data', onOutput);
  stderr.on('data', onErrorOutput);
  // A child that closed its end is about to exit, and its exit is what we report.
  for (const each of [stdin, stdout, stderr, subprocess]) each.on('error', () => {});

  const over = (why: string): void => {
    if (isOver) return;
    isOver = true;
    options.onExit(why, 'ended');
  };
  // The leader's exit ends the group; its last words are still in the pipe, which closes once no process holds it.
  subprocess.once('exit', (code, signal) => {
    const why = signal ? `killed by ${signal}` : `exited with code ${code}`;
    clearTimeout(ladder);
    signalGroup(pid, 'SIGKILL');
    living.delete(pid);
    void cage.end();
    stdout.resume();
    subprocess.once('close', () => over(why));
    setTimeout(over, PIPE_HELD_MS, why).unref();
  });

  return {
    pid,
    write: batches.add,
    hasRoom: () => stdin.writableLength < MAX_UNREAD_BYTES,
    onRoom: (listener) => void stdin.on('drain', listener),
    pause: () => void stdout.pause(),
    resume: () => void stdout.resume(),
    close(): void {
      if (isOver || ladder) return;
      batches.flush();
      stdin.end();
      ladder = setTimeout(() => {
        signalGroup(pid, 'SIGTERM');
        ladder = setTimeout(signalGroup, options.termMs, pid, 'SIGKILL');
      }, options.stdinMs);
    },
    kill(): void {
      clearTimeout(ladder);
      stdout.removeListener('data', onOutput);
      stdout.destroy();
      if (!isOver) signalGroup(pid, 'SIGKILL');
    },
  };
}

/**
 * Undefined when there is no process, and then `onExit` says why in a later turn. Node throws some reasons and tells others as
 * an event; for lack of descriptors it makes no pipes at all, so that nothing of such a child can be used.
 */
function launch(options: ChildOptions): (ChildProcessWithoutNullStreams & { readonly pid: number }) | undefined {
  const { cwd, env, cage = NO_CAGE } = options;
  const refused = (error: NodeJS.ErrnoException): void => {
    const shortage = shortageOf(error);
    void cage.end();
    if (shortage) options.onExit(`could not run ${options.command}: ${shortage}`, 'short');
    else options.onExit(notRunnable(options, error), 'missing');
  };
  try {
    const [command, args] = cage.around(options);
    const child = spawn(command, args, { ...(cwd !== undefined && { cwd }), env, detached: true, stdio: 'pipe' });
    if (child.pid !== undefined) return child as ChildProcessWithoutNullStreams & { readonly pid: number };
    child.once('error', refused);
  } catch (error) {
    setImmediate(() => refused(error as NodeJS.ErrnoException));
  }
  return undefined;
}

/** Stands for a child that was never there. */
const UNBORN: Child = {
  pid: undefined,
  write(): void {},
  hasRoom: () => true,
  onRoom(): void {},
  pause(): void {},
  resume(): void {},
  close(): void {},
  kill(): void {},
};

export function signalGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid, signal);
  } catch {} // the group is gone, which is what we wanted
}

function notRunnable({ command, cwd }: ChildOptions, { code, message }: NodeJS.ErrnoException): string {
  if (code === 'EACCES') return `may not run ${command}; make it executable`;
  if (code !== 'ENOENT') return `could not run ${command}: ${message}`;
  const where =
    cwd === undefined ? 'install it or give its full path' : `install it, give its full path, or check cwd ${cwd}`;
  return `command ${command} was not found; ${where}`;
}

/** The variables that a program needs to run at all; none of them is a secret. */
const MINIMAL = ['PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'TERM', 'LANG', 'LC_ALL', 'LC_CTYPE', 'TMPDIR', 'TZ'];

/** What leads back to us: whoever has it may come in as the owner. Only a configuration that names one passes it on. */
const isWayBack = (name: string): boolean => /^(TROUPE|NATS)_/.test(name);

/**
 * What a server's process gets to see of our environment: little. Its secrets are the ones its configuration names, never
 * the ones that happened to be in the daemon's shell. The marker is on every descendant of this daemon, so that the next
 * daemon finds those that left their process group.
 */
export function childEnvironment(
  own: NodeJS.ProcessEnv,
  policy: 'minimal' | 'inherit' | readonly string[],
  given: Readonly<Record<string, string>>,
  marker: string,
): Record<string, string> {
  const names = policy === 'inherit' ? inherited(own) : policy === 'minimal' ? MINIMAL : [...MINIMAL, ...policy];
  const passed = names.flatMap((name) => (own[name] === undefined ? [] : [[name, own[name]] as const]));
  return { ...Object.fromEntries(passed), ...given, [MARKER]: marker };
}

const inherited = (own: NodeJS.ProcessEnv): string[] => Object.keys(own).filter((name) => !isWayBack(name));
