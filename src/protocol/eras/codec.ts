// What may differ between versions of MCP. Each version has a file beside this one that says how it is there; the rest of
// troupe asks the codec and compares no versions. What a codec gives out is in the words of the newest version.

export type Codec = {
  /** Several messages may come in one JSON array. */
  readonly allowsBatches: boolean;
  /** A request may be made a task, whose result is fetched later. */
  readonly hasTasks: boolean;
  /** The content of a message to a model may be a list of blocks. */
  readonly allowsContentLists: boolean;
  /** A host comes back to an HTTP stream that was closed early, and an event without data does not disturb it. */
  readonly resumesClosedStreams: boolean;
  /** What a server's declaration means: capabilities that this version does not have do not count. */
  serverCapabilities(declared: ServerCapabilities): ServerCapabilities;
  /** The same for a host's declaration. Its result may be read once more: a session's row stores it. */
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
