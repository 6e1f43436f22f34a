// From the words of /chat/completions to MCP's. Compatible services differ in what they leave out, so nothing is taken for
// granted but a first choice.

import { randomUUID } from 'node:crypto';
import type { CreateMessageResult, ModelRequest, ToolUse } from '../../src/plugin/plugin.ts';

type Completion = {
  readonly model?: string;
  readonly choices?: readonly Choice[];
  readonly usage?: {
    readonly total_tokens?: number;
    readonly prompt_tokens?: number;
    readonly completion_tokens?: number;
  };
};
type Choice = {
  readonly finish_reason?: string | null;
  /** Some say which of the stop sequences it was. */
  readonly stop_reason?: unknown;
  readonly message?: {
    readonly content?: unknown;
    readonly refusal?: string | null;
    readonly tool_calls?: readonly Call[] | null;
  };
};
type Call = { readonly id?: string; readonly function?: { readonly name?: string; readonly arguments?: unknown } };

export function readResponse(response: unknown, { model, params }: ModelRequest): CreateMessageResult {
  const { choices, model: spoke } = (response ?? {}) as Completion;
  const choice = Array.isArray(choices) ? (choices[0] as Choice | undefined) : undefined;
  if (!choice?.message) throw new Error('the API answered without a message; check baseUrl');
  const { content, refusal, tool_calls: calls } = choice.message;
  const text = refusal || spokenText(content);
  const uses = (calls ?? []).map(useOf);
  return {
    content: [...(text || uses.length === 0 ? [{ type: 'text', text } as const] : []), ...uses],
    model: spoke || model,
    stopReason: stopReasonOf(choice, uses, params.stopSequences ?? []),
  };
}

export function tokensOf(response: unknown): number {
  const { usage } = (response ?? {}) as Completion;
  return usage?.total_tokens ?? (usage?.prompt_tokens ?? 0) + (usage?.completion_tokens ?? 0);
}

/** A text; or, with some that think aloud, a list of parts. */
function spokenText(content: unknown): string {
  if (typeof content === 'string') return content;
  const parts = Array.isArray(content) ? content : [];
  return parts.map((part) => (part?.type === 'text' && typeof part.text === 'string' ? part.text : '')).join('');
}

function useOf({ id, function: called }: Call): ToolUse {
  if (!called?.name) throw new Error('the model used a tool without a name; try another model');
  return { type: 'tool_use', id: id || `call_${randomUUID()}`, name: called.name, input: inputOf(called.arguments) };
}

/** The model writes them, so they may be anything; a tool without parameters may get nothing. */
function inputOf(written: unknown): object {
  const input = typeof written === 'string' ? parsed(written.trim() || '{}') : (written ?? {});
  if (typeof input === 'object' && input !== null && !Array.isArray(input)) return input;
  throw new Error(
    'the model used a tool with arguments that are no JSON object; raise maxTokens, or try another model',
  );
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // the caller says so, without quoting it
  }
}

function stopReasonOf(
  { finish_reason, stop_reason, message }: Choice,
  uses: object[],
  stops: readonly string[],
): string {
  if (message?.refusal || finish_reason === 'content_filter') return 'refusal';
  if (finish_reason === 'length') return 'maxTokens';
  // Not every service says so; and one that had to use a tool says `stop`.
  if (uses.length > 0) return 'toolUse';
  return typeof stop_reason === 'string' && stops.includes(stop_reason) ? 'stopSequence' : 'endTurn';
}
