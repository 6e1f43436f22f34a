// A server's stderr: every line goes to the log at a bounded pace, the last few are kept to explain a death.

import type { Logger } from 'pino';
import { allowance } from '../telemetry/allowance.ts';

export type Stderr = { push(chunk: Buffer): void; end(): void; readonly tail: readonly string[] };

const LINES_PER_SECOND = 200;
const LINE_CHARACTERS = 4_096;
const TAIL_LINES = 20;

export function readStderr(logger: Logger): Stderr {
  const pace = allowance(LINES_PER_SECOND);
  const decoder = new TextDecoder();
  let rest = '';
  let tail: string[] = [];

  function line(text: string): void {
    const cut = text.trimEnd();
    if (cut === '') return;
    tail = [...tail.slice(1 - TAIL_LINES), cut];
    if (!pace.take()) return;
    const missing = pace.forget();
    if (missing > 0) logger.warn({ missing }, `${missing} lines of stderr were left out, they came too fast`);
    logger.info(cut);
  }

  return {
    push(chunk) {
      // In a flood most lines are dropped anyway, so they are not even cut apart.
      if (chunk.length >= LINE_CHARACTERS && pace.heldBack > 0 && !pace.take()) return;
      const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
      rest = (lines.pop() ?? '').slice(0, LINE_CHARACTERS);
      for (const text of lines) line(text.slice(0, LINE_CHARACTERS));
    },
    end() {
      line(rest);
      rest = '';
      const missing = pace.forget();
      if (missing > 0) logger.warn({ missing }, `${missing} lines of stderr were left out, they came too fast`);
    },
    get tail() {
      return tail;
    },
  };
}
