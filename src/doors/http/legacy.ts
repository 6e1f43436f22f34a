// HTTP+SSE, as hosts of 2024-11-05 speak it: a GET brings all events and lives as long as the session, POSTs bring the
// messages and are answered with 202. Nothing is kept: a host that loses its stream begins again.

import { randomBytes } from 'node:crypto';
import { errorObject, sentence, TroupeError } from '../../failures.ts';
import { errorFrame, resultFrame } from '../../protocol/compose.ts';
import { ERA_FACTS } from '../../protocol/eras.ts';
import type { Frame } from '../../protocol/frame.ts';
import type { HostSession, Line } from '../../sessions/host.ts';
import { acceptsEvents, isJson } from './bodies.ts';
import { startEvents, writeLive } from './events.ts';
import { NO_LINE, readMessage } from './post.ts';
import { speaksOurVersion } from './session.ts';
import { type House, INVALID_REQUEST, isGone, onGone, refuse, sendEmpty, type Visit } from './visit.ts';

export type Legacy = ReturnType<typeof createLegacy>;

type Connection = {
  readonly visit: Visit;
  /** Undefined until `initialize` was asked for; a second one is refused. */
  session: Promise<HostSession | undefined> | undefined;
};

const NO_PARAMS = Buffer.from('{}');

export function createLegacy(house: House) {
  const connections = new Map<string, Connection>();

  function open(visit: Visit): void {
    if (!acceptsEvents(visit.req.headers))
      return invalid(visit, 406, 'here are only events; send Accept: text/event-stream');
    const id = randomBytes(16).toString('hex');
    const connection: Connection = { visit, session: undefined };
    connections.set(id, connection);
    onGone(visit, () => {
      connections.delete(id);
      void connection.session?.then((session) => session?.end()).catch(trouble);
    });
    startEvents(visit, [], house.settings);
    visit.res.write(`event: endpoint\ndata: /messages?sessionId=${id}\n\n`);
  }

  function message(visit: Visit): void {
    const id = new URLSearchParams(visit.req.url?.split('?', 2)[1]).get('sessionId') ?? '';
    const connection = connections.get(id);
    if (!isJson(visit.req.headers))
      return invalid(visit, 415, 'the body must be JSON; send Content-Type: application/json');
    if (connection?.visit.principal !== visit.principal)
      return invalid(visit, 404, 'there is no such session, or its stream was closed; begin again at /sse');
    if (!speaksOurVersion(visit)) return;
    readMessage(house, visit, (frame) => void take(connection, visit, frame).catch(trouble));
  }

  async function take(connection: Connection, visit: Visit, frame: Frame): Promise<void> {
    if (frame.kind === 'request' && frame.method === 'initialize') {
      if (connection.session !== undefined) return invalid(visit, 400, 'the session is initialized already', frame.id);
      sendEmpty(visit, 202);
      connection.session = initialize(connection, frame.id, frame.params ?? NO_PARAMS);
      return;
    }
    const session = await connection.session;
    if (!session) return invalid(visit, 400, 'begin with initialize');
    if (frame.kind === 'batch' && !ERA_FACTS[session.era].batches)
      return invalid(visit, 400, `MCP ${session.era} has no batches; send one message in each POST`);
    sendEmpty(visit, 202);
    for (const each of frame.kind === 'batch' ? frame.frames : [frame]) receive(connection, session, each);
  }

  async function initialize(connection: Connection, id: string, params: Buffer): Promise<HostSession | undefined> {
    const { visit } = connection;
    const { principal, scope } = visit;
    try {
      const { session, result } = await house.sessions.open({ principal, door: 'sse', scope, params });
      const release = session.hold();
      const detach = session.attach((frame) => writeLive(visit, frame));
      const leave = (): void => {
        detach();
        release();
      };
      if (isGone(visit)) leave();
      else onGone(visit, leave);
      writeLive(visit, resultFrame(id, result));
      return session;
    } catch (error) {
      const code = error instanceof TroupeError ? error.code : 'internal';
      if (code === 'internal') trouble(error);
      const text = code === 'internal' ? 'troupe could not open a session; its log says why' : sentence(error);
      writeLive(visit, errorFrame(id, errorObject({ code, delivery: 'not sent', message: text })));
      connection.session = undefined;
      return undefined;
    }
  }

  function receive(connection: Connection, session: HostSession, frame: Frame): void {
    if (frame.kind === 'malformed') {
      const error = Buffer.from(JSON.stringify({ code: frame.code, message: frame.why }));
      return writeLive(connection.visit, errorFrame(frame.id ?? 'null', error));
    }
    if (frame.kind !== 'request') return session.receive(frame, NO_LINE);
    house.owed.count += 1;
    const line: Line = {
      tell: (told) => writeLive(connection.visit, told),
      answer: (answer) => {
        house.owed.count -= 1;
        writeLive(connection.visit, answer);
      },
    };
    session.receive(frame, line);
  }

  const trouble = (error: unknown): void => house.logger.error({ door: 'sse' }, `a message failed: ${sentence(error)}`);

  return {
    open,
    message,
    finish(): void {
      for (const { visit } of connections.values()) visit.res.end();
    },
  };
}

function invalid(visit: Visit, status: number, message: string, id?: string): void {
  refuse(visit, status, { rpc: INVALID_REQUEST, message, id });
}
