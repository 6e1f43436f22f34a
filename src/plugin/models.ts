// Models that a plugin offers, in the words of MCP's sampling. Content is always a list, though a server may write a single
// block; cost, speed and intelligence of a model are numbers between 0 and 1.

import type { Post } from './post.ts';

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
  /** In the order of preference, for servers that have no preference of their own. */
  readonly models: readonly Model[];
  /** An error may carry `tokens` too. */
  generate(request: ModelRequest, signal: AbortSignal): Promise<Generated>;
};
export type ModelRequest = { readonly model: string; readonly params: CreateMessageParams };

/** `tokens` counts input and output; 0, for an API that does not count, lets troupe estimate. */
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
  /** The model that answered, as the API calls it. */
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
  /** The tokens of input and output that the answer counts. */
  tokensOf(response: unknown): number;
  readResponse(response: unknown, request: ModelRequest): CreateMessageResult;
};

/** What offering models takes of `Troupe`. */
type ModelHost = { models(provider: ModelProvider): () => void; post(request: Post): Promise<unknown> };

/** Offers the models of an API until the plugin is disposed. */
export function offerModels(troupe: ModelHost, api: ModelApi): AsyncDisposable {
  const { models, url, headers, timeoutMs } = api;
  const takeBack = troupe.models({
    models,
    async generate(request, signal) {
      const response = await troupe.post({ url, headers, timeoutMs, signal, body: api.requestOf(request) });
      const tokens = api.tokensOf(response);
      try {
        return { tokens, result: api.readResponse(response, request) };
      } catch (error) {
        // The tokens were used, also when the answer cannot be read.
        throw Object.assign(error instanceof Error ? error : new Error(String(error)), { tokens });
      }
    },
  });
  return { [Symbol.asyncDispose]: async () => takeBack() };
}

/** A tool's result as text: media is only named, and structured content without any text is written as JSON. */
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
