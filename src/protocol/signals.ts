// What a server tells of a request while it works on it: progress, under the caller's token, and log messages by level.

import { mayHaveMeta, member } from './json.ts';

/** The token under which a caller wants to hear of progress, as JSON text, so that it comes back as it was given. */
export function progressTokenOf(params: Buffer): string | undefined {
  const meta = mayHaveMeta(params) ? member(params, '_meta') : undefined;
  const token = meta && member(meta, 'progressToken')?.toString();
  return token && /^["\d-]/.test(token) ? token : undefined;
}

/** From the least to the most severe. */
export const LEVELS = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'] as const;
export type Level = (typeof LEVELS)[number];

export const levelOf = (text: string | undefined): Level | undefined => LEVELS.find((level) => level === text);

/** Whether a message of this level is for a listener who asked for `wanted`; one who never asked hears every message. */
export const isLoud = (level: string, wanted: Level | undefined): boolean =>
  wanted === undefined || LEVELS.indexOf(levelOf(level) ?? 'info') >= LEVELS.indexOf(wanted);

export const mostVerbose = (levels: readonly Level[]): Level | undefined =>
  LEVELS.find((level) => levels.includes(level));
