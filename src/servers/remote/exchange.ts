// One HTTP request and its response, on undici's bare dispatch: bytes out, bytes in, and the one fact that undici's `request`
// hides: whether the request had left before it failed. No callback comes after `abort`.

import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';

export type Head = { readonly status: number; readonly headers: IncomingHttpHeaders };
/** Takes the body of a response; exactly one of `onEnd` and `onBroken` is called, unless the exchange is aborted. */
export type Reader = { onChunk(chunk: Buffer): void; onEnd(): void; onBroken(why: string): void };

export type Message = {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly path: string;
  readonly headers: Record<string, string>;
  readonly body?: Buffer;
  /** How long the head of the response may take; 0 is no limit. */
  readonly headMs: number;
};
export type Receiver = {
  onHead(head: Head): Reader;
  /** No response came. */
  onFailed(why: string, wasSent: boolean): void;
};
export type Exchange = { abort(): void; pause(): void; resume(): void; readonly wasSent: boolean };

export function exchange(dispatcher: Dispatcher, message: Message, { onHead, onFailed }: Receiver): Exchange {
  let controller: Dispatcher.DispatchController | undefined;
  let reader: Reader | undefined;
  let isOver = false;
  let isPaused = false;
  let isDispatched = false;

  const failed = (error: Error): void => {
    if (isOver) return;
    isOver = true;
    if (reader) reader.onBroken(trouble(error));
    else onFailed(trouble(error), controller !== undefined);
  };
  const handler: Dispatcher.DispatchHandler = {
    onRequestStart(next) {
      controller = next;
      if (isOver) next.abort(new Error('nobody waits for it'));
    },
    onResponseStart(_, status, headers) {
      if (status < 200 || isOver) return;
      reader = onHead({ status, headers });
      if (isPaused) controller?.pause();
    },
    onResponseData(_, chunk) {
      if (!isOver) reader?.onChunk(chunk);
    },
    onResponseEnd() {
      if (isOver) return;
      isOver = true;
      reader?.onEnd();
    },
    // Some errors come before `dispatch` has returned, when the caller does not have the exchange yet.
    onResponseError: (_, error) => (isDispatched ? failed(error) : queueMicrotask(() => failed(error))),
  };
  const { method, path, headers, body, headMs } = message;
  try {
    const timeouts = { headersTimeout: headMs, bodyTimeout: 0 };
    dispatcher.dispatch({ method, path, headers, body: body ?? null, ...timeouts }, handler);
  } catch (error) {
    queueMicrotask(() => failed(error as Error));
  }
  isDispatched = true;

  return {
    abort(): void {
      if (isOver) return;
      isOver = true;
      controller?.abort(new Error('nobody waits for it'));
    },
    pause(): void {
      isPaused = true;
      controller?.pause();
    },
    resume(): void {
      isPaused = false;
      controller?.resume();
    },
    get wasSent() {
      return controller !== undefined;
    },
  };
}

const TROUBLES: Record<string, string> = {
  ECONNREFUSED: 'the connection was refused',
  ENOTFOUND: 'its name was not found',
  EAI_AGAIN: 'its name could not be looked up',
  ECONNRESET: 'the connection broke',
  EPIPE: 'the connection broke',
  UND_ERR_SOCKET: 'the connection broke',
  UND_ERR_CONNECT_TIMEOUT: 'no connection came about in time',
  UND_ERR_HEADERS_TIMEOUT: 'no answer came in time',
  UND_ERR_INVALID_ARG: 'a header of the configuration may not be sent',
  HPE_INVALID_CONSTANT: 'what answers there does not speak HTTP',
};

/** Never the error's own text: it may hold an address with its query. */
function trouble(error: Error): string {
  const code = 'code' in error && typeof error.code === 'string' ? error.code : error.name;
  const words = TROUBLES[code] ?? (code.startsWith('HPE_') ? TROUBLES.HPE_INVALID_CONSTANT : 'the connection failed');
  return `${words} (${code})`;
}

/** Collects the body; `why` says why it is not whole. */
export function collect(maxBytes: number, stop: () => void, onBody: (body: Buffer, why?: string) => void): Reader {
  const pieces: Buffer[] = [];
  let bytes = 0;
  const whole = (): Buffer => (pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces));
  return {
    onChunk(chunk) {
      bytes += chunk.length;
      if (bytes <= maxBytes) return void pieces.push(chunk);
      stop();
      onBody(whole(), TOO_LONG);
    },
    onEnd: () => onBody(whole()),
    onBroken: (why) => onBody(whole(), why),
  };
}

export const TOO_LONG = 'it sent more than x-troupe.maxFrameBytes allows';
