// Reads the content of one message to or from a model: which blocks it has, and what of them the rules are about.
// The bytes are spans of a valid frame, so the first of them tells what a value is.

import { elements, members, stringOf } from '../../protocol/json.ts';
import { OPEN_BRACE, OPEN_BRACKET, QUOTE, spaceEnd } from '../../protocol/scan.ts';

export type Block =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image' | 'audio' }
  | { readonly type: 'tool_use'; readonly id: string; readonly name: string }
  | { readonly type: 'tool_result'; readonly id: string };

const MAX_BLOCKS = 1_000;
const MAX_MEMBERS = 200;
const MAX_ID = 256;

/** The members of an object; a string when it is none, or when readers of JSON would disagree on what it says. */
export function readObject(value: Buffer | undefined): Map<string, Buffer> | string {
  if (!isObject(value)) return 'must be an object';
  const found = new Map<string, Buffer>();
  for (const [key, each] of members(value)) {
    if (found.has(key)) return `must not have ${JSON.stringify(key.slice(0, 40))} twice`;
    if (found.set(key, each).size > MAX_MEMBERS) return `must not have more than ${MAX_MEMBERS} members`;
  }
  return found;
}

/** The content of a message is a block or a list of them. */
export function readBlocks(content: Buffer | undefined): Block[] | string {
  if (!isArray(content)) {
    const block = readBlock(content);
    return typeof block === 'string' ? block : [block];
  }
  const blocks: Block[] = [];
  for (const each of elements(content)) {
    const block = readBlock(each);
    if (typeof block === 'string') return block;
    if (blocks.push(block) > MAX_BLOCKS) return `the content must not have more than ${MAX_BLOCKS} blocks`;
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

function readUse(block: Map<string, Buffer>): Block | string {
  const id = nameIn(block, 'id');
  const name = nameIn(block, 'name');
  if (id === undefined || name === undefined) return 'a tool_use must have an id and a name';
  return isObject(block.get('input')) ? { type: 'tool_use', id, name } : 'a tool_use must have an object as its input';
}

function readResult(block: Map<string, Buffer>): Block | string {
  const id = nameIn(block, 'toolUseId');
  if (id === undefined) return 'a tool_result must have a toolUseId';
  const content = block.get('content');
  return content && !isArray(content) ? 'the content of a tool_result must be a list' : { type: 'tool_result', id };
}

export function textIn(object: Map<string, Buffer>, key: string): string | undefined {
  const value = object.get(key);
  return value && stringOf(value);
}

/** A text that is neither empty nor long. */
export function nameIn(object: Map<string, Buffer>, key: string): string | undefined {
  const value = object.get(key);
  const name = value && value.length <= 6 * MAX_ID ? stringOf(value) : undefined;
  return name && name.length <= MAX_ID ? name : undefined;
}

export const isText = (value: Buffer | undefined): boolean => value?.[0] === QUOTE;
export const isArray = (value: Buffer | undefined): value is Buffer => value?.[0] === OPEN_BRACKET;
export const isObject = (value: Buffer | undefined): value is Buffer =>
  value !== undefined && value[spaceEnd(value, 0)] === OPEN_BRACE;
