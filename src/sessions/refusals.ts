// How a session says no: the error object of whatever went wrong with a request. A resource that is not there has a code of
// its own in MCP.

import { errorObject, failureOf } from '../protocol/failures.ts';
import { NotFound } from './targets.ts';

export function errorOf(error: unknown): Buffer {
  if (error instanceof NotFound) return rpcError(-32002, error.message, { uri: error.uri });
  return errorObject(failureOf(error));
}

export const rpcError = (code: number, message: string, data?: object): Buffer =>
  Buffer.from(JSON.stringify({ code, message, ...(data && { data }) }));
