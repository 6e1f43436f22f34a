// What a server said of itself when the session was opened, and what may therefore be sent to it.

import { ERA_FACTS, type Era } from '../protocol/eras.ts';
import { runsTasks } from './task-support.ts';

export type Facts = {
  readonly era: Era;
  readonly capabilities: { readonly [capability: string]: { readonly [option: string]: unknown } | undefined };
  readonly name: string;
  readonly version: string;
  /** All that it says of itself, titles and icons included. */
  readonly info: object;
  readonly instructions?: string;
};

/** Whether its tools may be called as tasks of its own. */
export const hasTasks = (facts: Facts | undefined): facts is Facts =>
  facts !== undefined && ERA_FACTS[facts.era].tasks && runsTasks(facts);

export const cancelsTasks = ({ capabilities }: Facts): boolean =>
  typeof capabilities.tasks?.cancel === 'object' && capabilities.tasks.cancel !== null;

const NEEDS: Record<string, string> = {
  'tools/list': 'tools',
  'tools/call': 'tools',
  'resources/list': 'resources',
  'resources/templates/list': 'resources',
  'resources/read': 'resources',
  'prompts/list': 'prompts',
  'prompts/get': 'prompts',
  'logging/setLevel': 'logging',
};

export function mayAsk({ era, capabilities }: Facts, method: string): boolean {
  if (method === 'resources/subscribe' || method === 'resources/unsubscribe')
    return capabilities.resources?.subscribe === true;
  if (method === 'completion/complete') {
    if (ERA_FACTS[era].completionsDeclared) return capabilities.completions !== undefined;
    return capabilities.prompts !== undefined || capabilities.resources !== undefined;
  }
  const needed = NEEDS[method];
  return needed === undefined || capabilities[needed] !== undefined;
}
