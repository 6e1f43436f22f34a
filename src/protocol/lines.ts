// Cuts a stream of chunks into lines, in time linear in the input and with memory bounded by `maxBytes`.
// A line within one chunk is not copied; the cap is enforced while a line is still incomplete.

export type LineOptions = {
  /** The longest line, not counting its newline. */
  readonly maxBytes: number;
  readonly onLine: (line: Buffer) => void;
  /** Called once, with the bytes of the line so far; all further input is ignored. */
  readonly onTooLong: (bytes: number) => void;
};

export type LineSplitter = {
  push(chunk: Buffer): void;
  /** How many bytes of an incomplete line are held. */
  readonly pending: number;
};

const NEWLINE = 0x0a;
const RETURN = 0x0d;
/** After so many pieces a line's pieces are joined: a line that arrives byte by byte must not cost a Buffer for each byte. */
const MAX_PIECES = 256;
const SMALL_BYTES = 4_096;

export function splitLines({ maxBytes, onLine, onTooLong }: LineOptions): LineSplitter {
  let joined: Buffer[] = [];
  let pieces: Buffer[] = [];
  let pending = 0;
  let joinedBytes = 0;
  let isTooLong = false;

  function push(chunk: Buffer): void {
    let from = 0;
    while (!isTooLong && from < chunk.length) {
      const newline = chunk.indexOf(NEWLINE, from);
      const to = newline < 0 ? chunk.length : newline;
      const bytes = pending + to - from;
      const piece = chunk.subarray(from, to);
      from = to + 1;
      if (bytes > maxBytes) giveUp(bytes);
      else if (newline < 0) hold(piece);
      else emit(pending > 0 ? join(piece) : piece);
    }
  }

  function emit(line: Buffer): void {
    const text = line[line.length - 1] === RETURN ? line.subarray(0, -1) : line;
    if (text.length > 0) onLine(text);
  }

  function hold(piece: Buffer): void {
    pending += piece.length;
    pieces.push(piece);
    if (pieces.length < MAX_PIECES) return;
    if (pending - joinedBytes < MAX_PIECES * SMALL_BYTES) joined.push(Buffer.concat(pieces));
    else for (const each of pieces) joined.push(each); // large pieces: a copy would only double their memory
    joinedBytes = pending;
    pieces = [];
  }

  function join(end: Buffer): Buffer {
    const line = Buffer.concat([...joined, ...pieces, end], pending + end.length);
    clear();
    return line;
  }

  function giveUp(bytes: number): void {
    isTooLong = true;
    clear();
    onTooLong(bytes);
  }

  function clear(): void {
    joined = [];
    pieces = [];
    pending = 0;
    joinedBytes = 0;
  }

  return {
    push,
    get pending() {
      return pending;
    },
  };
}
