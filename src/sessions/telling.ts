// What a host hears of one call while it runs: the progress that its server reports, its log lines, and that the call waits for
// a person. Progress must increase with each notification, whoever it comes from.

import type { Signal } from '../calls/call.ts';
import { notificationFrame } from '../protocol/compose.ts';
import { codecOf, type Era } from '../protocol/eras.ts';

export type TellingOptions = {
  readonly era: Era;
  /** The host's token for progress, as JSON text, if it wants any. */
  readonly token: string | undefined;
  /** Whether the host takes log messages of that level; and whether it takes ours, of the level NOTICE. */
  readonly isLoud: (level: string) => boolean;
  readonly hearsNotices: () => boolean;
  readonly tell: (frame: Buffer) => void;
};

/** The level of a log message that says that a call waits for a person. */
export const NOTICE = 'notice';

export function createTelling({ era, token, isLoud, hearsNotices, tell }: TellingOptions): (signal: Signal) => void {
  let last: Progress | undefined;
  let asked: Set<string> | undefined;

  function progress(reported: Partial<Progress>): void {
    if (token === undefined) return;
    const { total = last?.total } = reported;
    last = {
      ...reported,
      progress: nextProgress(last?.progress, reported.progress),
      ...(total !== undefined && { total }),
    };
    tell(notificationFrame('notifications/progress', progressParams(era, last, token)));
  }

  /** Each notice is progress, so that the host's patience begins anew; the log gets a question once. */
  function notice({ id, message }: Extract<Signal, { type: 'ask' }>): void {
    asked ??= new Set();
    const isNew = !asked.has(id);
    asked.add(id);
    progress({ message });
    if (isNew && hearsNotices()) tell(notificationFrame('notifications/message', noticeParams(message)));
  }

  return (signal) => {
    if (signal.type === 'ask') notice(signal);
    else if (signal.type === 'progress') progress(signal);
    else if (isLoud(signal.level)) tell(notificationFrame('notifications/message', signal.params));
  };
}

type Progress = { readonly progress: number; readonly total?: number; readonly message?: string };

/** So little that no host shows it, and many of them do not come up to what a server reports next. */
const LEAST_STEP = 1e-6;

/** What the server reports, if that is more than was told last; else, and for a notice of ours, the least bit more than that. */
export function nextProgress(last: number | undefined, reported = Number.NEGATIVE_INFINITY): number {
  if (last === undefined) return Number.isFinite(reported) ? reported : 0;
  return reported > last ? reported : last + Math.max(LEAST_STEP, Math.abs(last) * 4 * Number.EPSILON);
}

/** The token is JSON text. */
export const progressParams = (era: Era, progress: Progress, token: string): Buffer =>
  Buffer.from(`{"progressToken":${token},${JSON.stringify(codecOf(era).progress(progress)).slice(1)}`);

const noticeParams = (message: string): Buffer =>
  Buffer.from(JSON.stringify({ level: NOTICE, logger: 'troupe', data: message }));
