// The MCP session with one server: it negotiates, sends only what was negotiated, and sorts what comes back.
// Nothing a server says is trusted: a bad frame is counted and dropped, an answer to nobody changes nothing.

import type { Lane } from '../calls/lane.ts';
import { errorFrame, notificationFrame, resultFrame } from '../protocol/compose.ts';
import { ERA_FACTS, type Era, eraOf, LATEST } from '../protocol/eras.ts';
import { type Frame, readFrame } from '../protocol/frame.ts';
import { VERSION } from '../version.ts';
import { asker } from './ask.ts';
import type { Facts } from './facts.ts';
import { parsed, readNotice, type Said } from './notices.ts';

export type SessionOptions = {
  readonly lane: Lane;
  readonly server: string;
  readonly send: (frame: Buffer) => void;
  /** An answer to what the server asked; it may ask faster than it reads. */
  readonly reply: (frame: Buffer) => void;
  readonly onReady: (facts: Facts) => void;
  /** This server cannot be talked to at all, and trying again would not help. */
  readonly onRefused: (why: string) => void;
  readonly onNotice: (notice: Said) => void;
  readonly onStray: (why: string, line: Buffer) => void;
  /** Progress of a call that is over, which is nobody's fault, or that goes backwards. */
  readonly onLate: (line: Buffer) => void;
  readonly openMs: number;
};

export type Session = ReturnType<typeof createSession>;

const EMPTY = Buffer.from('{}');
const NO_METHOD = (method: string) => JSON.stringify({ code: -32601, message: `troupe does not answer ${method}` });

export function createSession(options: SessionOptions) {
  const { lane, server, send, reply, onReady, onRefused, onNotice, onStray, onLate } = options;
  const ask = asker(lane, server);
  let era: Era | undefined;

  async function open(): Promise<void> {
    const params = { protocolVersion: LATEST, capabilities: {}, clientInfo: { name: 'troupe', version: VERSION } };
    const answer = await ask('initialize', params, options.openMs);
    const facts = factsOf(answer);
    if (typeof facts === 'string') return onRefused(facts);
    era = facts.era;
    send(notificationFrame('notifications/initialized'));
    onReady(facts);
  }

  function receive(line: Buffer): void {
    take(readFrame(line), line);
  }

  function take(frame: Frame, line: Buffer): void {
    switch (frame.kind) {
      case 'result':
      case 'error': {
        const body = frame.kind === 'result' ? frame.result : frame.error;
        if (!lane.answer(frame.id, frame.kind, body)) onStray('an answer to nobody', line);
        return;
      }
      case 'notification':
        return notified(frame.method, frame.params ?? EMPTY, line);
      case 'request':
        return reply(answerTo(frame.id, frame.method));
      case 'batch':
        if (era && !ERA_FACTS[era].batches) return onStray(`a batch, which ${era} does not have`, line);
        for (const part of frame.frames) take(part, line);
        return;
      case 'malformed':
        onStray(frame.why, line);
        if (frame.id !== undefined)
          reply(errorFrame(frame.id, Buffer.from(JSON.stringify({ code: frame.code, message: frame.why }))));
        return;
    }
  }

  function notified(method: string, params: Buffer, line: Buffer): void {
    const notice = readNotice(method, params);
    if (typeof notice === 'string') return onStray(notice, line);
    if (notice.type !== 'progress') return onNotice(notice);
    if (!lane.progress(notice.token, notice.progress)) onLate(line);
  }

  return {
    open,
    receive,
    ask,
    cancel: (id: string, reason: string) =>
      send(
        notificationFrame('notifications/cancelled', Buffer.from(JSON.stringify({ requestId: Number(id), reason }))),
      ),
  };
}

function answerTo(id: string, method: string): Buffer {
  return method === 'ping' ? resultFrame(id, EMPTY) : errorFrame(id, Buffer.from(NO_METHOD(method)));
}

type Answer = { protocolVersion?: unknown; capabilities?: unknown; serverInfo?: unknown; instructions?: unknown };

function factsOf(answer: Buffer): Facts | string {
  const { protocolVersion, capabilities, serverInfo, instructions } = parsed(answer) as Answer;
  const era = typeof protocolVersion === 'string' ? eraOf(protocolVersion) : undefined;
  if (!era)
    return `it speaks MCP ${JSON.stringify(protocolVersion)?.slice(0, 40)}, which troupe does not know; update troupe or the server`;
  const info = (serverInfo ?? {}) as { name?: unknown; version?: unknown };
  return {
    era,
    capabilities: (capabilities && typeof capabilities === 'object' ? capabilities : {}) as Facts['capabilities'],
    name: String(info.name ?? ''),
    version: String(info.version ?? ''),
    ...(typeof instructions === 'string' && { instructions }),
  };
}
