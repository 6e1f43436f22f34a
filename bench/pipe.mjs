// The bare minimum between a bridge and its child's pipes.

const NEWLINE = 10;

/** What one turn of the loop writes goes out in one piece. */
export function writer(stdin) {
  let outgoing = [];
  const flush = () => {
    stdin.write(Buffer.concat(outgoing));
    outgoing = [];
  };
  return (...parts) => {
    if (outgoing.length === 0) setImmediate(flush);
    for (const part of parts) outgoing.push(typeof part === 'string' ? Buffer.from(part) : part);
  };
}

export function splitter(onLine) {
  let pieces = [];
  return (chunk) => {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      const last = chunk.subarray(start, end);
      onLine(pieces.length ? Buffer.concat([...pieces, last]) : last);
      pieces = [];
      start = end + 1;
    }
    if (start < chunk.length) pieces.push(chunk.subarray(start));
  };
}
