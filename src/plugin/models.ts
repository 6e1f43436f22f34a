// What troupe and a plugin that knows models say to each other: the words of MCP's sampling, in one spelling. Content is
// always a list, though a server may write a single block; what a model can do is a number between 0 and 1.

import type { Troupe } from './plugin.ts';

export type Medium = 'image' | 'audio';

export type Model = {
  /** As its API calls it. */
  readonly name: string;
  /** 0 is free, 1 the most expensive. */
  readonly cost: number;
  /** 1 is the fastest. */
  readonly speed: number;
  /** 1 is the most capable. */
  readonly intelligence: number;
  /** Beside text. */
  readonly takes?: readonly Medium[];
};

export type ModelProvider = {
  /** In the order of preference, where a server has none. */
  readonly models: readonly Model[];
  /** An error may carry `tokens` too. */
  generate(request: ModelRequest, signal: AbortSignal): Promise<Generated>;
};
export type ModelRequest = { readonly model: string; readonly params: CreateMessageParams };

/** `tokens` is what was used in all; where an API does not count, 0 lets troupe estimate. */
export type Generated = { readonly result: CreateMessageResult; readonly tokens: number };

export type CreateMessageParams = {
  readonly messages: readonly Message[];
  readonly maxTokens: number;
  readonly systemPrompt?: string;
  readonly temperature?: number;
  readonly stopSequences?: readonly string[];
  readonly tools?: readonly Tool[];
  readonly toolChoice?: { readonly mode?: 'auto' | 'required' | 'none' };
  readonly modelPreferences?: ModelPreferences;
};
export type CreateMessageResult = {
  readonly content: readonly (Text | Media | ToolUse)[];
  /** As the API calls the one that spoke. */
  readonly model: string;
  /** endTurn, stopSequence, maxTokens, toolUse, or the API's own word. */
  readonly stopReason: string;
};

export type Message = { readonly role: 'user' | 'assistant'; readonly content: readonly Block[] };
export type Block = Text | Media | ToolUse | ToolResult;
export type Text = { readonly type: 'text'; readonly text: string };
export type Media = { readonly type: Medium; readonly data: string; readonly mimeType: string };
export type ToolUse = { readonly type: 'tool_use'; readonly id: string; readonly name: string; readonly input: object };
export type ToolResult = {
  readonly type: 'tool_result';
  readonly toolUseId: string;
  readonly content: readonly (Text | Media | Resource)[];
  readonly structuredContent?: object;
  readonly isError?: boolean;
};
type Resource =
  | { readonly type: 'resource'; readonly resource: { readonly uri: string; readonly text?: string } }
  | { readonly type: 'resource_link'; readonly uri: string };
export type Tool = { readonly name: string; readonly description?: string; readonly inputSchema: object };

export type ModelPreferences = {
  readonly hints?: readonly { readonly name?: string }[];
  readonly costPriority?: number;
  readonly speedPriority?: number;
  readonly intelligencePriority?: number;
};

/** An API that is spoken to in JSON, so that a plugin only translates. */
export type ModelApi = {
  readonly models: readonly Model[];
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  requestOf(request: ModelRequest): object;
  /** What the answer says was used in all. */
  tokensOf(response: unknown): number;
  readResponse(response: unknown, request: ModelRequest): CreateMessageResult;
};

/** For as long as the plugin runs. */
export function offerModels(troupe: Pick<Troupe, 'models' | 'post'>, api: ModelApi): AsyncDisposable {
  const { models, url, headers, timeoutMs } = api;
  const takeBack = troupe.models({
    models,
    async generate(request, signal) {
      const response = await troupe.post({ url, headers, timeoutMs, signal, body: api.requestOf(request) });
      const tokens = api.tokensOf(response);
      try {
        return { tokens, result: api.readResponse(response, request) };
      } catch (error) {
        // What was used is used, also when what came back is of no use.
        throw Object.assign(error instanceof Error ? error : new Error(String(error)), { tokens });
      }
    },
  });
  return { [Symbol.asyncDispose]: async () => takeBack() };
}

/** What a tool said, as text: what the model cannot be shown is named. Data without any text is written out. */
export function textOf({ content, structuredContent }: Pick<ToolResult, 'content' | 'structuredContent'>): string {
  if (content.length === 0 && structuredContent) return JSON.stringify(structuredContent);
  return content.map(named).join('\n');
}

export function named(block: Text | Media | Resource): string {
  if (block.type === 'text') return block.text;
  if (block.type === 'resource') return block.resource.text ?? `[${block.resource.uri}]`;
  if (block.type === 'resource_link') return `[${block.uri}]`;
  return `[${block.mimeType}, not shown]`;
}
