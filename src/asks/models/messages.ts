// The rules of a conversation that a server wants a model to continue, and of what comes back. Both are only looked at:
// the bytes go on as they came. A string is the sentence that its sender is told.

import { elements, isJsonObject } from '../../protocol/json.ts';
import { withoutControls } from '../../telemetry/printable.ts';
import { type Block, isArray, isText, readBlocks, readObject, textIn } from './message-blocks.ts';
import { optionProblem, readTools, type Tools } from './message-options.ts';

export type Sampling = Tools & {
  /** What the user said last, in short. */
  readonly message: string;
  /** How often the assistant has used tools in it. */
  readonly iterations: number;
};

type Message = { readonly role: string; readonly blocks: Block[] };
type Use = Block & { type: 'tool_use' };

// A message of many megabytes is one image; one of many thousand parts is an attack on whoever has to look at them.
const MAX_MESSAGES = 2_000;
const MAX_BLOCKS = 20_000;
const MAX_BYTES = 64 * 1_048_576;

/** Reads the params of sampling/createMessage. A string is why they are refused with -32602. */
export function readSampling(params: Buffer): Sampling | string {
  if (params.length > MAX_BYTES) return 'a sampling request must not be larger than 64 MB';
  const request = isJsonObject(params) ? readObject(params) : 'must be an object';
  if (typeof request === 'string') return `the params ${request}`;
  const problem = optionProblem(request);
  if (problem !== undefined) return problem;
  const messages = readMessages(request.get('messages'));
  if (typeof messages === 'string') return messages;
  const unbalanced = balanceProblem(messages);
  if (unbalanced !== undefined) return unbalanced;
  const tools = readTools(request);
  if (typeof tools === 'string') return tools;
  const iterations = messages.filter(({ blocks }) => usesOf(blocks).length > 0).length;
  return { message: lastWords(messages), iterations, ...tools };
}

/** What is wrong with the answer to these params, naming the member. */
export function checkResult(request: Buffer, result: Buffer): string | undefined {
  const asked = readSampling(request);
  if (typeof asked === 'string') return asked;
  const found = isJsonObject(result) ? readObject(result) : 'must be an object';
  if (typeof found === 'string') return `the message ${found}`;
  if (textIn(found, 'role') !== 'assistant') return 'role: must be assistant';
  if (!isText(found.get('model'))) return 'model: must be the name of the model';
  const stopReason = found.get('stopReason');
  if (stopReason && !isText(stopReason)) return 'stopReason: must be a text';
  const blocks = readBlocks(found.get('content'));
  if (typeof blocks === 'string') return `content: ${blocks}`;
  if (blocks.some(({ type }) => type === 'tool_result')) return 'content: an assistant gives no results of tools';
  const uses = usesOf(blocks);
  if (uses.length === 0 && textIn(found, 'stopReason') === 'toolUse')
    return 'stopReason: must not be toolUse when no tool is used';
  const problem = useProblem(asked, uses);
  return problem && `content: ${problem}`;
}

function useProblem({ toolChoice, toolNames }: Sampling, uses: readonly Use[]): string | undefined {
  if (toolChoice === 'required' && uses.length === 0) return 'the server requires that a tool is used';
  if (toolChoice === 'none' && uses.length > 0) return 'the server wants no tool to be used';
  const unknown = uses.find(({ name }) => !toolNames.has(name));
  if (unknown) return `the server offers no tool ${JSON.stringify(unknown.name)}`;
  const twice = repeated(uses.map(({ id }) => id));
  return twice === undefined ? undefined : `two tools are used under the id ${JSON.stringify(twice)}`;
}

function readMessages(list: Buffer | undefined): Message[] | string {
  if (!isArray(list)) return 'messages must be a list of messages';
  const messages: Message[] = [];
  let count = 0;
  for (const each of elements(list)) {
    const number = messages.length + 1;
    const message = readObject(each);
    if (typeof message === 'string') return `message ${number} ${message}`;
    const role = textIn(message, 'role');
    if (role !== 'user' && role !== 'assistant') return `the role of message ${number} must be user or assistant`;
    const blocks = readBlocks(message.get('content'));
    if (typeof blocks === 'string') return `message ${number}: ${blocks}`;
    count += blocks.length;
    if (count > MAX_BLOCKS) return `messages must not have more than ${MAX_BLOCKS} blocks of content`;
    if (messages.push({ role, blocks }) > MAX_MESSAGES) return `messages must not be more than ${MAX_MESSAGES}`;
  }
  return messages.length > 0 ? messages : 'messages must not be empty';
}

const MISSING = 'Tool result missing in request';
const MIXED = 'Tool results mixed with other content';

/** Each use of a tool has its result in the message that follows, and that message has nothing else. */
function balanceProblem(messages: readonly Message[]): string | undefined {
  let open = new Set<string>();
  for (const { role, blocks } of messages) {
    const results = blocks.flatMap((block) => (block.type === 'tool_result' ? block.id : []));
    const uses = usesOf(blocks).map(({ id }) => id);
    if (role === 'user' && uses.length > 0) return 'Tool use in a message of the user';
    if (role === 'assistant' && results.length > 0) return 'Tool result in a message of the assistant';
    if (results.length > 0 && results.length < blocks.length) return MIXED;
    const given = new Set(results);
    if ([...open].some((id) => !given.has(id))) return MISSING;
    const stray = results.find((id) => !open.has(id));
    if (stray !== undefined) return `Tool result ${JSON.stringify(stray)} has no tool use in the message before it`;
    const twice = repeated(results) ?? repeated(uses);
    if (twice !== undefined) return `Tool use id ${JSON.stringify(twice)} given twice in a message`;
    open = new Set(uses);
  }
  return open.size > 0 ? MISSING : undefined;
}

const usesOf = (blocks: readonly Block[]): Use[] => blocks.filter((block) => block.type === 'tool_use');

const repeated = (ids: readonly string[]): string | undefined => {
  const seen = new Set<string>();
  return ids.find((id) => seen.size === seen.add(id).size);
};

const MAX_WORDS = 200;

function lastWords(messages: readonly Message[]): string {
  const last = messages.findLast(({ role }) => role === 'user');
  const words = (last?.blocks ?? [])
    .slice(0, MAX_WORDS)
    .map((block) => ('text' in block ? block.text.slice(0, 4 * MAX_WORDS) : `[${block.type.replace('_', ' ')}]`));
  const text = [...withoutControls(words.join(' ')).replace(/\s+/g, ' ').trim()];
  return text.length > MAX_WORDS ? `${text.slice(0, MAX_WORDS - 1).join('')}…` : text.join('');
}
