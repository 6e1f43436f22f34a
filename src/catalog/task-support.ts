// Whether a tool may be called as a task (`execution.taskSupport`). A server that runs tasks says it for each of its tools; for
// any other server troupe runs them, and every tool may be one.

import { withInner } from '../protocol/edit.ts';
import { mayHave, member, textAt } from '../protocol/json.ts';
import { CLOSE_BRACE } from '../protocol/scan.ts';
import type { Entry } from './fetch.ts';

export type TaskSupport = 'required' | 'optional' | 'forbidden';

const EXECUTION = Buffer.from('execution');
const OPTIONAL = Buffer.from(',"execution":{"taskSupport":"optional"}}');

/** A tool as it is shown when troupe runs its tasks: it may be one, whatever its server says. */
export function offeredAsTask(definition: Buffer): Buffer {
  if (mayHave(definition, EXECUTION) || definition.at(-1) !== CLOSE_BRACE)
    return withInner(definition, ['execution', 'taskSupport'], '"optional"');
  return Buffer.concat([definition.subarray(0, -1), OPTIONAL]);
}

/** Read once for each list: its entries are the same array until the list changes. */
const supportByList = new WeakMap<readonly Entry[], ReadonlyMap<string, TaskSupport>>();

/** What a server that runs tasks says of each of its tools. */
export function supportIn(entries: readonly Entry[]): ReadonlyMap<string, TaskSupport> {
  const found = supportByList.get(entries) ?? new Map(entries.map(({ name, bytes }) => [name, supportOf(bytes)]));
  supportByList.set(entries, found);
  return found;
}

/** A tool that says nothing, or a word that MCP does not have, cannot be a task. */
function supportOf(definition: Buffer): TaskSupport {
  const said = member(definition, 'execution') && textAt(definition, ['execution', 'taskSupport']);
  return said === 'required' || said === 'optional' ? said : 'forbidden';
}
