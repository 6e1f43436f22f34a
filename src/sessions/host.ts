// The words that doors and sessions share. A door carries frames; a session knows what they mean, whose they are, and
// where what the servers say belongs.

import type { Door } from '../calls/call.ts';
import type { Era } from '../protocol/eras.ts';
import type { Frame } from '../protocol/frame.ts';

/** The way back to one request of a host. Frames end in a newline; `tell` comes before `answer`, never after it. */
export type Line = {
  /** A message that belongs to the request: its progress, its log lines, a question asked on its behalf. */
  tell(frame: Buffer): void;
  /** The response. Exactly once, and nothing after it. */
  answer(frame: Buffer): void;
  /** It has no room for anything but the response. */
  readonly isMute?: boolean;
  /** Whether nobody reads it just now, though the host may come back for it. */
  readonly isAbsent?: (() => boolean) | undefined;
};

/** `''` is all servers, `name` one server with its names unchanged, `@name` a configured profile. */
export type Scope = string;

/**
 * What the hosts of each door have for messages that belong to no request: a connection that is theirs, or a stream to come
 * back to, which is on the disk. Doors that open no sessions are not here.
 */
export const HEARS_ON = {
  http: 'stream',
  sse: 'connection',
  websocket: 'connection',
  stdio: 'connection',
  rpc: 'connection',
} as const satisfies { readonly [door in Door]?: 'connection' | 'stream' };
export type HostDoor = keyof typeof HEARS_ON;

export type Opening = {
  readonly principal: string;
  readonly door: HostDoor;
  readonly scope: Scope;
  /** The params of `initialize`. */
  readonly params: Buffer;
  /** The daemon that the host may be, or may run under, as far as the door can tell. */
  readonly via?: string | undefined;
};

export type HostSession = {
  /** 128 random bits; it is no credential, the principal is. */
  readonly id: string;
  readonly principal: string;
  readonly door: HostDoor;
  readonly scope: Scope;
  readonly era: Era;
  /**
   * A message of the host: request, notification or response (not `initialize`, which opens a session; a batch is the
   * door's to take apart). A request is answered on its line, exactly once, perhaps before `receive` returns.
   * Notifications and responses make no use of the line.
   */
  receive(frame: Frame, line: Line): void;
  /**
   * The connection over which messages go that belong to no request: list changes, updates, unattributed logs. While a
   * session has none, they are dropped. HTTP sessions need none: theirs go to the session's standing stream.
   */
  attach(send: (frame: Buffer) => void): () => void;
  /** A stream or a connection of it is open. Returns how to leave. A session without any leaves the memory after a while. */
  hold(): () => void;
  /** Whoever waits for the answer to that request of the host (its id as raw JSON) is back, or has left for good. */
  callerIs(where: 'back' | 'gone', id: string): void;
  /** Told once when the session has ended, whoever ended it; no later message is served. Returns how to stop listening. */
  onEnded(listener: () => void): () => void;
  /** The host is done with it. From now on its id is unknown, here and in every daemon on this state directory. */
  end(): Promise<void>;
};

export type Sessions = {
  /**
   * Answers `initialize`: the session and its InitializeResult, after the session's row is committed. Throws a TroupeError:
   * `invalid` for params that are none, `unknownServer` for a scope that is not there, `busy` beyond the limit.
   */
  open(opening: Opening): Promise<{ readonly session: HostSession; readonly result: Buffer }>;
  /** The session of that id, if it is this principal's, also when it was opened by another daemon or an earlier life. */
  find(id: string, principal: string): HostSession | undefined;
  /** Whether a scope names something that is configured. */
  hasScope(scope: Scope): boolean;
  readonly streams: Streams;
  readonly count: number;
  close(): Promise<void>;
};

/** Where in a stream a reader is: after the event of that number. */
export type Position = { readonly stream: string; readonly after: number };

/** Streams of events that a reader may leave and come back to, through whichever daemon. Only HTTP has such. */
export type Streams = {
  /** Begins the stream of one request; resolves when its row is committed. Throws `busy` beyond the session's limit. */
  open(session: string, requestId: string): Promise<Stream>;
  /** The session's standing stream, on which what belongs to no request comes, and how far it has been read. */
  standing(session: string): Position;
  /** The stream and position that an event id names, if they are this session's; undefined for any other text. */
  locate(session: string, eventId: string): Position | undefined;
  /**
   * Hands over every event after that position, once and in order, then those that come; `onEnd` after the last one. An
   * `onEvent` that answers `false` has not taken the event, and hears no more.
   * A stream whose daemon died in the middle of it ends with an error that says so. Returns how to stop.
   */
  follow(position: Position, onEvent: (event: StreamEvent) => unknown, onEnd: () => void): () => void;
};

/** The frame is one line, without a newline. The id is empty when the disk refused the event: no reader can come back to it. */
export type StreamEvent = { readonly id: string; readonly frame: Buffer };

export type Stream = {
  readonly id: string;
  /** The id of the event that primes the reader: nothing has been sent before it. */
  readonly primer: string;
  /** Writes the event to the disk, then hands it to the readers. The last event ends the stream. */
  append(frame: Buffer, isLast: boolean): Promise<void> | void;
};
