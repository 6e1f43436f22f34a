// From the words of /v1/messages to MCP's. Blocks that MCP has no word for, such as thinking, are left out.

import type { CreateMessageResult, ModelRequest } from '../../src/plugin/plugin.ts';

type Reply = {
  readonly model?: string;
  readonly content?: readonly Block[];
  readonly stop_reason?: string | null;
  readonly usage?: Readonly<Record<string, unknown>>;
};
type Block = {
  readonly type?: string;
  readonly text?: string;
  readonly id?: string;
  readonly name?: string;
  readonly input?: object;
};

export function readResponse(response: unknown, { model }: ModelRequest): CreateMessageResult {
  const { content, stop_reason, model: spoke } = (response ?? {}) as Reply;
  if (!Array.isArray(content)) throw new Error('the API answered without a message; check baseUrl');
  return {
    content: content.flatMap(blockOf),
    model: spoke || model,
    stopReason: STOPS[stop_reason ?? ''] ?? 'endTurn',
  };
}

/** Reading from a cache and writing to it are input too. */
export function tokensOf(response: unknown): number {
  const { usage = {} } = (response ?? {}) as Reply;
  const parts = ['input_tokens', 'cache_creation_input_tokens', 'cache_read_input_tokens', 'output_tokens'];
  return parts.reduce((sum, part) => sum + (Number(usage?.[part]) || 0), 0);
}

function blockOf({ type, text, id, name, input }: Block): CreateMessageResult['content'] {
  if (type === 'text' && text) return [{ type, text }];
  if (type !== 'tool_use') return [];
  if (!id || !name) throw new Error('the model used a tool without a name; try another model');
  return [{ type, id, name, input: input ?? {} }];
}

const STOPS: Readonly<Record<string, string>> = {
  end_turn: 'endTurn',
  stop_sequence: 'stopSequence',
  max_tokens: 'maxTokens',
  model_context_window_exceeded: 'maxTokens',
  tool_use: 'toolUse',
  refusal: 'refusal',
};
