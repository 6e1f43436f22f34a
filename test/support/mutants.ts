// Machines with one thing missing: an action, a guard, a port or a reaction. A test of a machine is good when it fails for each.

import type { AnyStateMachine } from 'xstate';

export type Mutant = { readonly without: string; readonly config: any };

/** `skip` names parts of the configuration (by their path, such as `states.open.states.host`) that are left as they are. */
export function mutantsOf({ config }: AnyStateMachine, skip: RegExp = /(?!)/): Mutant[] {
  const mutants: Mutant[] = [];
  visit(config, []);
  return mutants;

  function visit(node: any, path: readonly string[]): void {
    if (typeof node !== 'object' || node === null || skip.test(path.join('.'))) return;
    for (const [key, value] of Object.entries(node)) {
      const here = [...path, key];
      if (skip.test(here.join('.'))) continue;
      if (LISTS.has(key)) for (const index of [value].flat().keys()) add(here, `#${index}`, without(value, index));
      if (key === 'guard') add(here, '', undefined);
      if (key === 'on' || key === 'after')
        for (const event of Object.keys(value as object)) add([...here, event], '', undefined);
      if (key === 'invoke') add(here, '', undefined);
      if (!LISTS.has(key)) visit(value, here);
    }
  }

  function add(path: readonly string[], more: string, value: unknown): void {
    mutants.push({ without: `${path.join('.')}${more}`, config: replaced(config, path, value) });
  }
}

const LISTS = new Set(['entry', 'exit', 'actions']);

const without = (list: unknown, index: number): unknown[] => [list].flat().filter((_, at) => at !== index);

function replaced(node: any, [key, ...rest]: readonly string[], value: unknown): any {
  if (key === undefined) return value;
  if (Array.isArray(node)) return node.map((each, at) => (String(at) === key ? replaced(each, rest, value) : each));
  const next = replaced(node[key], rest, value);
  // In the old order, which decides between transitions.
  return Object.fromEntries(
    Object.entries(node).flatMap(([name, each]) =>
      name !== key ? [[name, each]] : next === undefined ? [] : [[name, next]],
    ),
  );
}
