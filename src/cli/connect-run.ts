// The shim at work: stdin and stdout on one side, the daemon of the moment on the other. It outlives daemons and starts
// one when the host needs it; it ends when its host does.

import { existsSync } from 'node:fs';
import type { Paths } from '../config/paths.ts';
import { FAILURES, sentence, TroupeError } from '../protocol/failures.ts';
import { splitLines } from '../protocol/lines.ts';
import type { Starter } from './connect-daemon.ts';
import { type Link, openLink } from './connect-link.ts';
import { shimSession } from './connect-session.ts';

export type ShimOptions = {
  readonly paths: Paths;
  readonly scope: string;
  /** What `up` must be told to start the daemon that is meant. */
  readonly upWords: readonly string[];
  readonly env: NodeJS.ProcessEnv;
};

const MAX_LINE_BYTES = 64 * 1024 * 1024;
const START_POLL_MS = 25;
const FIRST_WAIT_MS = 25;
const LONGEST_WAIT_MS = 2_000;
/** How long a host that closed stdin is still given answers: while a daemon is there, and while it must first come. */
const ANSWERS_MS = 1_500;
const DAEMON_MS = 60_000;
const GOODBYE_MS = 500;
const NEWLINE = Buffer.from('\n');

export function runShim({ paths, scope, upWords, env }: ShimOptions): void {
  const { stdin, stdout, stderr } = process;
  let link: Link | undefined;
  let lastPid: number | undefined;
  let daemon: Starter | undefined;
  let isEnding = false;
  let isLeaving = false;
  let deadline: NodeJS.Timeout | undefined;
  let wake = (): void => {};

  const say = (text: string): void => void stderr.write(`troupe: ${text}\n`);
  const session = shimSession({
    toHost(bytes) {
      if (!stdout.write(bytes)) link?.socket.pause();
    },
    onRefused: (why) => fail(new TroupeError('unavailable', why)),
  });
  const fromHost = splitLines({
    ...{ maxBytes: MAX_LINE_BYTES, onLine: session.fromHost },
    onTooLong: () => fail(new TroupeError('tooLarge', 'a message of the host has more than 64 MB; troupe ends here')),
  });

  stdin.on('data', (chunk: Buffer) => {
    link?.socket.cork();
    fromHost.push(chunk);
    link?.socket.uncork();
    wake();
  });
  stdin.on('end', () => {
    isEnding = true;
    endSoon();
  });
  stdin.on('error', () => leave(0));
  stdout.on('error', () => leave(0)); // nobody reads any more
  stdout.on('drain', () => link?.socket.resume());
  stderr.on('error', () => {});
  process.on('SIGTERM', () => leave(0)).on('SIGHUP', () => leave(0));
  process.on('SIGINT', () => leave(130));
  void keepLinked();

  async function keepLinked(): Promise<void> {
    while (!isLeaving) {
      link = await reach();
      if (link) await carry(link);
      link = undefined;
      session.lost();
      stdin.resume();
    }
  }

  /** Finds a daemon. After a clean stop nobody brings it back but a host that wants something; after a crash we do. */
  async function reach(): Promise<Link | undefined> {
    for (let waitMs = FIRST_WAIT_MS; !isLeaving; waitMs = Math.min(2 * waitMs, LONGEST_WAIT_MS)) {
      try {
        return await openLink({ path: paths.socket, scope, session: session.id });
      } catch (error) {
        if (!(error instanceof TroupeError) || error.code !== 'unavailable') fail(error);
      }
      if (!isLeaving && (await isMissed())) daemon?.start();
      await pause(daemon?.isStarting ? START_POLL_MS : waitMs);
    }
    return undefined;
  }

  /** What is needed only without a daemon is loaded only then: most shims find one. */
  async function isMissed(): Promise<boolean> {
    daemon ??= (await import('./connect-daemon.ts')).starter({ words: upWords, env, onFailure: notStarted });
    if (lastPid === undefined) return true;
    const { isAlive } = await import('./daemon-status.ts');
    return (session.isBusy || existsSync(paths.note)) && !isAlive(lastPid); // one that stops still has the directory
  }

  function notStarted(why: string): void {
    if (lastPid === undefined) return fail(new TroupeError('unavailable', why));
    say(why);
    session.refuseWaiting(why);
  }

  const pause = (ms: number): Promise<void> =>
    new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });

  /** Resolves when this daemon is gone. */
  function carry({ socket, isResumed, pid, listen }: Link): Promise<void> {
    lastPid = pid;
    listen((line) => {
      session.fromDaemon(line);
      if (isEnding && !session.isBusy) leave(0);
    });
    socket.on('drain', () => stdin.resume());
    session.linked((line) => {
      socket.write(line);
      if (!socket.write(NEWLINE)) stdin.pause();
    }, isResumed);
    if (isEnding) endSoon();
    return new Promise((resolve) => {
      socket.once('close', resolve);
      if (socket.destroyed) resolve();
    });
  }

  /** A host that has said all may still want its answers: `printf … | troupe connect` does. */
  function endSoon(): void {
    if (!session.isBusy) return leave(0);
    clearTimeout(deadline);
    deadline = setTimeout(leave, link ? ANSWERS_MS : DAEMON_MS, 0);
  }

  function fail(error: unknown): void {
    const code = error instanceof TroupeError ? error.code : 'internal';
    say(sentence(error));
    session.refuseWaiting(sentence(error));
    leave(FAILURES[code].exit);
  }

  /** The daemon ends the session when it sees us go; the process ends when stdout has taken everything. */
  function leave(code: number): void {
    if (isLeaving) return;
    isLeaving = true;
    const exit = (): never => process.exit(code);
    setTimeout(exit, GOODBYE_MS);
    link?.socket.end();
    stdout.write('', exit);
  }
}
