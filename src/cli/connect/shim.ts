// The shim: stdin and stdout of the host on one end, a daemon on the other. It outlives daemons and starts one when the host
// needs it; it ends when its host does.

import { existsSync } from 'node:fs';
import type { Paths } from '../../config/paths.ts';
import { FAILURES, sentence, TroupeError } from '../../protocol/failures.ts';
import { splitLines } from '../../protocol/lines.ts';
import { MARKER } from '../../protocol/version.ts';
import { printable } from '../../telemetry/printable.ts';
import { type Link, openLink } from './link.ts';
import { ShimSession } from './session.ts';
import type { Starter } from './starter.ts';

export type ShimOptions = {
  readonly paths: Paths;
  readonly scope: string;
  /** The options of `up` that start the same daemon. */
  readonly upWords: readonly string[];
  readonly env: NodeJS.ProcessEnv;
};

const MAX_LINE_BYTES = 64 * 1024 * 1024;
const START_POLL_MS = 25;
const FIRST_WAIT_MS = 25;
const LONGEST_WAIT_MS = 2_000;
/** How long a host that closed stdin is still given answers: with a daemon there, and with one that must first be started. */
const ANSWERS_MS = 1_500;
const DAEMON_MS = 60_000;
const GOODBYE_MS = 500;
const NEWLINE = Buffer.from('\n');

export function runShim(options: ShimOptions): void {
  const shim = new Shim(options);
  const { stdin, stdout, stderr } = process;
  stdin.on('data', (chunk: Buffer) => shim.fromHost(chunk));
  stdin.on('end', () => shim.hostEnded());
  stdin.on('error', () => shim.leave(0));
  stdout.on('error', () => shim.leave(0)); // the host does not read any more
  stdout.on('drain', () => shim.hostDrained());
  stderr.on('error', () => {}); // messages are lost, the session goes on
  process.on('SIGTERM', () => shim.leave(0)).on('SIGHUP', () => shim.leave(0));
  process.on('SIGINT', () => shim.leave(130));
  void shim.keepLinked();
}

class Shim {
  readonly #options: ShimOptions;
  readonly #session = new ShimSession({
    toHost: (bytes) => {
      if (!process.stdout.write(bytes)) this.#link?.socket.pause();
    },
    onRefused: (why) => this.#fail(new TroupeError('unavailable', why)),
  });
  readonly #lines = splitLines({
    maxBytes: MAX_LINE_BYTES,
    onLine: (line) => this.#session.fromHost(line),
    onTooLong: () =>
      this.#fail(new TroupeError('tooLarge', 'a message of the host has more than 64 MB; troupe ends here')),
  });
  #link: Link | undefined;
  /** The last daemon that was reached. */
  #pid: number | undefined;
  #starter: Starter | undefined;
  #isEnding = false;
  #isLeaving = false;
  #deadline: NodeJS.Timeout | undefined;
  #wake = (): void => {};

  constructor(options: ShimOptions) {
    this.#options = options;
  }

  fromHost(chunk: Buffer): void {
    this.#link?.socket.cork();
    this.#lines.push(chunk);
    this.#link?.socket.uncork();
    this.#wake();
  }

  hostDrained(): void {
    this.#link?.socket.resume();
  }

  hostEnded(): void {
    this.#isEnding = true;
    this.#endSoon();
  }

  async keepLinked(): Promise<void> {
    while (!this.#isLeaving) {
      this.#link = await this.#reach();
      if (this.#link) await this.#carry(this.#link);
      this.#link = undefined;
      this.#session.lost();
      process.stdin.resume();
    }
  }

  /** The daemon closes the session when the socket ends; the process ends when stdout has taken everything. */
  leave(code: number): void {
    if (this.#isLeaving) return;
    this.#isLeaving = true;
    const exit = (): never => process.exit(code);
    setTimeout(exit, GOODBYE_MS);
    this.#link?.socket.end();
    process.stdout.write('', exit);
  }

  /** Connects to a daemon, and starts one where it is missed. */
  async #reach(): Promise<Link | undefined> {
    const { paths, scope, env } = this.#options;
    for (let waitMs = FIRST_WAIT_MS; !this.#isLeaving; waitMs = Math.min(2 * waitMs, LONGEST_WAIT_MS)) {
      try {
        return await openLink({ path: paths.socket, scope, session: this.#session.id, via: env[MARKER] ?? '' });
      } catch (error) {
        if (!(error instanceof TroupeError) || error.code !== 'unavailable') this.#fail(error);
      }
      if (!this.#isLeaving && (await this.#isMissed())) this.#starter?.start();
      await this.#pause(this.#starter?.isStarting ? START_POLL_MS : waitMs);
    }
    return undefined;
  }

  /** After a clean stop a daemon is started only for a host that waits for something; after a crash always. */
  async #isMissed(): Promise<boolean> {
    const { paths, upWords, env } = this.#options;
    // Loaded only without a daemon: most shims find one.
    const [{ starter }, { startWords }] = await Promise.all([import('./starter.ts'), import('./others.ts')]);
    const onStart = (): void => startWords(paths).forEach(say);
    this.#starter ??= starter({ words: upWords, env, onStart, onFailure: (why) => this.#notStarted(why) });
    if (this.#pid === undefined) return true;
    const { isAlive } = await import('../daemon/running.ts');
    // A daemon that is still stopping holds the state directory.
    return (this.#session.isBusy || existsSync(paths.note)) && !isAlive(this.#pid);
  }

  #notStarted(why: string): void {
    if (this.#pid === undefined) return this.#fail(new TroupeError('unavailable', why));
    say(why);
    this.#session.refuseWaiting(why);
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** Resolves when this daemon is gone. */
  #carry({ socket, isResumed, pid, listen }: Link): Promise<void> {
    const { stdin } = process;
    this.#pid = pid;
    listen((line) => {
      this.#session.fromDaemon(line);
      if (this.#isEnding && !this.#session.isBusy) this.leave(0);
    });
    socket.on('drain', () => stdin.resume());
    this.#session.linked((line) => {
      socket.write(line);
      if (!socket.write(NEWLINE)) stdin.pause();
    }, isResumed);
    if (this.#isEnding) this.#endSoon();
    return new Promise((resolve) => {
      socket.once('close', resolve);
      if (socket.destroyed) resolve();
    });
  }

  /** A host that closed stdin may still want its answers, as `printf … | troupe connect` does. */
  #endSoon(): void {
    if (!this.#session.isBusy) return this.leave(0);
    clearTimeout(this.#deadline);
    this.#deadline = setTimeout(() => this.leave(0), this.#link ? ANSWERS_MS : DAEMON_MS);
  }

  #fail(error: unknown): void {
    const code = error instanceof TroupeError ? error.code : 'internal';
    say(sentence(error));
    this.#session.refuseWaiting(sentence(error));
    this.leave(FAILURES[code].exit);
  }
}

const say = (text: string): void => void process.stderr.write(`troupe: ${printable(text)}\n`);
