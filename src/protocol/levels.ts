// The levels of log messages, from the least to the most severe.

export const LEVELS = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'] as const;
export type Level = (typeof LEVELS)[number];

export const levelOf = (text: string | undefined): Level | undefined => LEVELS.find((level) => level === text);

/** Whether somebody who asked for `wanted` wants to hear this; who never asked hears what there is. */
export const isLoud = (level: string, wanted: Level | undefined): boolean =>
  wanted === undefined || LEVELS.indexOf(levelOf(level) ?? 'info') >= LEVELS.indexOf(wanted);

export const mostVerbose = (levels: readonly Level[]): Level | undefined =>
  LEVELS.find((level) => levels.includes(level));
