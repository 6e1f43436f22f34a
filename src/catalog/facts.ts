// What a server said of itself when the session was opened, and what may therefore be sent to it.

import type { Era, ServerCapabilities } from '../protocol/eras.ts';
import { rowOf } from '../protocol/methods.ts';

export type Facts = {
  readonly era: Era;
  readonly capabilities: ServerCapabilities;
  readonly name: string;
  readonly version: string;
  /** Its `serverInfo` as it came, titles and icons included. */
  readonly info: object;
  readonly instructions?: string;
  /** Whatever else it said, such as `_meta`. */
  readonly others?: object;
};

/** Whether the server declared what this request needs. */
export function offers({ capabilities }: Facts, method: string): boolean {
  const needs = rowOf(method)?.needs;
  if (!needs) return true;
  const [declared, option] = [capabilities[needs[0]], needs[1]];
  return option === undefined ? declared !== undefined : declared?.[option] === true || isObject(declared?.[option]);
}

/** Whether a server runs calls of its tools as tasks of its own; false for a server that has not been open yet. */
export function runsTasks(facts: Facts | undefined): facts is Facts {
  const { requests } = facts?.capabilities.tasks ?? {};
  return isObject(requests) && isObject(requests.tools) && isObject(requests.tools.call);
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null;
