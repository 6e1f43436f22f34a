// Every failure a caller can meet, in one table: JSON-RPC code, NATS code, exit code.
// A failure also says whether the request reached the server, because that decides if the caller may try again.

type Codes = { readonly rpc: number; readonly nats: number; readonly exit: number };

export const FAILURES = {
  malformed: { rpc: -32700, nats: 400, exit: 2 },
  invalid: { rpc: -32602, nats: 400, exit: 2 },
  unauthorized: { rpc: -32013, nats: 403, exit: 3 },
  unknownServer: { rpc: -32602, nats: 404, exit: 1 },
  unknownName: { rpc: -32602, nats: 404, exit: 1 },
  unsupported: { rpc: -32601, nats: 404, exit: 1 },
  unavailable: { rpc: -32010, nats: 503, exit: 4 },
  answered: { rpc: -32016, nats: 409, exit: 1 },
  ended: { rpc: -32602, nats: 409, exit: 1 },
  busy: { rpc: -32012, nats: 429, exit: 1 },
  timeout: { rpc: -32001, nats: 408, exit: 1 },
  cancelled: { rpc: -32014, nats: 499, exit: 1 },
  lost: { rpc: -32011, nats: 502, exit: 1 },
  tooLarge: { rpc: -32015, nats: 413, exit: 1 },
  rejected: { rpc: -32603, nats: 500, exit: 1 },
  internal: { rpc: -32603, nats: 500, exit: 1 },
} as const satisfies Record<string, Codes>;

export type FailureCode = keyof typeof FAILURES;

/** What is known of the request: it was never sent, it was sent and its outcome is unknown, or an error answered it. */
export type Delivery = 'not sent' | 'outcome unknown' | 'failed';

export type Failure = {
  readonly code: FailureCode;
  readonly delivery: Delivery;
  /** One sentence that names the thing and the remedy. */
  readonly message: string;
  readonly server?: string;
  readonly state?: string;
  /** The server's own JSON-RPC error object, byte for byte, when it rejected the request itself. */
  readonly error?: Buffer;
  /** A remote server answered the request with this status, and may have said how long it wants to be left alone. */
  readonly http?: { readonly status: number; readonly retryMs?: number };
};

/** The JSON-RPC error object of a failure: the server's own bytes if it sent one, else ours. */
export function errorObject(failure: Failure): Buffer {
  if (failure.error) return failure.error;
  const { code, delivery, message, server, state } = failure;
  return Buffer.from(
    JSON.stringify({ code: FAILURES[code].rpc, message, data: { troupe: { code, delivery, server, state } } }),
  );
}

/** The HTTP-like code of `Nats-Service-Error-Code`. A server's own error is judged by its JSON-RPC code. */
export function natsCode(failure: Failure): number {
  return failure.error ? natsCodeOf(rpcCodeOf(failure)) : FAILURES[failure.code].nats;
}

export function rpcCodeOf(failure: Failure): number {
  if (!failure.error) return FAILURES[failure.code].rpc;
  try {
    const { code } = JSON.parse(failure.error.toString());
    return Number.isSafeInteger(code) ? code : FAILURES.rejected.rpc; // 1e308 is whole too, but no column takes it
  } catch {
    return FAILURES.rejected.rpc; // an error object that is no object: the server's fault, reported as such
  }
}

function natsCodeOf(rpcCode: number): number {
  if (rpcCode === -32602 || rpcCode === -32600 || rpcCode === -32700) return 400;
  if (rpcCode === -32601 || rpcCode === -32002) return 404;
  return 500;
}

/** The one error class of troupe: a sentence for the person, a code for the program. */
export class TroupeError extends Error {
  readonly code: FailureCode;
  constructor(code: FailureCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'TroupeError';
    this.code = code;
  }
  /** A machine stores the reason of its failure as text that people read: the sentence alone, without the class's name. */
  override toString(): string {
    return this.message;
  }
}

export const sentence = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** A failure thrown whole, with what a server said itself. */
export const failing = (failure: Failure, message = failure.message): TroupeError =>
  new TroupeError(failure.code, message, { cause: { failure } });

/** The failure that was thrown whole, if it was. */
export const thrownWhole = (error: TroupeError): Failure | undefined =>
  (error.cause as { failure?: Failure } | undefined)?.failure;

/**
 * What a caller is told of a thrown error. The sentence of a TroupeError is written for callers; file names and bugs are for
 * the daemon's owner only: an outage of the database stands in the status, and `onFault` is given every other error.
 */
export function failureOf(
  error: unknown,
  onFault: (error: unknown) => void = () => {},
  delivery: Delivery = 'not sent',
): Failure {
  if (!(error instanceof TroupeError)) {
    onFault(error);
    return { code: 'internal', delivery, message: FAULT };
  }
  const whole = thrownWhole(error);
  if (whole) return whole;
  const { code, message } = error;
  if (code !== 'unavailable' && code !== 'internal') return { code, delivery, message };
  if (NAMES_A_FILE.test(message)) return { code, delivery, message: NO_DATABASE };
  if (code === 'unavailable') return { code, delivery, message };
  onFault(error);
  return { code, delivery, message: FAULT };
}

const FAULT = 'troupe could not handle the request; its log says why';
const NO_DATABASE = 'troupe cannot use its database now; its owner sees why in troupe status';
const NAMES_A_FILE = /(^|[\s"'(])(\/|[A-Za-z]:\\)\S/;
