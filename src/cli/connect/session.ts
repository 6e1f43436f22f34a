// The host's session as the shim keeps it alive across daemons: its requests in flight, its messages that wait for a daemon,
// and its `initialize`. Every request gets exactly one answer: the daemon's, or the shim's when the daemon died over it.

import { errorFrame, notificationFrame } from '../../protocol/compose.ts';
import { errorObject, type Failure } from '../../protocol/failures.ts';
import { type Frame, readFrame } from '../../protocol/frame.ts';
import { member, stringOf } from '../../protocol/json.ts';

export type Wires = {
  /** Bytes of whole lines, newlines included. */
  readonly toHost: (frame: Buffer) => void;
  /** The daemon refuses this session; the shim must end. */
  readonly onRefused: (why: string) => void;
};
/** Takes a line without its newline. */
type ToDaemon = (line: Buffer) => void;

/** How much may wait for a daemon. */
const MAX_WAITING_BYTES = 16 * 1024 * 1024;
const LISTS = ['tools', 'prompts', 'resources'] as const;
const INITIALIZED = Buffer.from('{"jsonrpc":"2.0","method":"notifications/initialized"}');
/** The daemon has checked how deep its messages are nested; the shim need not be stricter. */
const MAX_DEPTH = 1_000;

type Held = { readonly line: Buffer; readonly frame: Frame };

export class ShimSession {
  readonly #wires: Wires;
  readonly #inFlight = new Set<string>();
  /** Questions of the daemon that the host has not answered. */
  readonly #asked = new Set<string>();
  /** Questions of a daemon that is gone: the host's answer to one is dropped. */
  readonly #orphaned = new Set<string>();
  /** Messages of the host that wait for a daemon. */
  #waiting: Held[] = [];
  #waitingBytes = 0;
  #toDaemon: ToDaemon | undefined;
  #id = '';
  #opening: { readonly line: Buffer; readonly id: string; capabilities?: Buffer } | undefined;
  #isInitialized = false;
  #isReplaying = false;

  constructor(wires: Wires) {
    this.#wires = wires;
  }

  get id(): string {
    return this.#id;
  }

  /** Whether the host waits for something. */
  get isBusy(): boolean {
    return this.#inFlight.size > 0 || this.#waiting.length > 0;
  }

  fromHost(line: Buffer): void {
    const frame = readFrame(line);
    if (isAnswer(frame) && this.#orphaned.delete(frame.id)) return;
    if (frame.kind === 'request' && frame.method === 'initialize' && !this.#opening?.capabilities)
      this.#opening = { line, id: frame.id };
    if (frame.kind === 'notification' && frame.method === 'notifications/initialized') this.#isInitialized = true;
    if (this.#toDaemon && !this.#isReplaying) return this.#forward({ line, frame }, this.#toDaemon);
    const isTooMuch = this.#waitingBytes > 0 && this.#waitingBytes + line.length > MAX_WAITING_BYTES;
    if (isTooMuch) return this.#refuse(frame, TOO_MUCH);
    this.#waiting.push({ line, frame });
    this.#waitingBytes += line.length;
  }

  fromDaemon(line: Buffer): void {
    const frame = readFrame(line, MAX_DEPTH);
    if (frame.kind === 'notification' && frame.method === 'troupe/session')
      this.#id = sessionIn(frame.params) ?? this.#id;
    else if (this.#isReplaying && isAnswer(frame) && frame.id === this.#opening?.id) this.#replayed(frame);
    else if (this.#isForHost(frame)) {
      this.#wires.toHost(line);
      this.#wires.toHost(NEWLINE);
    }
  }

  /** A daemon is there. If it does not know the session, the host's `initialize` is sent to it once more. */
  linked(send: ToDaemon, isResumed: boolean): void {
    this.#toDaemon = send;
    const opening = isResumed || !this.#opening?.capabilities ? undefined : this.#opening;
    this.#isReplaying = opening !== undefined;
    if (!opening) return this.#flush();
    this.#id = '';
    send(opening.line);
  }

  /** The daemon is gone. Its requests in flight were sent once, and their outcome is unknown. */
  lost(): void {
    this.#toDaemon = undefined;
    this.#isReplaying = false;
    const { toHost } = this.#wires;
    const opening = this.#opening;
    // An `initialize` without an answer has had no effect: it is sent again, to the next daemon.
    if (opening && !opening.capabilities && this.#inFlight.delete(opening.id)) {
      this.#id = '';
      this.#waiting.unshift({ line: opening.line, frame: readFrame(opening.line) });
    }
    for (const id of this.#inFlight) toHost(errorFrame(id, errorObject(LOST)));
    for (const id of this.#asked) {
      this.#orphaned.add(id);
      toHost(notificationFrame('notifications/cancelled', Buffer.from(`{"requestId":${id},"reason":"${GONE}"}`)));
    }
    this.#inFlight.clear();
    this.#asked.clear();
  }

  /** No daemon can be started: each request that waits for one is answered with the reason. */
  refuseWaiting(message: string): void {
    for (const { frame } of this.#takeWaiting())
      this.#refuse(frame, { code: 'unavailable', delivery: 'not sent', message });
  }

  #forward({ line, frame }: Held, send: ToDaemon): void {
    for (const each of messagesOf(frame)) {
      if (isAnswer(each)) this.#asked.delete(each.id);
      else if (isOwedAnAnswer(each)) this.#inFlight.add(each.id);
    }
    send(line);
  }

  #takeWaiting(): Held[] {
    const waiting = this.#waiting;
    this.#waiting = [];
    this.#waitingBytes = 0;
    return waiting;
  }

  #flush(): void {
    for (const held of this.#takeWaiting()) if (this.#toDaemon) this.#forward(held, this.#toDaemon);
  }

  /** An answer to a request that is not in flight is a second one, and the host must not see it. */
  #isForHost(frame: Frame): boolean {
    if (frame.kind === 'request') {
      this.#asked.add(frame.id);
      this.#orphaned.delete(frame.id);
    }
    if (frame.kind === 'batch') return frame.frames.filter((each) => this.#isForHost(each)).length > 0;
    if (!isAnswer(frame) || frame.id === 'null') return true;
    if (this.#opening && frame.id === this.#opening.id && frame.kind === 'result')
      this.#opening.capabilities ??= member(frame.result, 'capabilities') ?? Buffer.from('{}');
    return this.#inFlight.delete(frame.id);
  }

  /** Another daemon has opened a session like the one before; its lists may differ, so the host is told to read them again. */
  #replayed(frame: Frame): void {
    if (frame.kind !== 'result') return this.#wires.onRefused(messageIn(frame));
    this.#isReplaying = false;
    if (this.#isInitialized) this.#toDaemon?.(INITIALIZED);
    for (const list of LISTS)
      if (this.#opening?.capabilities && member(this.#opening.capabilities, list))
        this.#wires.toHost(notificationFrame(`notifications/${list}/list_changed`));
    this.#flush();
  }

  #refuse(frame: Frame, failure: Failure): void {
    for (const each of messagesOf(frame))
      if (isOwedAnAnswer(each)) this.#wires.toHost(errorFrame(each.id, errorObject(failure)));
  }
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

/** A request, also one that cannot be read but for its id: the daemon refuses it, and its host must hear so. */
const isOwedAnAnswer = (frame: Frame): frame is Extract<Frame, { kind: 'request' | 'malformed' }> & { id: string } =>
  frame.kind === 'request' || (frame.kind === 'malformed' && frame.id !== undefined);

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
