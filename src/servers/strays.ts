// What a server sent that has no place in the protocol: a line of text, an answer to nobody, a late one. It is dropped,
// but somebody who debugs a server wants to see it.

import type { Logger } from 'pino';
import { allowance } from '../telemetry/allowance.ts';

export function strays(logger: Logger): (why: string, line: Buffer) => void {
  const pace = allowance(20);
  return (why, line) => {
    if (!pace.take()) return;
    const missing = pace.forget();
    const excerpt = line.subarray(0, 200).toString('utf8');
    logger.warn({ source: 'protocol', excerpt, ...(missing > 0 && { missing }) }, `dropped ${why}`);
  };
}
