// A server's result, printed for a person: text as it is, other content in one line that names it.

import { member } from '../../protocol/json.ts';
import { bytes } from '../terminal/table.ts';
import type { Output } from '../verb.ts';

type Block = {
  readonly type?: string;
  readonly text?: string;
  readonly data?: string;
  readonly blob?: string;
  readonly mimeType?: string;
  readonly uri?: string;
  readonly name?: string;
  readonly resource?: Block;
};

/** Prints a CallToolResult: its text, or its structured content where it has no text. */
export function printToolResult(output: Output, result: Buffer): void {
  const blocks = blocksOf(result, 'content');
  const structured = member(result, 'structuredContent');
  if (structured && !blocks.some((block) => block.type === 'text')) output.print(structured.toString());
  for (const block of blocks) printBlock(output, block);
}

export function printContents(output: Output, result: Buffer): void {
  for (const content of blocksOf(result, 'contents')) {
    if (content.text !== undefined) output.print(content.text);
    else output.print(note('blob', content.blob, content));
  }
}

export function printPrompt(output: Output, result: Buffer): void {
  const { description, messages = [] } = JSON.parse(result.toString());
  if (description) output.say(output.paint('dim', String(description)));
  for (const { role, content } of messages as { role?: string; content?: Block | Block[] }[]) {
    output.print(output.paint('bold', `${String(role)}:`));
    for (const block of [content ?? []].flat()) printBlock(output, block);
  }
}

export const isToolError = (result: Buffer): boolean => member(result, 'isError')?.toString() === 'true';

function blocksOf(result: Buffer, key: string): Block[] {
  const list = JSON.parse((member(result, key) ?? '[]').toString());
  return Array.isArray(list) ? list : [];
}

function printBlock(output: Output, block: Block): void {
  const resource = block.resource ?? block;
  if (block.type !== 'text') output.print(note(block.type ?? 'content', resource.data ?? resource.blob, resource));
  if (resource.text !== undefined) output.print(resource.text);
}

/** `[image image/png, 12 kB]`: --json has the bytes. */
function note(kind: string, base64: string | undefined, { mimeType, uri, name }: Block): string {
  const facts = [mimeType, base64 && bytes(Buffer.byteLength(base64, 'base64')), name, uri].filter(Boolean);
  return `[${kind}${facts.length > 0 ? ` ${facts.join(', ')}` : ''}]`;
}
