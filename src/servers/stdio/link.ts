// The link to a server that is a process of ours: a message is a line on its stdin or stdout. Its pid is written down, so
// that it can be found after we were killed. What it says on stderr is for the log of its owner, and goes nowhere else: it may
// hold secrets of the server, which are no business of those who call it.

import type { Logger } from 'pino';
import type { StdioServer } from '../../config/schema.ts';
import { sentence } from '../../protocol/failures.ts';
import { splitLines } from '../../protocol/lines.ts';
import { processIdentity } from '../../store/process-identity.ts';
import type { Store } from '../../store/store.ts';
import { allowance } from '../../telemetry/allowance.ts';
import { bytesPass } from '../../world/collector.ts';
import type { Link, LinkEvents } from '../connection/link.ts';
import type { Member } from '../member.ts';
import { openCage } from './cage.ts';
import { childEnvironment, spawnChild } from './child.ts';

export type StdioWorld = { readonly store: Store; readonly daemon: string; readonly env: NodeJS.ProcessEnv };

export function stdioLink(world: StdioWorld, member: Member, config: StdioServer, events: LinkEvents): Link {
  const { logger } = member;
  const { command, args, cwd, env, settings } = config;
  const stderr = readStderr(logger.child({ source: 'stderr' }));
  const lines = splitLines({
    maxBytes: settings.maxFrameBytes,
    onLine: (line) => events.onMessage(line),
    onTooLong: () =>
      events.onClosed(`it sent a frame of more than ${settings.maxFrameBytes} bytes (x-troupe.maxFrameBytes)`, false),
  });
  const child = spawnChild({
    command,
    args,
    cwd,
    stdinMs: settings.stdinMs,
    termMs: settings.termMs,
    env: childEnvironment(world.env, settings.env, env, world.daemon),
    cage: openCage(world.daemon, member.server, world.env),
    onOutput: (chunk) => {
      bytesPass(chunk.length);
      lines.push(chunk);
      events.onChunk();
    },
    onErrorOutput: stderr.push,
    onSpawn: (pid) => void remember(pid),
    onExit: (reason, end) => {
      stderr.end();
      forget();
      if (end === 'short') return events.onShort(reason);
      events.onClosed(stderr.hasSpoken ? `${reason}; see troupe logs ${member.server}` : reason, end === 'missing');
    },
  });
  child.onRoom(events.onRoom);

  async function remember(pid: number): Promise<void> {
    member.pid = pid;
    const identity = await processIdentity(pid);
    if (!identity || member.pid !== pid) return;
    const { startTime, bootId } = identity;
    const row = ['server', member.name, pid, startTime, bootId, world.daemon, Date.now()];
    await world.store.commit('putProcess', row).catch((error) => logger.warn(`${sentence(error)}`));
  }

  function forget(): void {
    if (child.pid !== undefined) world.store.write('deleteProcess', ['server', member.name, child.pid]);
  }

  return {
    request: child.write,
    notify: child.write,
    reply(frame) {
      if (!child.hasRoom()) return false;
      child.write(frame);
      return true;
    },
    drop: () => true,
    negotiated: () => {},
    hasRoom: child.hasRoom,
    pause: child.pause,
    resume: child.resume,
    close: child.close,
    kill() {
      member.pid = undefined;
      child.kill();
    },
  };
}

type Stderr = { push(chunk: Buffer): void; end(): void; readonly hasSpoken: boolean };

const LINES_PER_SECOND = 200;
const LINE_CHARACTERS = 4_096;
const LAST_LINES = 5;

/** Every line of a server's stderr goes to the log at a bounded pace; the last few always do, because they explain a death. */
function readStderr(logger: Logger): Stderr {
  const pace = allowance(LINES_PER_SECOND);
  const decoder = new TextDecoder();
  let rest = '';
  let hasSpoken = false;
  /** The last lines, as far as they came too fast, or are not of the level of the log. */
  let unsaid: string[] = [];

  function tellMissing(): void {
    const missing = pace.forget();
    if (missing > 0) logger.warn({ missing }, `${missing} lines of stderr were left out, they came too fast`);
  }

  function line(text: string): void {
    const cut = text.trimEnd();
    if (cut === '') return;
    hasSpoken = true;
    if (!logger.isLevelEnabled('info') || !pace.take()) {
      unsaid = [...unsaid.slice(1 - LAST_LINES), cut];
      return;
    }
    unsaid = [];
    tellMissing();
    logger.info(cut);
  }

  return {
    push(chunk) {
      // In a flood most lines are dropped anyway, so they are not even cut apart.
      if (chunk.length >= LINE_CHARACTERS && pace.heldBack > 0 && !pace.take()) return;
      const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
      rest = (lines.pop() ?? '').slice(0, LINE_CHARACTERS);
      for (const text of lines) line(text.slice(0, LINE_CHARACTERS));
    },
    end() {
      line(rest);
      rest = '';
      tellMissing();
      for (const text of unsaid) logger.warn(text);
    },
    get hasSpoken() {
      return hasSpoken;
    },
  };
}
