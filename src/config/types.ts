// What the configuration is once every default is filled in.
// Types only, but for the words that a type and its schema share.

export const SERVER_LOG_LEVELS = [
  'debug',
  'info',
  'notice',
  'warning',
  'error',
  'critical',
  'alert',
  'emergency',
] as const;
export const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

export type ServerSettings = {
  readonly share: 'principal' | 'all' | 'session';
  readonly timeoutMs: number;
  readonly maxTimeoutMs: number;
  readonly maxInFlight: number;
  readonly maxQueued: number;
  /** How long an unsent call waits for a server that restarts; 0 = not at all. */
  readonly holdMs: number;
  readonly restart: { readonly intensity: number; readonly periodMs: number; readonly backoffMs: number[] };
  /** 0 = never. */
  readonly idleStopMs: number;
  /** What the process inherits of the daemon's environment; a list names the variables passed through. */
  readonly env: 'minimal' | 'inherit' | string[];
  readonly maxFrameBytes: number;
  /** Names, or globs with `*`. */
  readonly tools: { readonly allow?: string[]; readonly deny?: string[] };
  readonly logLevel: (typeof SERVER_LOG_LEVELS)[number];
  readonly openMs: number;
  readonly drainMs: number;
  /** How long the process may live on after its stdin was closed. */
  readonly stdinMs: number;
  /** How long the process may live on after SIGTERM. */
  readonly termMs: number;
  /** 0 = off. */
  readonly pingMs: number;
  readonly pingTimeoutMs: number;
  readonly enabled: boolean;
  /** What it says of its tools is believed, and its requests to a model are not reviewed. */
  readonly trust: boolean;
  /** Which calls wait for somebody's word, by name or glob; the first that fits counts. Else what the tool says of itself. */
  readonly approve: readonly Approve[];
  /** Whether it asks questions that cannot be told apart by their stream; `auto` is yes once it was seen to. */
  readonly interactive: boolean | 'auto';
  /** Processes of one that does, so that each call asks alone. */
  readonly pool: number;
  readonly sampling: SamplingBudget;
  /** Which of its tools a task may call again after the first call was lost, by name or glob; the first that fits counts. */
  readonly rerun: readonly Rerun[];
};

/** `keyed`: only a task that was given an idempotency key. */
export type Rerun = { readonly tools: string; readonly when: 'always' | 'keyed' | 'never' };
export type Approve = { readonly tools: string; readonly when: 'always' | 'once' | 'never' };

/** What a server may spend of our models; 0 is without limit. */
export type SamplingBudget = {
  readonly requestsPerHour: number;
  readonly tokensPerHour: number;
  /** Rounds of tool use in one conversation, whoever answers. */
  readonly maxIterations: number;
};

/** A process of our own, or a server that is reached over the network. */
export type ServerConfig = StdioServer | RemoteServer;

export type StdioServer = {
  readonly transport: 'stdio';
  readonly name: string;
  readonly command: string;
  readonly args: string[];
  readonly env: Record<string, string>;
  readonly cwd?: string;
  readonly settings: ServerSettings;
};

export type RemoteServer = {
  /** `http` is Streamable HTTP, and HTTP+SSE if the server turns out to be that old. */
  readonly transport: 'http' | 'sse' | 'ws';
  readonly name: string;
  readonly url: string;
  /** Sent with every request; they may be secrets. */
  readonly headers: Record<string, string>;
  readonly oauth: OAuthSettings;
  readonly settings: ServerSettings;
};

/** How we prove who we are to a server that wants to know. All of it may be left to the server's own metadata. */
export type OAuthSettings = {
  /** A person logs in with `troupe login`, or the client itself is the principal. */
  readonly grant: 'authorization_code' | 'client_credentials';
  readonly clientId?: string;
  readonly clientSecret?: string;
  /** PEM of the key that signs the client's assertions (private_key_jwt), and the algorithm. */
  readonly privateKey?: string;
  readonly algorithm?: string;
  readonly scopes?: string[];
  /** The https URL of our client-id metadata document. */
  readonly clientMetadataUrl?: string;
  /** The only authorization server to talk to. */
  readonly issuer?: string;
  /** The port of the loopback callback; 0 picks one. */
  readonly redirectPort: number;
};

/** A subset of the servers behind one endpoint, `/mcp/@<profile>`. Tools are named as they appear there: `server__tool`. */
export type Profile = {
  readonly servers: string[];
  readonly tools: { readonly allow?: string[]; readonly deny?: string[] };
};

export type HttpSettings = {
  /** HOST:PORT; a port of 0 picks one. Absent: 127.0.0.1 and the usual port, or another if that is taken. */
  readonly address?: string;
  readonly enabled: boolean;
  /** Principal by bearer token's name: required beyond the loopback. */
  readonly tokens: Record<string, string>;
  /** Browsers' pages that may come in, such as https://app.example.com. */
  readonly origins: string[];
  /** Further values of `Host` that mean us, such as the name of a reverse proxy. */
  readonly hosts: string[];
  readonly maxBodyBytes: number;
  readonly maxSessions: number;
  /** Open streams of one session. */
  readonly maxStreams: number;
  readonly sessionIdleMs: number;
  readonly keepAliveMs: number;
};

export type AskSettings = {
  /** Every question ends by then, or before its call must. */
  readonly timeoutMs: number;
  /** How long a host is asked before others are asked too. */
  readonly hostMs: number;
  /** How long a service on the bus may take. */
  readonly answererMs: number;
  readonly maxOpen: number;
  /** The first that fits answers what neither host nor service did. Names or globs. */
  readonly rules: readonly AskRule[];
};

export type TaskSettings = {
  /** Unfinished ones of one principal. */
  readonly maxOpen: number;
  /** How long a task lives, from its creation, if nobody says; and at most. */
  readonly ttlMs: number;
  readonly maxTtlMs: number;
  readonly maxResultBytes: number;
  /** How long the result of one that has ended is kept at most; 0 is until its ttl is over. */
  readonly keepMs: number;
  /** How often hosts are asked to look. */
  readonly pollMs: number;
};

export const ASK_KINDS = ['elicitation', 'sampling', 'approval'] as const;
export type AskKind = (typeof ASK_KINDS)[number];

export type AskRule = {
  readonly server?: string;
  readonly tool?: string;
  readonly kind?: AskKind;
  /** `defaults` accepts a form with the values it proposes, and an approval. */
  readonly answer: 'defaults' | 'decline' | 'cancel';
};

/** Absolute paths of directories. */
export type RootSettings = {
  readonly list: readonly string[];
  /** What hosts may offer lies within these; what is listed here or with `troupe roots add` need not. */
  readonly allow: readonly string[];
};

export type Config = {
  readonly servers: ServerConfig[];
  readonly plugins: { readonly name: string; readonly options: unknown; readonly required: boolean }[];
  readonly requests: 'table' | 'actor';
  readonly nats: { readonly url?: string; readonly subject: string; readonly maxPayloadBytes: number };
  readonly http: HttpSettings;
  readonly profiles: Record<string, Profile>;
  readonly asks: AskSettings;
  readonly tasks: TaskSettings;
  readonly roots: RootSettings;
  readonly logLevel: (typeof LOG_LEVELS)[number];
  /** The file it came from; none for the embedded configuration. */
  readonly path: string | undefined;
};
