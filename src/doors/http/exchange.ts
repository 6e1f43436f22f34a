// One POST and the answers to its requests: plain JSON if they come soon and alone, else a stream of events which the host
// can come back to. A host that leaves cancels nothing: what comes then goes to its stream, if it has one.

import { sentence, TroupeError } from '../../failures.ts';
import type { HostSession, Line, Stream } from '../../sessions/host.ts';
import { startEvents, writeLive } from './events.ts';
import { readStream } from './reading.ts';
import { type House, isGone, sendJson, type Visit } from './visit.ts';

export type Exchanged = {
  readonly visit: Visit;
  readonly session: HostSession;
  /** Of the requests that are to be answered: at least one. */
  readonly ids: readonly string[];
  readonly isBatch: boolean;
};

type Message = { readonly frame: Buffer; readonly isLast: boolean };

export function beginExchange(house: House, { visit, session, ids, isBatch }: Exchanged): Line {
  const leave = session.hold();
  house.owed.count += 1;
  let owed = ids.length;
  /** What has come and has not gone: answers that may yet be JSON, or messages whose stream is being committed. */
  let held: Message[] | undefined;
  let append: Stream['append'] | undefined;
  let isStream = false;
  const timer = setTimeout(becomeStream, house.timing.patienceMs);

  function becomeStream(): void {
    clearTimeout(timer);
    if (isStream || isGone(visit)) return;
    isStream = true;
    house.sessions.streams.open(session.id, ids[0] ?? 'null').then(keep, keepNothing);
  }

  function keep(stream: Stream): void {
    release(stream.append);
    const place = { stream: stream.id, after: 0 };
    if (!isGone(visit)) readStream(house, { visit, session, place, primer: stream.primer });
  }

  /** Without a disk, or beyond the limit, the host still hears everything; it only cannot come back for it. */
  function keepNothing(error: unknown): void {
    if (!(error instanceof TroupeError && error.code === 'busy'))
      house.logger.warn({ door: 'http' }, `a stream is not kept: ${sentence(error)}`);
    if (!isGone(visit)) startEvents(visit, ['Mcp-Session-Id', session.id], house.settings);
    release((frame, isLast) => {
      writeLive(visit, frame);
      if (isLast) visit.res.end();
    });
  }

  function release(to: Stream['append']): void {
    append = to;
    for (const { frame, isLast } of held ?? []) to(frame, isLast);
    held = undefined;
  }

  function put(frame: Buffer, isLast: boolean): void {
    if (append) append(frame, isLast);
    else if (isStream || isBatch) {
      held ??= [];
      held.push({ frame, isLast });
    }
  }

  return {
    tell(frame) {
      becomeStream();
      if (isStream) put(frame, false); // else nobody is there to hear it
    },
    answer(frame) {
      owed -= 1;
      put(frame, owed === 0);
      if (owed > 0) return;
      clearTimeout(timer);
      house.owed.count -= 1;
      leave();
      if (!isStream) sendJson(visit, 200, isBatch ? arrayOf(held ?? []) : frame);
    },
  };
}

function arrayOf(messages: readonly Message[]): Buffer {
  const parts = messages.flatMap(({ frame }, index) => (index === 0 ? [frame] : [COMMA, frame]));
  return Buffer.concat([Buffer.from('['), ...parts, Buffer.from(']')]);
}

const COMMA = Buffer.from(',');
