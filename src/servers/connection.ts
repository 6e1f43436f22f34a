// The server machine's port to a real MCP server over stdio. Everything that can go wrong out there leaves here as an
// event; nothing throws inward. What is left when the machine lets go of it dies at once.

import { fromCallback } from 'xstate';
import type { FromConnection, ServerSpec, ToConnection } from '../../machines/server.ts';
import { sentence } from '../failures.ts';
import { splitLines } from '../protocol/lines.ts';
import type { Store } from '../store/store.ts';
import { withoutControls } from '../telemetry/printable.ts';
import { spawnChild } from './child.ts';
import { childEnvironment } from './environment.ts';
import type { Facts } from './facts.ts';
import { watchHealth } from './health.ts';
import { processIdentity } from './identity.ts';
import type { Member } from './member.ts';
import type { Said } from './notices.ts';
import { createSession } from './session.ts';
import { readStderr } from './stderr.ts';
import { strays } from './strays.ts';

export type ConnectionWorld = {
  readonly memberOf: (name: string) => Member;
  readonly store: Store;
  readonly daemon: string;
  readonly env: NodeJS.ProcessEnv;
  /** The session is open: lists may be read, levels set, subscriptions made again. */
  readonly onOpen: (member: Member, ask: ReturnType<typeof createSession>['ask']) => void;
  readonly onNotice: (member: Member, notice: Said) => void;
};

export function stdioConnection(world: ConnectionWorld) {
  return fromCallback<ToConnection, ServerSpec>(({ input, receive, sendBack }) => {
    const tell = sendBack as (event: FromConnection) => void;
    const member = world.memberOf(input.name);
    const { lane, logger, config } = member;
    const { command, args, cwd, env, settings } = config;
    const stderr = readStderr(logger.child({ source: 'stderr' }));
    const stray = strays(logger);
    let why = 'it was stopped';

    const child = spawnChild({
      ...{ command, args, cwd, stdinMs: settings.stdinMs, termMs: settings.termMs },
      env: childEnvironment(world.env, settings.env, env, world.daemon),
      onOutput: (chunk) => {
        lines.push(chunk);
        health.pace();
      },
      onErrorOutput: stderr.push,
      onSpawn: (pid) => void remember(pid),
      onExit: (reason, isMissing) => {
        stderr.end();
        forget();
        end(isMissing ? reason : withLastWords(reason, stderr.tail), isMissing);
      },
    });
    const session = createSession({
      ...{ lane, server: member.server, openMs: settings.openMs, onReady },
      send: child.write,
      reply,
      onRefused: (reason) => end(reason, true),
      onNotice: (notice) => {
        health.noise();
        world.onNotice(member, notice);
      },
      onLate: (line) => {
        health.noise();
        logger.debug({ source: 'protocol' }, `late progress: ${line.subarray(0, 200)}`);
      },
      onStray: (reason, line) => {
        health.noise();
        stray(reason, line);
      },
    });
    const lines = splitLines({
      maxBytes: settings.maxFrameBytes,
      onLine: session.receive,
      onTooLong: () =>
        end(`it sent a frame of more than ${settings.maxFrameBytes} bytes (x-troupe.maxFrameBytes)`, false),
    });
    const health = watchHealth({ member, child, ask: session.ask, tell, onSick: (reason) => end(reason, false) });

    lane.attach({ write: child.write, cancel: session.cancel, hasRoom: child.hasRoom });
    child.onRoom(lane.pump);
    session.open().catch((error) => end(`it did not open a session: ${sentence(error)}`, false));

    receive((event) => {
      if (event.type === 'drain') lane.whenIdle(() => tell({ type: 'connection.drained' }));
      else child.close();
    });

    function reply(frame: Buffer): void {
      health.noise();
      if (child.hasRoom()) child.write(frame);
      else end('it asks, but does not read the answers', false);
    }

    function onReady(facts: Facts): void {
      member.facts = facts;
      tell({ type: 'connection.ready' });
      health.start();
      world.onOpen(member, session.ask);
    }

    function end(reason: string, isFinal: boolean): void {
      why = reason;
      tell(isFinal ? { type: 'connection.refused', why } : { type: 'connection.closed', why });
    }

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

    return () => {
      health.stop();
      member.pid = undefined;
      member.subscriptions.disconnect();
      lane.whenIdle(undefined);
      child.kill();
      lane.detach(why);
    };
  });
}

/** A process that died usually said why, on its last line of stderr. */
function withLastWords(reason: string, tail: readonly string[]): string {
  const words = tail.findLast((line) => /error|fail|cannot|denied|not found/i.test(line)) ?? tail.at(-1);
  return words ? `${reason}; its last words: ${withoutControls(words).slice(0, 200)}` : reason;
}
