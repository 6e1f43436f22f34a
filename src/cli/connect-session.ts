// The host's session as the shim keeps it alive across daemons: what is in flight, what waits, and how it was opened.
// Every request of the host gets exactly one answer: the daemon's, or ours when the daemon died over it.

import { errorFrame, notificationFrame } from '../protocol/compose.ts';
import { errorObject, type Failure } from '../protocol/failures.ts';
import { type Frame, readFrame } from '../protocol/frame.ts';
import { member, stringOf } from '../protocol/json.ts';

export type Wires = {
  /** Bytes of whole lines, newlines included. */
  readonly toHost: (frame: Buffer) => void;
  /** The daemon will not have this session; the shim must end. */
  readonly onRefused: (why: string) => void;
};
/** Takes a line without its newline. */
export type ToDaemon = (line: Buffer) => void;
export type ShimSession = ReturnType<typeof shimSession>;

/** What may wait for a daemon that is not there. */
const MAX_WAITING_BYTES = 16 * 1024 * 1024;
const LISTS = ['tools', 'prompts', 'resources'] as const;
const INITIALIZED = Buffer.from('{"jsonrpc":"2.0","method":"notifications/initialized"}');
/** A daemon judged the depth of what it sends; ours to judge is only what it is. */
const MAX_DEPTH = 1_000;

export function shimSession({ toHost, onRefused }: Wires) {
  const inFlight = new Set<string>();
  /** Questions to the host that it has not answered; those of a dead daemon nobody waits for any more. */
  const asked = new Set<string>();
  const orphaned = new Set<string>();
  let waiting: { readonly line: Buffer; readonly frame: Frame }[] = [];
  let waitingBytes = 0;
  let toDaemon: ToDaemon | undefined;
  let id = '';
  let opening: { readonly line: Buffer; readonly id: string; capabilities?: Buffer } | undefined;
  let isInitialized = false;
  let isReplaying = false;

  function fromHost(line: Buffer): void {
    const frame = readFrame(line);
    if (isAnswer(frame) && orphaned.delete(frame.id)) return;
    if (frame.kind === 'request' && frame.method === 'initialize' && !opening?.capabilities)
      opening = { line, id: frame.id };
    if (frame.kind === 'notification' && frame.method === 'notifications/initialized') isInitialized = true;
    if (toDaemon && !isReplaying) return forward(line, frame, toDaemon);
    if (waitingBytes > 0 && waitingBytes + line.length > MAX_WAITING_BYTES) return refuse(frame, TOO_MUCH);
    waiting.push({ line, frame });
    waitingBytes += line.length;
  }

  function forward(line: Buffer, frame: Frame, send: ToDaemon): void {
    for (const each of messagesOf(frame)) {
      if (each.kind === 'request') inFlight.add(each.id);
      else if (isAnswer(each)) asked.delete(each.id);
    }
    send(line);
  }

  function flush(): void {
    const held = waiting;
    [waiting, waitingBytes] = [[], 0];
    for (const { line, frame } of held) if (toDaemon) forward(line, frame, toDaemon);
  }

  function fromDaemon(line: Buffer): void {
    const frame = readFrame(line, MAX_DEPTH);
    if (frame.kind === 'notification' && frame.method === 'troupe/session') id = sessionIn(frame.params) ?? id;
    else if (isReplaying && isAnswer(frame) && frame.id === opening?.id) replayed(frame);
    else if (isForHost(frame)) {
      toHost(line);
      toHost(NEWLINE);
    }
  }

  /** An answer that nobody waits for is a second one, and the host must not see it. */
  function isForHost(frame: Frame): boolean {
    if (frame.kind === 'request') {
      asked.add(frame.id);
      orphaned.delete(frame.id);
    }
    if (frame.kind === 'batch') return frame.frames.filter(isForHost).length > 0;
    if (!isAnswer(frame) || frame.id === 'null') return true;
    if (opening && frame.id === opening.id && frame.kind === 'result')
      opening.capabilities ??= member(frame.result, 'capabilities') ?? Buffer.from('{}');
    return inFlight.delete(frame.id);
  }

  /** Another daemon, which did not know the session, has opened one like it; its lists may be others. */
  function replayed(frame: Frame): void {
    if (frame.kind !== 'result') return onRefused(messageIn(frame));
    isReplaying = false;
    if (isInitialized) toDaemon?.(INITIALIZED);
    for (const list of LISTS)
      if (opening?.capabilities && member(opening.capabilities, list))
        toHost(notificationFrame(`notifications/${list}/list_changed`));
    flush();
  }

  const refuse = (frame: Frame, failure: Failure): void => {
    for (const each of messagesOf(frame))
      if (each.kind === 'request') toHost(errorFrame(each.id, errorObject(failure)));
  };

  return {
    fromHost,
    fromDaemon,
    get id() {
      return id;
    },
    /** Whether the host waits for something. */
    get isBusy() {
      return inFlight.size > 0 || waiting.length > 0;
    },
    linked(send: ToDaemon, isResumed: boolean): void {
      toDaemon = send;
      isReplaying = !isResumed && opening?.capabilities !== undefined;
      if (!isReplaying) return flush();
      id = '';
      send((opening as { line: Buffer }).line);
    },
    /** The daemon is gone. What it was asked was sent, once; what became of it nobody can tell. */
    lost(): void {
      toDaemon = undefined;
      isReplaying = false;
      // Nothing has come of an `initialize` without an answer: it is as good as not sent.
      if (opening && !opening.capabilities && inFlight.delete(opening.id)) {
        id = '';
        waiting.unshift({ line: opening.line, frame: readFrame(opening.line) });
      }
      for (const each of inFlight) toHost(errorFrame(each, errorObject(LOST)));
      for (const each of asked) {
        orphaned.add(each);
        toHost(notificationFrame('notifications/cancelled', Buffer.from(`{"requestId":${each},"reason":"${GONE}"}`)));
      }
      inFlight.clear();
      asked.clear();
    },
    /** No daemon is to be had: whoever waits is told why. */
    refuseWaiting(message: string): void {
      const held = waiting;
      [waiting, waitingBytes] = [[], 0];
      for (const { frame } of held) refuse(frame, { code: 'unavailable', delivery: 'not sent', message });
    },
  };
}

const GONE = 'troupe was restarted';
const LOST: Failure = {
  code: 'lost',
  delivery: 'outcome unknown',
  message: 'troupe was restarted; the request was sent and its outcome is unknown',
};
const TOO_MUCH: Failure = {
  code: 'busy',
  delivery: 'not sent',
  message: 'troupe is not there and too much waits for it already; try again later',
};

const isAnswer = (frame: Frame): frame is Extract<Frame, { kind: 'result' | 'error' }> =>
  frame.kind === 'result' || frame.kind === 'error';

const messagesOf = (frame: Frame): readonly Frame[] => (frame.kind === 'batch' ? frame.frames : [frame]);

const NEWLINE = Buffer.from('\n');

const sessionIn = (params: Buffer | undefined): string | undefined => {
  const value = params && member(params, 'session');
  return value && stringOf(value);
};

function messageIn(frame: Frame): string {
  const message = frame.kind === 'error' ? member(frame.error, 'message') : undefined;
  return (message && stringOf(message)) ?? 'troupe refused the session';
}
