// A statement with its values, checked where the mistake was made: one bad value would spoil the whole batch on its way.

import { TroupeError } from '../protocol/failures.ts';
import { arityOf, type Op, type Params, type Value, type WriteName } from './statements.ts';

/** More would not fit into the memory of the writer thread, and would end it. */
const MAX_BYTES = 33_554_432;

export type SizedOp = Op & { readonly bytes: number };

export function operation(name: WriteName, params: Params): SizedOp {
  if (params.length !== arityOf[name])
    throw new TroupeError('internal', `The statement ${name} takes ${arityOf[name]} values, not ${params.length}.`);
  let bytes = 64;
  let hasSlice = false;
  for (const value of params) {
    if (typeof value === 'string') bytes += value.length;
    else if (value instanceof Uint8Array) {
      bytes += value.byteLength;
      hasSlice ||= isSlice(value);
    } else if (value !== null && typeof value !== 'number' && typeof value !== 'bigint')
      throw new TroupeError('internal', `The statement ${name} cannot take a value of type ${typeof value}.`);
  }
  if (bytes > MAX_BYTES)
    throw new TroupeError('tooLarge', `The statement ${name} carries ${bytes} bytes, but ${MAX_BYTES} is the most.`);
  return { name, params: hasSlice ? params.map(whole) : params, bytes };
}

// Sending a slice to a thread would send the whole buffer that it was cut from.
const isSlice = (value: Uint8Array): boolean => value.byteLength !== value.buffer.byteLength;
const whole = (value: Value): Value => (value instanceof Uint8Array && isSlice(value) ? new Uint8Array(value) : value);
