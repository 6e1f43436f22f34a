// The way to one server, whatever carries it: a process's pipes, HTTP or a WebSocket. A link carries frames and says what
// became of them; it never throws inward, and it is silent once it was killed.

import type { Call } from '../../calls/call.ts';
import type { Era } from '../../protocol/eras.ts';
import type { Failure } from '../../protocol/failures.ts';

export type Link = {
  /** `id` is the frame's own; the call is for transports that say more of it than the frame, such as HTTP headers. */
  request(frame: Buffer, id: string, call: Call): void;
  notify(frame: Buffer, method: string): void;
  /** An answer to a request of the server. False when so many wait that the server cannot be reading them. */
  reply(frame: Buffer): boolean;
  /** The request is given up. True when the server may have it and is to be told. */
  drop(id: string): boolean;
  /** Both sides speak this version from now on. */
  negotiated(era: Era): void;
  hasRoom(): boolean;
  pause(): void;
  resume(): void;
  /** Says goodbye; `onClosed` follows. */
  close(): void;
  /** Ends the link at once and for good. */
  kill(): void;
};

export type LinkEvents = {
  /** `origin` is our id of the request on whose own stream the message came, where the transport has such streams. */
  onMessage(bytes: Buffer, origin?: string): void;
  /** After each chunk that was read. */
  onChunk(): void;
  /** There is room again for more requests. */
  onRoom(): void;
  /** The link is closed. `isFinal` says that trying again would not help. */
  onClosed(why: string, isFinal: boolean): void;
  /** The machine has nothing left to open the link with; it will have again. */
  onShort(why: string): void;
  /** The server wants to know who we are, and only a person can say. */
  onUnauthorized(why: string): void;
  /** The server could not be reached at its address, though not on behalf of a request. */
  onUnreachable(why: string): void;
  /** The server has forgotten our session, so a new one is to be opened over this same link. */
  onSessionLost(): void;
  /** Only this request failed. */
  onFailed(id: string, failure: Failure): void;
  isPending(id: string): boolean;
};
