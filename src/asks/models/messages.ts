// The rules of a conversation that a server wants a model to continue, and of what comes back. Both are only looked at:
// the bytes go on as they came. A string is the sentence that its sender is told.

import { elements, isJsonObject, members, stringOf } from '../../protocol/json.ts';
import { OPEN_BRACE, OPEN_BRACKET, QUOTE, spaceEnd } from '../../protocol/scan.ts';
import { withoutControls } from '../../telemetry/printable.ts';

export type Sampling = Tools & {
  /** What the user said last, in short. */
  readonly message: string;
  /** How many messages of the assistant use tools. */
  readonly iterations: number;
};

type Message = { readonly role: string; readonly blocks: Block[] };
type Use = Block & { type: 'tool_use' };

// A message of many megabytes is an image; one of many thousand parts is an attack on the person who has to look at it.
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

// ── How the model is to answer, and which tools it may use ───────────────────

type Tools = {
  readonly hasTools: boolean;
  readonly toolChoice: ToolChoice;
  readonly toolNames: Set<string>;
};

type ToolChoice = 'auto' | 'required' | 'none';

const MAX_SEQUENCES = 100;
const MAX_TOOLS = 1_000;

/** Members that every answerer relies on must have the right type; others are not looked at. */
function optionProblem(request: Members): string | undefined {
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

function readTools(request: Members): Tools | string {
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

// ── The content of one message: spans of a valid frame, so that the first byte tells what a value is ──

type Members = Map<string, Buffer>;

type Block =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image' | 'audio' }
  | { readonly type: 'tool_use'; readonly id: string; readonly name: string }
  | { readonly type: 'tool_result'; readonly id: string };

const MAX_BLOCKS_A_MESSAGE = 1_000;
const MAX_MEMBERS = 200;
const MAX_ID = 256;

/** The members of an object; a string when it is none, or when readers of JSON would disagree on what it says. */
function readObject(value: Buffer | undefined): Members | string {
  if (!isObject(value)) return 'must be an object';
  const found = new Map<string, Buffer>();
  for (const [key, each] of members(value)) {
    if (found.has(key)) return `must not have ${JSON.stringify(key.slice(0, 40))} twice`;
    if (found.set(key, each).size > MAX_MEMBERS) return `must not have more than ${MAX_MEMBERS} members`;
  }
  return found;
}

/** The content of a message is a block or a list of them. */
function readBlocks(content: Buffer | undefined): Block[] | string {
  if (!isArray(content)) {
    const block = readBlock(content);
    return typeof block === 'string' ? block : [block];
  }
  const blocks: Block[] = [];
  for (const each of elements(content)) {
    const block = readBlock(each);
    if (typeof block === 'string') return block;
    if (blocks.push(block) > MAX_BLOCKS_A_MESSAGE)
      return `the content must not have more than ${MAX_BLOCKS_A_MESSAGE} blocks`;
  }
  return blocks;
}

function readBlock(bytes: Buffer | undefined): Block | string {
  const block = readObject(bytes);
  if (typeof block === 'string') return `the content ${block}`;
  const type = textIn(block, 'type');
  switch (type) {
    case 'text': {
      const text = textIn(block, 'text');
      return text === undefined ? 'a text must have its text' : { type, text };
    }
    case 'image':
    case 'audio':
      return isText(block.get('data')) && isText(block.get('mimeType'))
        ? { type }
        : `an ${type} must have data and mimeType`;
    case 'tool_use':
      return readUse(block);
    case 'tool_result':
      return readResult(block);
    default:
      return 'the type of a content must be text, image, audio, tool_use or tool_result';
  }
}

function readUse(block: Members): Block | string {
  const id = nameIn(block, 'id');
  const name = nameIn(block, 'name');
  if (id === undefined || name === undefined) return 'a tool_use must have an id and a name';
  return isObject(block.get('input')) ? { type: 'tool_use', id, name } : 'a tool_use must have an object as its input';
}

function readResult(block: Members): Block | string {
  const id = nameIn(block, 'toolUseId');
  if (id === undefined) return 'a tool_result must have a toolUseId';
  const content = block.get('content');
  return content && !isArray(content) ? 'the content of a tool_result must be a list' : { type: 'tool_result', id };
}

function textIn(object: Members, key: string): string | undefined {
  const value = object.get(key);
  return value && stringOf(value);
}

/** A text that is neither empty nor long. */
function nameIn(object: Members, key: string): string | undefined {
  const value = object.get(key);
  const name = value && value.length <= 6 * MAX_ID ? stringOf(value) : undefined;
  return name && name.length <= MAX_ID ? name : undefined;
}

function isText(value: Buffer | undefined): boolean {
  return value?.[0] === QUOTE;
}

function isArray(value: Buffer | undefined): value is Buffer {
  return value?.[0] === OPEN_BRACKET;
}

function isObject(value: Buffer | undefined): value is Buffer {
  return value !== undefined && value[spaceEnd(value, 0)] === OPEN_BRACE;
}
