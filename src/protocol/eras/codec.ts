// What a version of MCP may do differently from the others. Each version answers it in a file of its own beside this one;
// everybody else asks by meaning and compares no versions. Between wire and codec troupe speaks the newest words it knows.

export type Codec = {
  /** Several messages may come in one JSON array. */
  readonly allowsBatches: boolean;
  /** A request may be made a task, whose result is fetched later. */
  readonly hasTasks: boolean;
  /** A message to a model may have a list of content blocks, and tools. */
  readonly allowsContentLists: boolean;
  /** A host comes back to an HTTP stream that was closed early, and an event without data does not disturb it. */
  readonly resumesClosedStreams: boolean;
  /** What a server's declaration means; of its words only those that this version has count. */
  serverCapabilities(declared: ServerCapabilities): ServerCapabilities;
  /** The same for a host's declaration. What has been read once may be read again: a session's row keeps the meaning. */
  clientCapabilities(declared: ClientCapabilities): ClientCapabilities;
  /** The members of a progress notification beside its token. */
  progress(said: Progress): object;
};

export type ServerCapabilities = {
  readonly [capability: string]: { readonly [option: string]: unknown } | undefined;
};
export type ClientCapabilities = {
  readonly roots?: object;
  readonly elicitation?: { readonly form?: object; readonly url?: object };
  readonly sampling?: { readonly tools?: object };
};
type Progress = { readonly progress: number; readonly total?: number; readonly message?: string };
