// What a lane needs to know: its settings, the way to its server, and whom it tells.

import type { Failure } from '../protocol/failures.ts';
import type { Call, Outcome } from './call.ts';
import type { InFlight } from './request.ts';

export type LaneSettings = {
  readonly timeoutMs: number;
  readonly maxTimeoutMs: number;
  readonly maxInFlight: number;
  readonly maxQueued: number;
};

/** The way to the server. `hasRoom` is false while the server does not read what we write. */
export type Peer = {
  /** `id` is the frame's own; the call is for transports that say more of it than the frame, such as HTTP headers. */
  write(frame: Buffer, id: string, call: Call): void;
  cancel(id: string, why: string): void;
  hasRoom(): boolean;
};

export type LaneOptions = {
  readonly server: string;
  readonly settings: LaneSettings;
  readonly driver: 'table' | 'actor';
  /** Why a call must not be sent, asked when it is about to be: only then is it known what the server offers. */
  readonly refusalOf: (call: Call) => Failure | undefined;
  readonly onSettled: (request: InFlight, outcome: Outcome) => void;
  readonly onWanted: () => void;
  readonly onCrash: (error: unknown) => void;
};
