// All that a plugin sees of troupe, and the shape it must have; outside this tree it is imported as `troupe/plugin`. A plugin is
// loaded, its options are parsed, it is started, and at the end disposed. It only ever sees values, so it cannot crash an
// actor; an error that it throws is reported with its name. docs/PLUGINS.md explains all of it.

import type { Logger } from 'pino';
import { z } from 'zod';
import type { ModelProvider } from './models.ts';
import type { Post } from './post.ts';

export {
  type Block,
  type CreateMessageParams,
  type CreateMessageResult,
  type Generated,
  type Media,
  type Message,
  type Model,
  type ModelApi,
  type ModelProvider,
  type ModelRequest,
  named,
  offerModels,
  type Tool,
  type ToolResult,
  type ToolUse,
  textOf,
} from './models.ts';
export { address, endpoint, modelOptions, readOptions } from './options.ts';
export type { Post };
/** For the schema of a plugin's options: the zod that troupe itself uses. */
export { z };

export type Plugin<Options = unknown> = {
  /** In the log, and a token of the subjects it publishes to. */
  readonly name: string;
  /** Throws one readable sentence when the options are wrong. */
  parse(options: unknown): Options;
  start(troupe: Troupe, options: Options): Promise<AsyncDisposable>;
};

export type ServerView = { readonly name: string; readonly state: string; readonly tools: number };

/** A narrow, read-mostly view of the daemon. */
export type Troupe = {
  readonly logger: Logger;
  servers(): ServerView[];
  /** Called with a server each time its state changes. Returns how to stop listening. */
  watch(listener: (server: ServerView) => void): () => void;
  /** A tool call like any other: audited, bounded by the server's time-outs. Resolves with the CallToolResult. */
  call(server: string, tool: string, args: object): Promise<unknown>;
  /** To the bus, below `<root>.plugin.<name>.`; lost when the bus is offline. */
  publish(subject: string, payload: Uint8Array | string): void;
  /** Text of log lines and audit rows passes through `mask` from now on. Returns how to remove the mask. */
  mask(mask: (text: string) => string): () => void;
  /** Offers models that may answer servers. Returns how to take the offer back; throws when the table makes no sense. */
  models(provider: ModelProvider): () => void;
  /**
   * Sends JSON and resolves with the JSON of the answer: bounded in time and size, sent again to a service that is busy,
   * never redirected. Every failure is an error with one sentence that holds no secret.
   */
  post(request: Post): Promise<unknown>;
};
