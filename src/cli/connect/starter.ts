// Starts the daemon for a shim that finds none, as a person would with `troupe up --detach`, and reports why it did not start.
// One start at a time, and after a failure only after a pause.

import { spawn } from 'node:child_process';

export type Starter = {
  /** Begins a start, unless one is under way or the last one failed just now. */
  start(): void;
  readonly isStarting: boolean;
};
type Options = {
  readonly words: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  readonly onStart: () => void;
  readonly onFailure: (why: string) => void;
};

const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 30_000;
const MAX_WORDS = 4_096;

export function starter({ words, env, onStart, onFailure }: Options): Starter {
  let isStarting = false;
  let pauseMs = 0;
  let notBefore = 0;

  function start(): void {
    const script = process.argv[1];
    if (isStarting || performance.now() < notBefore || script === undefined) return;
    isStarting = true;
    onStart();
    let said = '';
    // In a group of its own: a signal that ends the host and the shim must not end the daemon, which others use.
    const child = spawn(process.execPath, [...process.execArgv, script, 'up', '--detach', ...words], {
      env,
      detached: true,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    child.stderr?.on('data', (chunk: Buffer) => {
      said = (said + chunk.toString()).slice(-MAX_WORDS);
    });
    child.once('error', (error) => ended(error.message));
    child.once('close', (code) => ended(code === 0 ? undefined : said.trim() || `it ended with code ${code}`));
  }

  function ended(why: string | undefined): void {
    if (!isStarting) return;
    isStarting = false;
    pauseMs = why === undefined ? 0 : Math.min(LONGEST_PAUSE_MS, Math.max(FIRST_PAUSE_MS, pauseMs * 2));
    notBefore = performance.now() + pauseMs;
    if (why !== undefined) onFailure(why.replace(/^troupe: /, ''));
  }

  return {
    start,
    get isStarting() {
      return isStarting;
    },
  };
}
