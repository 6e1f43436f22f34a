// From a request of MCP to one of /v1/messages, which is nearly the same; where this API is stricter, the request is mended.

import {
  type Block,
  type CreateMessageParams,
  type Media,
  type Message,
  type Model,
  type ModelRequest,
  named,
  type ToolResult,
  textOf,
} from '../../src/plugin/plugin.ts';

type Limits = {
  readonly models: readonly Model[];
  readonly maxTokens: number;
  /** Whether a temperature is passed on. */
  readonly temperature: boolean;
};

export function requestOf(
  { model, params }: ModelRequest,
  { models, maxTokens, temperature: hasTemperature }: Limits,
): object {
  const { systemPrompt, temperature, stopSequences = [] } = params;
  const canSee = models.some(({ name, takes }) => name === model && takes?.includes('image'));
  // The API refuses stop sequences of white space alone.
  const stops = stopSequences.filter((stop) => stop.trim() !== '');
  return {
    model,
    messages: alternating(params.messages).map(({ role, content }) => ({
      role,
      content: content.map((block) => blockOf(block, role === 'user' && canSee)),
    })),
    max_tokens: Math.min(params.maxTokens, maxTokens),
    ...(systemPrompt && { system: systemPrompt }),
    // The scale of this API ends at 1, that of others at 2.
    ...(hasTemperature && temperature !== undefined && { temperature: Math.min(temperature, 1) }),
    ...(stops.length > 0 && { stop_sequences: stops }),
    ...toolsOf(params),
  };
}

/** User and assistant must take turns: messages of the same role that follow each other are joined, empty ones left out. */
function alternating(messages: readonly Message[]): Message[] {
  const turns: Message[] = [];
  for (const { role, content } of messages) {
    const said = content.filter((block) => block.type !== 'text' || block.text.trim() !== '');
    const last = turns.at(-1);
    if (last?.role === role) turns.splice(-1, 1, { role, content: [...last.content, ...said] });
    else if (said.length > 0) turns.push({ role, content: said });
  }
  return turns;
}

function blockOf(block: Block, canSee: boolean): object {
  if (block.type === 'tool_use') return { type: 'tool_use', id: block.id, name: block.name, input: block.input };
  if (block.type === 'tool_result') return resultOf(block, canSee);
  if (block.type === 'image' && canSee) return imageOf(block);
  return { type: 'text', text: named(block) };
}

const imageOf = ({ data, mimeType }: Media): object => ({
  type: 'image',
  source: { type: 'base64', media_type: mimeType.toLowerCase(), data },
});

/** Images of a tool can be shown too. */
function resultOf({ toolUseId, content, structuredContent, isError }: ToolResult, canSee: boolean): object {
  const isShown = (block: ToolResult['content'][number]): block is Media => canSee && block.type === 'image';
  const others = content.filter((block) => !isShown(block));
  const text = textOf({ content: others, ...(content.length === 0 && structuredContent && { structuredContent }) });
  return {
    type: 'tool_result',
    tool_use_id: toolUseId,
    content: [...(text.trim() ? [{ type: 'text', text }] : []), ...content.filter(isShown).map(imageOf)],
    ...(isError && { is_error: true }),
  };
}

const MODES = { auto: 'auto', required: 'any', none: 'none' } as const;

/** A conversation in which tools were used must list them, also when no more may be used. */
function toolsOf({ tools, toolChoice, messages }: CreateMessageParams): object {
  if (tools?.length)
    return {
      tools: tools.map(({ name, description, inputSchema }) => ({
        name,
        input_schema: inputSchema,
        ...(description && { description }),
      })),
      tool_choice: { type: MODES[toolChoice?.mode ?? 'auto'] },
    };
  const uses = messages.flatMap(({ content }) => content.filter((block) => block.type === 'tool_use'));
  const names = new Set(uses.map((use) => use.name));
  if (names.size === 0) return {};
  return {
    tools: [...names].map((name) => ({ name, input_schema: { type: 'object' } })),
    tool_choice: { type: 'none' },
  };
}
