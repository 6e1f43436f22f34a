// Whether a tool may be called as a task. A server that runs no tasks says nothing of value about that, and troupe runs them
// for it; one that runs its own says it for each tool.

import { withInner } from '../protocol/edit.ts';
import { member, textAt } from '../protocol/json.ts';
import { CLOSE_BRACE } from '../protocol/scan.ts';
import type { Entry } from './fetch.ts';

export type TaskSupport = 'required' | 'optional' | 'forbidden';

const EXECUTION = Buffer.from('execution');
const ESCAPE = Buffer.from('\\u');
const OPTIONAL = Buffer.from(',"execution":{"taskSupport":"optional"}}');

/**
 * A tool as it is shown when troupe runs its tasks: whatever it said itself, it may be one. Where it says nothing, and only a
 * \u escape could spell that differently, it need not be walked.
 */
export function offeredAsTask(definition: Buffer): Buffer {
  if (definition.indexOf(EXECUTION) >= 0 || definition.indexOf(ESCAPE) >= 0 || definition.at(-1) !== CLOSE_BRACE)
    return withInner(definition, ['execution', 'taskSupport'], '"optional"');
  return Buffer.concat([definition.subarray(0, -1), OPTIONAL]);
}

/** By the list they are of, which is the same array until it changes. */
const known = new WeakMap<readonly Entry[], ReadonlyMap<string, TaskSupport>>();

/** What a server that runs tasks says of each of its tools. */
export function supportIn(entries: readonly Entry[]): ReadonlyMap<string, TaskSupport> {
  const found = known.get(entries) ?? new Map(entries.map(({ name, bytes }) => [name, supportOf(bytes)]));
  known.set(entries, found);
  return found;
}

/** A tool that says nothing, or nothing that we know, is none that may be a task. */
function supportOf(definition: Buffer): TaskSupport {
  const said = member(definition, 'execution') && textAt(definition, ['execution', 'taskSupport']);
  return said === 'required' || said === 'optional' ? said : 'forbidden';
}
