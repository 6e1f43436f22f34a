// What the main thread and the writer thread say to each other. One batch is under way at a time, so batches need no number.

import type { FailureCode } from '../protocol/failures.ts';
import type { Packed } from './packing.ts';

export type Health = { readonly state: 'ready' | 'full' | 'locked' | 'failed' | 'closed'; readonly message: string };

export type WriterSettings = {
  readonly directory: string;
  readonly file: string;
  readonly ballastBytes: number;
  readonly keepAudit: { readonly rows: number; readonly ageMs: number };
  /** How long a lock of another program may last before it is reported, and how long opening waits for one. */
  readonly lockedAfterMs: number;
  readonly openMs: number;
  readonly maxPages: number;
};

export type ToWriter = { readonly type: 'batch'; readonly batch: Packed } | { readonly type: 'close' };

export type FromWriter =
  | { readonly type: 'opened' }
  | { readonly type: 'refused'; readonly code: FailureCode; readonly message: string }
  | News;

/** What the writer says once it is open. */
export type News = { readonly type: 'health'; readonly health: Health } | Verdict;

/** `done`: committed, but for the statements in `faults`. Any other: nothing of the batch was recorded. */
export type Verdict =
  | ({ readonly type: 'done' } & Findings)
  | { readonly type: 'busy' | 'full' | 'failed'; readonly message: string };

/** By their places in the batch: what SQLite refused, and what changed no row. Both are few, so all others go unsaid. */
export type Findings = { readonly faults: readonly Fault[]; readonly unchanged: readonly number[] };

export type Fault = { readonly index: number; readonly message: string };
