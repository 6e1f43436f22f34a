// The `task` member of a call's params, by which a host of 2025-11-25 wants it run as a task, and for how long it may live.

import { TroupeError } from '../protocol/failures.ts';
import { member, spansOf } from '../protocol/json.ts';
import { withoutMember } from '../protocol/meta.ts';
import { OPEN_BRACE } from '../protocol/scan.ts';

const TASK = Buffer.from('"task"');
const ESCAPE = Buffer.from('\\u');
const NUMBER_BYTES = 40;

export const isAugmented = (params: Buffer): boolean => mayHaveTask(params) && spansOf(params, 'task').length > 0;

/** For who knows no tasks, or a server that shall not see it; most params have none, and are given back as they are. */
export const withoutTask = (params: Buffer): Buffer => (mayHaveTask(params) ? withoutMember(params, 'task') : params);

/** Only a \u escape can spell the name differently, so most params need not be walked. */
const mayHaveTask = (params: Buffer): boolean => params.indexOf(TASK) >= 0 || params.indexOf(ESCAPE) >= 0;

/** The `ttl` that is wished for, in whole milliseconds. */
export function lifeOf(params: Buffer): number | undefined {
  const task = member(params, 'task');
  if (task?.[0] !== OPEN_BRACE) throw new TroupeError('invalid', 'task must be one object, such as {"ttl": 60000}');
  const [span, another] = spansOf(task, 'ttl');
  if (!span) return undefined;
  const text = another ? '' : task.toString('latin1', span.from, Math.min(span.to, span.from + NUMBER_BYTES));
  const ttl = /^[\d.eE+-]+$/.test(text) ? Number(text) : Number.NaN;
  if (!(ttl >= 0)) throw new TroupeError('invalid', 'task.ttl must be a number of milliseconds, and not negative');
  return Math.min(Math.ceil(ttl), Number.MAX_SAFE_INTEGER);
}
