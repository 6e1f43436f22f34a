// Reads server-sent events from chunks of bytes, wherever they are cut, as the HTML standard has them: BOM, comments, three
// kinds of line ends. Time is linear in the input, memory bounded by `maxBytes`; data within one chunk is not copied.

export type EventOptions = {
  /** The longest line, and the most data of one event. */
  readonly maxBytes: number;
  /** `data` is undefined for an event without data, whose id counts nevertheless. */
  readonly onEvent: (type: string, data: Buffer | undefined, id: string | undefined) => void;
  readonly onRetry: (ms: number) => void;
  /** Called once; all further input is ignored. */
  readonly onTooLong: () => void;
};
export type EventReader = { push(chunk: Buffer): void };

const LF = 0x0a;
const CR = 0x0d;
const COLON = 0x3a;
const SPACE = 0x20;
const NEWLINE = Buffer.from('\n');
/** Allowed beyond the limit for the name of a field. */
const FIELD_BYTES = 64;
const BOM = Buffer.from([0xef, 0xbb, 0xbf]);

export function readEvents({ maxBytes, onEvent, onRetry, onTooLong }: EventOptions): EventReader {
  const line = pile();
  const data = pile();
  let hasData = false;
  let type = '';
  let id: string | undefined;
  let isFirstLine = true;
  let endedInReturn = false;
  let isTooLong = false;

  function push(chunk: Buffer): void {
    let from = endedInReturn && chunk[0] === LF ? 1 : 0;
    if (chunk.length > 0) endedInReturn = false;
    let [feed, turn] = [chunk.indexOf(LF, from), chunk.indexOf(CR, from)];
    while (!isTooLong && from < chunk.length) {
      if (feed >= 0 && feed < from) feed = chunk.indexOf(LF, from);
      if (turn >= 0 && turn < from) turn = chunk.indexOf(CR, from);
      const end = turn < 0 ? feed : feed < 0 ? turn : Math.min(feed, turn);
      const piece = chunk.subarray(from, end < 0 ? chunk.length : end);
      if (line.size + piece.length + data.size > maxBytes + FIELD_BYTES) return giveUp();
      if (end < 0) return line.add(piece);
      from = end + (chunk[end] === CR && chunk[end + 1] === LF ? 2 : 1);
      endedInReturn = chunk[end] === CR && end + 1 === chunk.length;
      readLine(line.size > 0 ? line.take(piece) : piece);
    }
  }

  function readLine(whole: Buffer): void {
    const text = isFirstLine && whole.subarray(0, 3).equals(BOM) ? whole.subarray(3) : whole;
    isFirstLine = false;
    if (text.length === 0) return dispatch();
    const colon = text.indexOf(COLON);
    if (colon === 0) return; // a comment, which keeps the connection alive
    const name = text.toString('latin1', 0, Math.min(colon < 0 ? text.length : colon, 16));
    const value =
      colon < 0 ? text.subarray(text.length) : text.subarray(text[colon + 1] === SPACE ? colon + 2 : colon + 1);
    if (name === 'data') return addData(value);
    if (name === 'event') type = value.toString('utf8', 0, 256);
    if (name === 'id' && !value.includes(0)) id = value.toString();
    if (name === 'retry' && /^\d{1,10}$/.test(value.toString('latin1', 0, 11))) onRetry(Number(value));
  }

  function addData(value: Buffer): void {
    if (hasData) data.add(NEWLINE);
    data.add(value);
    hasData = true;
  }

  function dispatch(): void {
    const [bytes, kind, eventId] = [data.take(), type, id];
    const isEvent = hasData || eventId !== undefined;
    hasData = false;
    type = '';
    id = undefined;
    if (isEvent) onEvent(kind || 'message', bytes.length > 0 ? bytes : undefined, eventId);
  }

  function giveUp(): void {
    isTooLong = true;
    onTooLong();
  }

  return { push };
}

/** Joins pieces: a single one is given back uncopied, several are copied into a buffer that doubles. */
function pile() {
  let only: Buffer | undefined;
  let room: Buffer = Buffer.alloc(0);
  let size = 0;

  function copy(piece: Buffer): void {
    if (size + piece.length > room.length) {
      const larger = Buffer.allocUnsafe(Math.max(2 * room.length, size + piece.length));
      room.copy(larger, 0, 0, size);
      room = larger;
    }
    piece.copy(room, size);
    size += piece.length;
  }

  function add(piece: Buffer): void {
    if (size === 0) {
      only = piece;
      size = piece.length;
      return;
    }
    if (only) {
      const first = only;
      only = undefined;
      size = 0;
      copy(first);
    }
    copy(piece);
  }

  return {
    add,
    take(last?: Buffer): Buffer {
      if (last) add(last);
      const whole = only ?? room.subarray(0, size);
      only = undefined;
      room = Buffer.alloc(0);
      size = 0;
      return whole;
    },
    get size() {
      return size;
    },
  };
}
