// The messages of a sampling request and a model's result, as a person reads them: text as it is, behind a bar; the rest in
// one line that says what it was.

import type { AskView } from '../asks/ask.ts';
import { clean, occasion, oneLine, quoted, stated } from './answer-words.ts';
import type { Output } from './output.ts';
import { bytes, cut } from './table.ts';

type Block = { readonly [key: string]: unknown };
type Message = { readonly role?: unknown; readonly content?: unknown };
type Request = {
  readonly messages?: unknown;
  readonly systemPrompt?: unknown;
  readonly tools?: unknown;
  readonly maxTokens?: unknown;
  readonly modelPreferences?: { readonly hints?: unknown };
};

export function requestText(output: Output, view: AskView): string {
  const { server, request } = view;
  const name = output.paint('bold', oneLine(server));
  if (!request) return `${name} asks for a model's answer; the request is too large to be shown here.`;
  const { messages, systemPrompt, tools, maxTokens, modelPreferences } = request as Request;
  const hints = listOf(modelPreferences?.hints).map(({ name: hint }) => oneLine(String(hint)));
  const wishes = [
    ...(typeof maxTokens === 'number' ? [`at most ${maxTokens} tokens`] : []),
    ...(hints.length > 0 ? [`a model like ${hints.join(', ')}`] : []),
  ];
  return [
    stated(
      output,
      server,
      ` asks for a model's answer${occasion(view)}${wishes.length > 0 ? ` (${wishes.join('; ')})` : ''}:`,
    ),
    ...(typeof systemPrompt === 'string' ? [`${name}, as the system prompt:`, quoted(output, systemPrompt)] : []),
    ...listOf(messages).flatMap((message) => messageText(output, `${name}, as the `, message)),
    ...toolsText(output, listOf(tools)),
  ].join('\n');
}

export function resultText(output: Output, result: AskView['result']): string {
  if (!result) return '  too large to be shown here';
  const { model, stopReason } = result as { model?: unknown; stopReason?: unknown };
  const facts = [model, stopReason].filter((each) => typeof each === 'string').map((each) => oneLine(String(each)));
  return [...messageText(output, '', result), ...(facts.length > 0 ? [`(${facts.join(', ')})`] : [])].join('\n');
}

/** What a person says in the place of a model. */
export const textResult = (text: string): object => ({
  ...{ role: 'assistant', model: 'human', content: { type: 'text', text }, stopReason: 'endTurn' },
});

function messageText(output: Output, who: string, { role, content }: Message): string[] {
  return [
    `${who}${role === 'assistant' ? 'assistant' : 'user'}:`,
    ...[content].flat().map((block) => quoted(output, blockText(isBlock(block) ? block : {}))),
  ];
}

function blockText({ type, text, data, mimeType, name, input, content, toolUseId }: Block): string {
  if (type === 'text') return clean(String(text ?? ''));
  if (type === 'tool_use') return `[calls ${oneLine(String(name))} with ${oneLine(JSON.stringify(input ?? {}))}]`;
  if (type === 'tool_result')
    return [`[what ${oneLine(String(toolUseId))} brought]`, ...listOf(content).map(blockText)].join('\n');
  const size = typeof data === 'string' ? bytes(Buffer.byteLength(data, 'base64')) : undefined;
  return `[${[type ?? 'content', mimeType, size].filter(Boolean).map(String).map(oneLine).join(' ')}]`;
}

function toolsText(output: Output, tools: readonly Block[]): string[] {
  if (tools.length === 0) return [];
  const lines = tools.map(
    ({ name, description }) => `  ${oneLine(String(name))}  ${oneLine(String(description ?? ''))}`,
  );
  return ['It may use these tools:', ...lines.map((line) => cut(line.trimEnd(), output.width))];
}

const isBlock = (value: unknown): value is Block => typeof value === 'object' && value !== null;
const listOf = (value: unknown): readonly Block[] => (Array.isArray(value) ? value.filter(isBlock) : []);
