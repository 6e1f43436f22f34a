// What may go over the connection to NATS, checked in the one place that every message passes. A broker answers a line or a
// message that is too long by cutting the connection, and the client answers a header that it cannot read, or a subscriber
// that throws, by never reading again. So what goes out beyond the bounds is refused to whoever sends it, and what comes in
// beyond them is answered here with one sentence, and handed to nobody.

import { ErrorCode, type Msg, type MsgHdrs, type NatsConnection, NatsError } from 'nats';
import { errorObject, type Failure, TroupeError } from '../protocol/failures.ts';
import { errorHeaders, HEADER_ROOM, toHeaders } from './frames.ts';
import { LARGE_BYTES, type Sending, sendLarge } from './large.ts';
import { isInbox } from './subjects.ts';

/** What is written on the line of a message: a broker takes 4,096 bytes unless told, and does not say what it was told. */
export const MAX_LINE_BYTES = 4_000;
export const MAX_REPLY_BYTES = 1_024;
export const MAX_HEADER_BYTES = 8_192;
/** The client takes the square of their number to read them. */
export const MAX_HEADERS = 100;

export type BoundsOptions = {
  /** A message that was not sent, or not taken. */
  readonly onRefused: (why: string) => void;
  /** A subscriber threw: a bug of ours. */
  readonly onFault: (fault: unknown) => void;
};

type Options = { reply?: string; headers?: MsgHdrs };
type Callback = (error: Error | null, msg: Msg) => void;
type Subscribing = { readonly subject: string; readonly queue?: string; callback: Callback };
/** What every way to publish or to subscribe ends in, that of JetStream and `msg.respond` included. */
type Protocol = Sending & {
  readonly info?: { readonly max_payload: number };
  publish(subject: string, payload?: Uint8Array | string, options?: Options): void;
  subscribe(subscribing: Subscribing): unknown;
};

/** Puts the bounds on this connection, whoever uses it from now on. */
export function bounded(nc: NatsConnection, options: BoundsOptions): NatsConnection {
  const { protocol } = nc as unknown as { protocol: Protocol };
  const [publish, subscribe] = [protocol.publish.bind(protocol), protocol.subscribe.bind(protocol)];
  const refuse = (why: string): never => {
    options.onRefused(why);
    throw new TroupeError('tooLarge', why);
  };

  protocol.publish = (subject, payload, about) => {
    const why = faultOfLine(subject, about?.reply ?? '');
    if (why) refuse(why);
    // Between two connections nobody says how much the next broker takes, but what is published then may be sent to it.
    if (!protocol.info && sizeOf(payload, about) > HEADER_ROOM) throw NatsError.errorForCode(ErrorCode.Disconnect);
    try {
      if (payload && payload.length >= LARGE_BYTES) sendLarge(protocol, () => publish(subject, payload, about));
      else publish(subject, payload, about);
    } catch (error) {
      if (isRefused(error)) refuse(`${tooLarge(subject)} (${error.message})`);
      throw error;
    }
  };
  protocol.subscribe = (subscribing) => {
    const why = faultOfLine(subscribing.subject, subscribing.queue ?? '');
    if (why) refuse(why);
    // An iterator has none of its own: whoever iterates reads the headers, and gets what reading throws.
    if (Object.hasOwn(subscribing, 'callback')) subscribing.callback = taking(subscribing.callback, answer, options);
    return subscribe(subscribing);
  };

  /** Whoever can be told what was wrong is told so. */
  function answer(msg: Msg, message: string): void {
    if (!msg.reply || !isInbox(msg.reply) || faultOfLine(msg.reply, '')) return;
    if (nc.isClosed()) return;
    const failure: Failure = { code: 'invalid', delivery: 'not sent', message };
    const frame = mayWantStream(msg) ? { 'Mcp-Frame': 'error', 'Mcp-Seq': '1' } : undefined;
    publish(msg.reply, errorObject(failure), { headers: toHeaders({ ...frame, ...errorHeaders(failure) }) });
    if (frame) publish(msg.reply);
  }

  return nc;
}

/** The bus will not take this message, now or later. */
export function isRefused(error: unknown): error is Error {
  if (error instanceof NatsError) return NEVER.includes(error.code);
  return error instanceof TroupeError && error.code === 'tooLarge';
}

/** Whoever publishes need not tell of it: what is refused was counted here, and to be without a connection is a state of the bus. */
export const isToldElsewhere = (error: unknown): boolean =>
  isRefused(error) || (error instanceof NatsError && error.code === ErrorCode.Disconnect);

const NEVER: readonly string[] = [ErrorCode.MaxPayloadExceeded, ErrorCode.BadSubject, ErrorCode.BadHeader];

// ── Going out ────────────────────────────────────────────────────────────────

const BLANK = /[ \t\r\n\0]/;
/** The numbers and blanks of a line. */
const LINE_ROOM = 48;
const MAX_UTF8 = 3;

function faultOfLine(subject: string, more: string): string | undefined {
  if (BLANK.test(subject) || (more !== '' && BLANK.test(more)))
    return `a message was not sent, because there is a blank in its subject ${start(subject)} or reply subject`;
  // Almost every line is so short that its bytes need not be counted.
  if ((subject.length + more.length) * MAX_UTF8 + LINE_ROOM <= MAX_LINE_BYTES) return undefined;
  const bytes = Buffer.byteLength(subject) + Buffer.byteLength(more) + LINE_ROOM;
  if (bytes <= MAX_LINE_BYTES) return undefined;
  return `a message was not sent, because its subjects have ${bytes} bytes, and ${MAX_LINE_BYTES} is the limit: ${start(subject)}`;
}

const tooLarge = (subject: string): string =>
  `a message was not sent, because it is larger than the broker takes: ${start(subject)}`;

const sizeOf = (payload: Uint8Array | string = '', about?: Options): number =>
  Buffer.byteLength(payload) + (about?.headers ? Buffer.byteLength(String(about.headers)) : 0);

const SHOWN = 60;
const start = (subject: string): string => (subject.length <= SHOWN ? subject : `${subject.slice(0, SHOWN)}…`);

// ── Coming in ────────────────────────────────────────────────────────────────

function taking(take: Callback, answer: (msg: Msg, why: string) => void, options: BoundsOptions): Callback {
  return (error, msg) => {
    try {
      const why = error ? undefined : faultOf(msg);
      if (why === undefined) return take(error, msg);
      options.onRefused(`a message on ${start(msg.subject)} was not taken: ${why}`);
      answer(msg, why);
    } catch (fault) {
      options.onFault(fault);
    }
  };
}

/** What is wrong with a message; its headers are read for good when nothing is. */
function faultOf(msg: Msg): string | undefined {
  const { _msg: line, _rdata: data } = msg as unknown as Received;
  if (line.reply && line.reply.length > MAX_REPLY_BYTES)
    return `the reply subject is longer than ${MAX_REPLY_BYTES} bytes; use an inbox of the client library`;
  if (line.hdr < 0) return undefined;
  if (line.hdr > MAX_HEADER_BYTES)
    return `the headers have ${line.hdr} bytes; the limit is ${MAX_HEADER_BYTES}, put what is long into the body`;
  if (countLines(data.subarray(0, line.hdr)) > MAX_HEADERS)
    return `there are more than ${MAX_HEADERS} headers; send fewer`;
  try {
    void msg.headers;
    return undefined;
  } catch {
    return 'the headers cannot be read; a name is ASCII without blanks, and a value is one line';
  }
}

/** A message as the client has it: `hdr` counts the bytes of the headers, which stand before the body; -1 is none. */
type Received = {
  readonly _msg: { readonly reply?: Uint8Array; readonly hdr: number };
  readonly _rdata: Uint8Array;
};

/** Whoever asked for a stream waits for its end; headers that cannot be read are looked through for it. */
function mayWantStream(msg: Msg): boolean {
  const { _msg: line, _rdata: data } = msg as unknown as Received;
  return line.hdr > 0 && Buffer.from(data.buffer, data.byteOffset, line.hdr).includes('\nTroupe-Stream:');
}

const NEWLINE = 0x0a;

function countLines(bytes: Uint8Array): number {
  let lines = 0;
  for (let at = bytes.indexOf(NEWLINE); at >= 0; at = bytes.indexOf(NEWLINE, at + 1)) lines += 1;
  return lines - 2; // the version before them, and the empty line after
}
