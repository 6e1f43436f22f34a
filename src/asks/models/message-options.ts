// Reads what a sampling request has besides its messages: how the model is to answer, and which tools it may use.

import { elements } from '../../protocol/json.ts';
import { isArray, isObject, isText, nameIn, readObject, textIn } from './message-blocks.ts';

export type Tools = {
  readonly hasTools: boolean;
  readonly toolChoice: ToolChoice;
  readonly toolNames: Set<string>;
};

type ToolChoice = 'auto' | 'required' | 'none';
type Members = Map<string, Buffer>;

const MAX_SEQUENCES = 100;
const MAX_TOOLS = 1_000;

/** What whoever answers has to rely on must be of its kind; the rest is let be. */
export function optionProblem(request: Members): string | undefined {
  const maxTokens = Number(request.get('maxTokens')?.toString());
  if (!(maxTokens > 0 && Number.isFinite(maxTokens))) return 'maxTokens must be a number above 0';
  for (const [key, isRight, what] of OTHERS) {
    const value = request.get(key);
    if (value && !isRight(value)) return `${key} must be ${what}`;
  }
  return sequencesProblem(request.get('stopSequences'));
}

function sequencesProblem(list: Buffer | undefined): string | undefined {
  let count = 0;
  for (const each of list ? elements(list) : []) {
    if (!isText(each)) return 'stopSequences must be texts';
    if (++count > MAX_SEQUENCES) return `stopSequences must not be more than ${MAX_SEQUENCES}`;
  }
  return undefined;
}

const isNumber = (value: Buffer): boolean => /^[-\d]/.test(value.toString('latin1', 0, 1));

const OTHERS: readonly [key: string, isRight: (value: Buffer) => boolean, what: string][] = [
  ['systemPrompt', isText, 'a text'],
  ['temperature', isNumber, 'a number'],
  ['stopSequences', isArray, 'a list'],
  ['modelPreferences', isObject, 'an object'],
];

export function readTools(request: Members): Tools | string {
  const toolNames = new Set<string>();
  const list = request.get('tools');
  if (list && !isArray(list)) return 'tools must be a list of tools';
  for (const each of list ? elements(list) : []) {
    const tool = readObject(each);
    const name = typeof tool === 'string' ? undefined : nameIn(tool, 'name');
    if (typeof tool === 'string' || name === undefined || !isObject(tool.get('inputSchema')))
      return 'each of the tools must have a name and an inputSchema';
    if (toolNames.has(name)) return `tools must not have two of the name ${JSON.stringify(name)}`;
    if (toolNames.add(name).size > MAX_TOOLS) return `tools must not be more than ${MAX_TOOLS}`;
  }
  const hasTools = toolNames.size > 0;
  const toolChoice = readChoice(request.get('toolChoice'));
  if (!toolChoice) return 'the mode of toolChoice must be auto, required or none';
  if (toolChoice === 'required' && !hasTools) return 'toolChoice requires a tool, and there are no tools';
  return { hasTools, toolChoice, toolNames };
}

function readChoice(value: Buffer | undefined): ToolChoice | undefined {
  if (!value) return 'auto';
  const choice = readObject(value);
  if (typeof choice === 'string') return undefined;
  const mode = choice.has('mode') ? textIn(choice, 'mode') : 'auto';
  return mode === 'auto' || mode === 'required' || mode === 'none' ? mode : undefined;
}
