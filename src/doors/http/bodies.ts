// The body of a POST, as far as it may go; and what its headers must say before it is worth reading.

import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';

/** Handed over by callback: a promise would put off every call to a later turn. */
export function readBody(
  req: IncomingMessage,
  maxBytes: number,
  onBody: (body: Buffer) => void,
  onTooLarge: () => void,
): void {
  if (Number(req.headers['content-length'] ?? 0) > maxBytes) {
    onTooLarge();
    return discard(req, maxBytes);
  }
  let first: Buffer | undefined;
  let chunks: Buffer[] | undefined;
  let size = 0;
  const take = (chunk: Buffer): void => {
    size += chunk.length;
    if (size > maxBytes) {
      req.off('data', take).off('end', finish);
      onTooLarge();
      return discard(req, maxBytes);
    }
    if (!first) first = chunk;
    else {
      chunks ??= [first];
      chunks.push(chunk);
    }
  };
  const finish = (): void => onBody(chunks ? Buffer.concat(chunks, size) : (first ?? Buffer.alloc(0)));
  req.on('data', take).on('end', finish);
}

/** A body nobody wants is read on for a while, or the refusal would be lost when the connection breaks. */
function discard(req: IncomingMessage, maxBytes: number): void {
  let size = 0;
  req.on('data', (chunk: Buffer) => {
    size += chunk.length;
    if (size > maxBytes) req.destroy();
  });
}

export function isJson({ 'content-type': type }: IncomingHttpHeaders): boolean {
  if (type === 'application/json') return true;
  return type !== undefined && /^application\/json *(;|$)/i.test(type);
}

const BOTH = 'application/json, text/event-stream';

/** The answer may be either, so a host must take both. */
export function acceptsBoth({ accept }: IncomingHttpHeaders): boolean {
  return accept === BOTH || (accepts(accept, 'application/json') && accepts(accept, 'text/event-stream'));
}

export const acceptsEvents = ({ accept }: IncomingHttpHeaders): boolean => accepts(accept, 'text/event-stream');

function accepts(accept: string | undefined, type: string): boolean {
  if (accept === undefined) return false;
  if (accept === type) return true;
  const ranges = accept.split(',').map((range) => range.split(';', 1)[0]?.trim().toLowerCase());
  return ranges.includes(type) || ranges.includes('*/*') || ranges.includes(`${type.split('/')[0]}/*`);
}
