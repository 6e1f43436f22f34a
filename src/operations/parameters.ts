// Who asks for an operation, and its parameters and results as they pass the control socket. Parameters that do not fit are
// refused with a sentence that names them; what must arrive unchanged is taken from the bytes.

import type { Signal } from '../calls/call.ts';
import { TroupeError } from '../protocol/failures.ts';

export type Caller = {
  /** Whose tasks and questions are meant. The owner of this machine has none, and means everybody's. */
  readonly principal: string | undefined;
  /** Named to those who answer a question too late, such as `troupe answer`. */
  readonly by: string;
  /** Aborts when the caller is gone or wants the result no more; its reason is a TroupeError that says which. */
  readonly signal?: AbortSignal;
  readonly tell?: (signal: Signal) => void;
};

/** The parameters as they were sent. `fields` are parsed when they are first looked at: those of a call never are. */
export type Given = { readonly bytes: Buffer; readonly fields: Readonly<Record<string, unknown>> };

/** A result that leaves as bytes, with the type that parsing them gives. */
export type Json<Value> = Buffer & { readonly [parsed]?: Value };
declare const parsed: unique symbol;

/** The principal of whoever may open the control socket. */
export const OWNER = '_';

export function givenOf(bytes: Buffer): Given {
  let fields: Given['fields'] | undefined;
  return {
    bytes,
    get fields() {
      fields ??= JSON.parse(bytes.toString()) as Given['fields'];
      return fields;
    },
  };
}

export const invalid = (message: string): TroupeError => new TroupeError('invalid', message);

export function textOf(value: unknown, name: string): string {
  if (typeof value === 'string' && value !== '') return value;
  throw invalid(`${name} must be a string that is not empty`);
}

export function numberOf(value: unknown, name: string): number {
  if (typeof value === 'number' && value >= 0) return value;
  throw invalid(`${name} must be a number, at least 0`);
}

export function directoryOf({ fields: { path } }: Given): { path: string } {
  if (typeof path === 'string' && path !== '') return { path };
  throw invalid('name a directory, such as troupe roots add ~/projects');
}

export const namedDirectoryOf = (given: Given): { path: string; name?: string } => {
  const { name } = given.fields;
  return { ...directoryOf(given), ...(typeof name === 'string' && name !== '' && { name }) };
};

export const serverOf = ({ fields }: Given): { server: string } => ({ server: String(fields.server) });

export const idOf = ({ fields }: Given): { id: string } => ({ id: textOf(fields.id, 'id') });

export const nothing = (): Record<string, never> => ({});
