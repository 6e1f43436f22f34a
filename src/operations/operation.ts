// What the owner of the daemon may ask of it: each operation has a name, takes parameters and gives a JSON value.

import { type Failure, TroupeError } from '../protocol/failures.ts';

/**
 * Methods beside `call`: parameters in, also as they came; a JSON value or the JSON itself out. A throw becomes a sentence.
 * The signal is of whoever asks, and aborts when they are gone.
 */
export type Handlers = { readonly [method: string]: Handler };
type Handler = (params: Record<string, unknown>, bytes: Buffer, signal: AbortSignal) => unknown;

/** What a method throws that has the failure whole, and maybe a server's own error. */
export const failing = (whole: Failure): TroupeError =>
  new TroupeError(whole.code, whole.message, { cause: { failure: whole } });
