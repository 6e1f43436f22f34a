// What a task that runs needs of the world, and what it begins with.

import type { Call, Outcome, Signal } from '../calls/call.ts';
import type { TaskSettings } from '../config/schema.ts';
import type { TaskRow } from '../store/rows.ts';
import type { Live } from './live.ts';
import type { Rows } from './rows.ts';
import type { Order } from './task.ts';

export type Given = { readonly row: TaskRow; readonly params: Buffer; readonly canAnswer?: Order['canAnswer'] };

export type LiveWorld = {
  readonly rows: Rows;
  readonly settings: () => TaskSettings;
  /** Gives the call to its server; throws a TroupeError, or answers false, when there is no such server. */
  readonly submit: (call: Call) => boolean;
  readonly cancel: (principal: string, requestId: string, why: string) => boolean;
  /** Whether a call that was lost may be made again. */
  readonly mayRerun: (row: TaskRow) => boolean;
  /** Whether what that server runs outlives its connection. */
  readonly isRemote: (server: string) => boolean;
  /** Its outcome, and the event that tells of it, are one step; false when it is somebody else's. */
  readonly end: (ended: TaskRow, outcome: Outcome) => Promise<boolean>;
  /** Its server takes no calls now, but will: `run` again then. */
  readonly onHeld: (live: Live) => void;
  /** The row says something new. */
  readonly onStatus: (live: Live) => void;
  readonly onSignal: (live: Live, signal: Signal) => void;
  /** It is not run here any more. */
  readonly onOver: (live: Live) => void;
  readonly onTrouble: (error: unknown) => void;
};
