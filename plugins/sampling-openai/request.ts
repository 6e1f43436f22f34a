// From a request of MCP to one of /chat/completions: there a tool's result is a message of its own, and a model's calls of
// tools stand beside its text.

import {
  type Block,
  type CreateMessageParams,
  type Message,
  type ModelRequest,
  named,
  type ToolResult,
  type ToolUse,
  textOf,
} from '../../src/plugin/plugin.ts';

type Limits = {
  readonly maxTokens: number;
  readonly maxTokensField: 'max_tokens' | 'max_completion_tokens';
  /** Whether a temperature is passed on. */
  readonly temperature: boolean;
};

export function requestOf(
  { model, params }: ModelRequest,
  { maxTokens, maxTokensField, temperature: hasTemperature }: Limits,
): object {
  const { messages, systemPrompt, temperature, stopSequences } = params;
  return {
    model,
    messages: [...(systemPrompt ? [{ role: 'system', content: systemPrompt }] : []), ...messages.flatMap(messagesOf)],
    [maxTokensField]: Math.min(params.maxTokens, maxTokens),
    ...(hasTemperature && temperature !== undefined && { temperature }),
    ...(stopSequences?.length && { stop: stopSequences }),
    ...toolsOf(params),
  };
}

/** A choice without tools would be refused. */
function toolsOf({ tools, toolChoice }: CreateMessageParams): object {
  if (!tools?.length) return {};
  return {
    tools: tools.map(({ name, description, inputSchema }) => ({
      type: 'function',
      function: { name, ...(description && { description }), parameters: inputSchema },
    })),
    tool_choice: toolChoice?.mode ?? 'auto',
  };
}

function messagesOf({ role, content }: Message): object[] {
  if (role === 'assistant') return [spokenOf(content)];
  const results = content.filter((block): block is ToolResult => block.type === 'tool_result');
  const parts = content.flatMap((block) => (block.type === 'tool_result' ? [] : [partOf(block)]));
  const asked = parts.length === 0 ? [] : [{ role, content: textAlone(content) ?? parts }];
  return [...results.map(toolMessageOf), ...asked];
}

/** Many local services know content only as a text. */
function textAlone([first, ...others]: readonly Block[]): string | undefined {
  return first?.type === 'text' && others.length === 0 ? first.text : undefined;
}

/** An assistant's message can hold text and calls of tools only: other content is named in the text. */
function spokenOf(content: readonly Block[]): object {
  const uses = content.filter((block): block is ToolUse => block.type === 'tool_use');
  const said = content.flatMap((block) =>
    block.type === 'tool_use' || block.type === 'tool_result' ? [] : [named(block)],
  );
  return {
    role: 'assistant',
    content: said.length === 0 && uses.length > 0 ? null : said.join('\n'),
    ...(uses.length > 0 && {
      tool_calls: uses.map(({ id, name, input }) => ({
        id,
        type: 'function',
        function: { name, arguments: JSON.stringify(input) },
      })),
    }),
  };
}

/** This API has no flag for an error of a tool, so that the text says so. */
function toolMessageOf(result: ToolResult): object {
  const text = textOf(result);
  return { role: 'tool', tool_call_id: result.toolUseId, content: result.isError ? `Error: ${text}` : text };
}

function partOf(block: Block): object {
  if (block.type === 'image')
    return { type: 'image_url', image_url: { url: `data:${block.mimeType};base64,${block.data}` } };
  if (block.type === 'audio')
    return { type: 'input_audio', input_audio: { data: block.data, format: formatOf(block.mimeType) } };
  return { type: 'text', text: block.type === 'text' ? block.text : '' };
}

const FORMATS: Readonly<Record<string, string>> = {
  ...{ 'audio/wav': 'wav', 'audio/x-wav': 'wav', 'audio/wave': 'wav', 'audio/vnd.wave': 'wav' },
  ...{ 'audio/mpeg': 'mp3', 'audio/mp3': 'mp3' },
};

function formatOf(mimeType: string): string {
  const [type = ''] = mimeType.toLowerCase().split(';');
  const format = FORMATS[type.trim()];
  if (!format) throw new Error('this API takes sound as audio/wav or audio/mpeg only');
  return format;
}
