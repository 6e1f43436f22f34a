// The server machine's port to a real MCP server, over whichever link its configuration names. Everything that can go
// wrong out there leaves here as an event; nothing throws inward. What is left when the machine lets go of it dies at once.

import type { Logger } from 'pino';
import { fromCallback } from 'xstate';
import type { FromConnection, ServerSpec, ToConnection } from '../../../machines/server.ts';
import type { Call } from '../../calls/call.ts';
import type { Facts } from '../../catalog/facts.ts';
import { sentence } from '../../protocol/failures.ts';
import { allowance } from '../../telemetry/allowance.ts';
import { failpoint } from '../../telemetry/failpoints.ts';
import type { Member } from '../member.ts';
import type { RemoteWorld } from '../remote/link.ts';
import { remoteLink } from '../remote/loader.ts';
import { type StdioWorld, stdioLink } from '../stdio/link.ts';
import { watchHealth } from './health.ts';
import type { LinkEvents } from './link.ts';
import type { Said } from './notices.ts';
import { createOwnTasks } from './own-tasks.ts';
import { type Asked, createSession, type Session } from './session.ts';

export type ConnectionWorld = StdioWorld &
  RemoteWorld & {
    readonly memberOf: (name: string) => Member;
    /** The session is open: lists may be read, levels set, subscriptions made again. */
    readonly onOpen: (member: Member, ask: Session['ask'], notify: Session['notify']) => void;
    /** The server asks something of the people it works for; it is answered once, or asks no more. */
    readonly onAsk: (member: Member, asked: Asked) => void;
    readonly onNotice: (member: Member, notice: Said, origin: string | undefined) => void;
  };

export function serverConnection(world: ConnectionWorld) {
  return fromCallback<ToConnection, ServerSpec>(({ input, receive, sendBack }) => {
    const tell = sendBack as (event: FromConnection) => void;
    const member = world.memberOf(input.name);
    const { lane, logger, config } = member;
    const dropped = logDropped(logger);
    let why = 'it was stopped';

    const events: LinkEvents = {
      onMessage: (bytes, origin) => session.receive(bytes, origin),
      onChunk: () => health.pace(),
      onRoom: () => lane.pump(),
      onClosed: end,
      onUnauthorized(reason) {
        why = reason;
        tell({ type: 'connection.unauthorized', why });
      },
      onUnreachable: () => member.probe?.(),
      onSessionLost() {
        logger.info('it forgot the session; a new one is opened');
        open();
      },
      onFailed(id, failure) {
        upstream.failed(id);
        lane.fail(id, failure);
        // A server that could not be reached, or broke off, may be gone altogether.
        if (failure.code === 'unavailable' || failure.code === 'lost') member.probe?.();
      },
      isPending: (id) => upstream.isPending(id),
    };
    const link =
      config.transport === 'stdio'
        ? stdioLink(world, member, config, events)
        : remoteLink(world, member, config, events);
    const upstream = createOwnTasks({ member, catalog: world.catalog, send, giveUp });
    const session = createSession({
      lane,
      server: member.server,
      openMs: config.settings.openMs,
      via: world.daemon,
      send: link.notify,
      reply,
      onNegotiated: link.negotiated,
      onReady,
      onRefused: (reason) => end(reason, true),
      upstream: {
        ...upstream,
        told(task) {
          health.noise();
          return upstream.told(task);
        },
      },
      onNotice: (notice, origin) => {
        health.noise();
        world.onNotice(member, notice, origin);
      },
      onAsk: (asked) => world.onAsk(member, asked),
      onLate: (line) => {
        health.noise();
        logger.debug({ source: 'protocol' }, `late progress: ${line.subarray(0, 200)}`);
      },
      onStray: (reason, line) => {
        health.noise();
        dropped(reason, line);
      },
    });
    const health = watchHealth({ member, link, ask: session.ask, tell, onSick: (reason) => end(reason, false) });

    lane.attach({ write: upstream.write, cancel: upstream.cancel, hasRoom: link.hasRoom });
    open();

    receive((event) => {
      if (event.type === 'drain') lane.whenIdle(() => tell({ type: 'connection.drained' }));
      else link.close();
    });

    function send(frame: Buffer, id: string, call: Call): void {
      link.request(frame, id, call);
      if (call.task !== undefined) setImmediate(failpoint, 'task.sent'); // what is written is flushed first
    }

    function open(): void {
      session.open().catch((error) => end(`it did not open a session: ${sentence(error)}`, false));
    }

    function giveUp(id: string, reason: string): void {
      if (link.drop(id)) session.cancel(id, reason);
    }

    function reply(frame: Buffer): void {
      health.noise();
      if (!link.reply(frame)) end('it asks, but does not read the answers', false);
    }

    function onReady(facts: Facts): void {
      member.facts = facts;
      tell({ type: 'connection.ready' });
      health.start();
      // An ask of its own for each session: what was set in the last one does not hold in this one.
      world.onOpen(member, (...asked) => session.ask(...asked), session.notify);
    }

    function end(reason: string, isFinal: boolean): void {
      why = reason;
      tell(isFinal ? { type: 'connection.refused', why } : { type: 'connection.closed', why });
    }

    return () => {
      health.stop();
      member.subscriptions.disconnect();
      lane.whenIdle(undefined);
      link.kill();
      session.close();
      lane.detach(why);
      upstream.close();
    };
  });
}

/**
 * Messages of a server that have no place in the protocol are dropped: a line of text, an answer to no request, a late one.
 * They are logged at a bounded pace for those who debug the server.
 */
function logDropped(logger: Logger): (why: string, line: Buffer) => void {
  const pace = allowance(20);
  return (why, line) => {
    if (!pace.take()) return;
    const missing = pace.forget();
    const excerpt = line.subarray(0, 200).toString('utf8');
    logger.warn({ source: 'protocol', excerpt, ...(missing > 0 && { missing }) }, `dropped ${why}`);
  };
}
