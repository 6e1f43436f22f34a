// Masks secrets in log lines and audit rows: text that matches a configured pattern becomes `[masked]`.

import type { Plugin } from '../../src/plugin/plugin.ts';

type Options = { readonly patterns: readonly RegExp[]; readonly mask: string };

export const plugin: Plugin<Options> = {
  name: 'redact',

  parse(options) {
    const { patterns, mask = '[masked]' } = (options ?? {}) as { patterns?: unknown; mask?: unknown };
    if (!Array.isArray(patterns) || patterns.length === 0)
      throw new Error('redact needs "patterns", a list of regular expressions');
    if (typeof mask !== 'string' || /["\\\n]/.test(mask)) throw new Error('redact: "mask" must be plain text');
    return { patterns: patterns.map(compile), mask };
  },

  async start(troupe, { patterns, mask }) {
    troupe.mask((text) => patterns.reduce((masked, pattern) => masked.replace(pattern, mask), text));
    troupe.logger.info({ patterns: patterns.length }, 'masking');
    // The masks stay until the log is closed: the daemon's last words may hold secrets too.
    return { [Symbol.asyncDispose]: async () => {} };
  },
};

function compile(source: unknown): RegExp {
  if (typeof source !== 'string' || source === '') throw new Error('redact: each pattern must be a text');
  try {
    return new RegExp(source, 'g');
  } catch {
    // The pattern may itself hold a secret: its position is enough to find it.
    throw new Error(`redact: a pattern of ${source.length} characters is no regular expression`);
  }
}
