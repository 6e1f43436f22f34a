// Sessions of a few lines, to look at a door alone: it answers `echo` with its params, keeps `wait` open until told, and
// remembers what a door did with each session. The sessions of the daemon are tested with the daemon.

import { randomUUID } from 'node:crypto';
import { errorFrame, notificationFrame, resultFrame } from '../../src/protocol/compose.ts';
import type { Era } from '../../src/protocol/eras.ts';
import { TroupeError } from '../../src/protocol/failures.ts';
import type { Frame } from '../../src/protocol/frame.ts';
import { member, stringOf } from '../../src/protocol/json.ts';
import type { HostSession, Line, Opening, Sessions } from '../../src/sessions/host.ts';
import { eventually } from './eventually.ts';

export type LittleSession = HostSession & {
  readonly received: Frame[];
  readonly waiting: { readonly id: string; readonly line: Line }[];
  /** What the door has said of whoever waits for an answer: `gone 7`. */
  readonly callers: string[];
  readonly holders: () => number;
  readonly isEnded: () => boolean;
  /** What belongs to no request. */
  tell(method: string): void;
};

export type LittleSessions = Sessions & {
  readonly all: LittleSession[];
  /** The session in which somebody waits. */
  waiter(): Promise<LittleSession>;
};

export function littleSessions({ scopes = [''], limit = 100 } = {}): LittleSessions {
  const all: LittleSession[] = [];
  const unused = (): never => {
    throw new Error('no streams here');
  };
  return {
    all,
    waiter: () =>
      eventually(() => {
        const found = all.find(({ waiting }) => waiting.length > 0);
        if (!found) throw new Error('nobody waits');
        return found;
      }),
    async open(opening) {
      const version = stringOf(member(opening.params, 'protocolVersion') ?? Buffer.from(''));
      if (version === undefined) throw new TroupeError('invalid', 'initialize has no protocolVersion');
      if (version === 'broken') throw new Error('disk on fire at /secret/place');
      if (all.length >= limit) throw new TroupeError('busy', 'there are too many sessions');
      const session = littleSession(opening, version as Era);
      all.push(session);
      return {
        session,
        result: Buffer.from(JSON.stringify({ protocolVersion: version, capabilities: { tools: {} } })),
      };
    },
    find: (id, principal) => all.find((each) => each.id === id && each.principal === principal && !each.isEnded()),
    hasScope: (scope) => scopes.includes(scope),
    streams: { open: unused, standing: unused, locate: unused, follow: unused },
    get count() {
      return all.length;
    },
    async close() {},
  };
}

function littleSession({ principal, door, scope }: Opening, era: Era): LittleSession {
  const [received, waiting]: [Frame[], LittleSession['waiting']] = [[], []];
  const senders = new Set<(frame: Buffer) => void>();
  const callers: string[] = [];
  let [holders, isEnded, listeners] = [0, false, [] as (() => void)[]];
  return {
    ...{ id: randomUUID(), principal, door, scope, era, received, waiting, callers },
    holders: () => holders,
    isEnded: () => isEnded,
    tell(method) {
      for (const send of senders) send(notificationFrame(method));
    },
    receive(frame, line) {
      received.push(frame);
      if ('method' in frame && frame.method === 'throws') throw new Error('a bug at /secret/place');
      if (frame.kind !== 'request') return;
      if (frame.method === 'wait') waiting.push({ id: frame.id, line });
      else if (frame.method === 'echo') line.answer(resultFrame(frame.id, frame.params ?? Buffer.from('{}')));
      else line.answer(errorFrame(frame.id, Buffer.from('{"code":-32601,"message":"no such method"}')));
    },
    attach(send) {
      senders.add(send);
      return () => senders.delete(send);
    },
    hold() {
      holders += 1;
      return () => {
        holders -= 1;
      };
    },
    callerIs: (where, request) => void callers.push(`${where} ${request}`),
    onEnded(listener) {
      listeners.push(listener);
      return () => {
        listeners = listeners.filter((each) => each !== listener);
      };
    },
    async end() {
      if (isEnded) return;
      isEnded = true;
      for (const listener of listeners) listener();
    },
  };
}
