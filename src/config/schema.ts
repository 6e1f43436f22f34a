// The shape of the configuration file. One zod schema serves four purposes: checking, defaults, the types of what is read,
// and the JSON Schema for editors. To add a setting is to add a line here; `http` and `oauth` have files of their own.

import { homedir } from 'node:os';
import { z } from 'zod';
import { type HttpSettings, httpSchema } from './http.ts';
import { NAME_RULE } from './names.ts';
import { type OAuthSettings, oauthSchema } from './oauth.ts';
import { count, duration, LONGEST_LIFE_MS, size, text, word } from './units.ts';

export type { HttpSettings, OAuthSettings };

const MIB = 1024 ** 2;

const SERVER_LOG_LEVELS = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'] as const;
const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;
const ASK_KINDS = ['elicitation', 'sampling', 'approval'] as const;
export type AskKind = (typeof ASK_KINDS)[number];

const variableName = z.string().regex(/^[^=\0]+$/, 'is not a name that a variable can have');
const toolNames = z.array(word).exactOptional();
/** Names, or globs with `*`. */
const tools = z.strictObject({ allow: toolNames, deny: toolNames }).prefault({});

/** `destructive`: unless the tool says of itself that it only reads, or that it destroys nothing. */
const approval = z.enum(['always', 'once', 'never', 'destructive']);
const approvalRule = z.strictObject({ tools: word, when: approval });
export type Approve = Readonly<z.output<typeof approvalRule>>;

/** One word for all tools, or a word for each name or glob; the first that fits counts. */
const approve = z
  .union([approval, z.record(word, approval), z.array(approvalRule)], {
    error: 'must be "always", "once", "destructive", "never", or an object such as {"delete_*": "always"}',
  })
  .transform((written): readonly Approve[] => {
    if (typeof written === 'string') return [{ tools: '*', when: written }];
    return Array.isArray(written) ? written : Object.entries(written).map(([tools, when]) => ({ tools, when }));
  });

const mayRerun = z.union([z.boolean(), z.literal('keyed')], { error: 'must be true, false or "keyed"' });
/** `keyed`: only a task that was given an idempotency key. */
export type Rerun = { readonly tools: string; readonly when: 'always' | 'keyed' | 'never' };

/** One word for all tools, or a word for each name or glob; the first that fits counts. */
const rerun = z
  .union([mayRerun, z.record(word, mayRerun)], {
    error: 'must be true, false, "keyed", or an object such as {"fetch_*": true}',
  })
  .transform((written): readonly Rerun[] => {
    const rules = typeof written === 'object' ? Object.entries(written) : [['*', written] as const];
    return rules.map(([tools, each]) => ({ tools, when: each === 'keyed' ? each : each ? 'always' : 'never' }));
  });

/** What a server may spend of our models; 0 is without limit. */
const sampling = z.strictObject({
  requestsPerHour: count(0).prefault(60),
  tokensPerHour: count(0).prefault(200_000),
  /** Rounds of tool use in one conversation, answered by a model or a person. */
  maxIterations: count(1).prefault(20),
});
export type SamplingBudget = Readonly<z.output<typeof sampling>>;

/**
 * Servers built on the SDK end when more than 10 MiB without a newline have come in, the chunk included that brings the end of a
 * line and the beginning of the next: of 64 KiB at most.
 */
const SDK_READS_BYTES = 10 * MIB - 64 * 1024;
const sendBytes = size(16 * 1024, 1024 * MIB);

const settings = z.strictObject({
  share: z.enum(['principal', 'all', 'session']).prefault('principal'),
  timeoutMs: duration(1).prefault('60s'),
  maxTimeoutMs: duration(1).prefault('10m'),
  maxInFlight: count(1).prefault(1024),
  maxQueued: count(0).prefault(10_000),
  holdMs: duration(0).prefault('10s'),
  restart: z
    .strictObject({
      intensity: count(0).prefault(5),
      periodMs: duration(1).prefault('60s'),
      backoffMs: z.array(duration(0)).min(1, 'must have at least one step').prefault([100, 500, 2_000, 10_000]),
    })
    .prefault({}),
  /** 0 = never. */
  idleStopMs: duration(0).prefault(0),
  /** Which of the daemon's variables the process inherits; a list names those that are passed through. */
  env: z
    .union([z.enum(['minimal', 'inherit']), z.array(variableName)], {
      error: 'must be "minimal", "inherit" or a list of names of variables',
    })
    .prefault('minimal'),
  maxFrameBytes: size(1024, 1024 * MIB).prefault('16MB'),
  maxSendBytes: sendBytes.prefault(SDK_READS_BYTES),
  tools,
  /** Methods that MCP does not have and hosts may send; `auto` is all, unless rules restrict the server's tools. */
  methods: z
    .union([z.array(word), z.literal('auto')], { error: 'must be a list of methods or "auto"' })
    .prefault('auto'),
  logLevel: z.enum(SERVER_LOG_LEVELS).prefault('info'),
  openMs: duration(1).prefault('60s'),
  drainMs: duration(0).prefault('10s'),
  /** How long the process may live on after its stdin was closed. */
  stdinMs: duration(0).prefault('2s'),
  /** How long the process may live on after SIGTERM. */
  termMs: duration(0).prefault('3s'),
  /** 0 = off. */
  pingMs: duration(0).prefault('30s'),
  pingTimeoutMs: duration(1).prefault('10s'),
  enabled: z.boolean().prefault(true),
  /** Its requests to a model are not reviewed. */
  trust: z.boolean().prefault(false),
  /** Which calls wait for approval. A tool that no rule names does not. */
  approve: approve.prefault([]),
  /** Whether the server asks questions that no stream ties to a call; `auto` is yes once the server has asked one. */
  interactive: z.union([z.boolean(), z.literal('auto')], { error: 'must be true, false or "auto"' }).prefault('auto'),
  /** Processes of an interactive server: each runs one call at a time. */
  pool: count(1).prefault(4),
  sampling: sampling.prefault({}),
  /** Which tools a task may call again after the first call was lost. */
  rerun: rerun.prefault(false),
});

const isWithinLongest = ({ timeoutMs, maxTimeoutMs }: { timeoutMs: number; maxTimeoutMs: number }): boolean =>
  timeoutMs <= maxTimeoutMs;
const TOO_LONG = {
  path: ['timeoutMs'],
  error: 'must not exceed maxTimeoutMs, which is 10 minutes unless it is set',
};

export const settingsSchema = settings.refine(isWithinLongest, TOO_LONG).meta({ id: 'ServerSettings' });
export type ServerSettings = Readonly<z.output<typeof settings>>;

/** A server that is a process of ours, as the file defines it. */
export const definitionSchema = z.looseObject({
  type: z.enum(['stdio']).exactOptional(),
  command: word,
  args: z.array(text).exactOptional(),
  env: z.record(variableName, text).exactOptional(),
  cwd: word.exactOptional(),
  disabled: z.boolean().exactOptional(),
  'x-troupe': settingsSchema.prefault({}),
});

/** What hosts call the transports. */
export const REMOTE_TYPES = ['http', 'streamable-http', 'streamableHttp', 'sse', 'ws', 'websocket'] as const;

// A value that would end its line could add a header of its own.
const headerName = z.string().regex(/^[\w!#$%&'*+.^`|~-]+$/, 'is not a name that a header can have');
const headerValue = z.string().regex(/^[\t\x20-\x7e\x80-\xff]*$/, 'must be one line of plain characters');

/** A server that is reached over the network, as the file defines it. */
export const remoteSchema = z.looseObject({
  type: z.enum(REMOTE_TYPES).exactOptional(),
  url: word,
  headers: z.record(headerName, headerValue).exactOptional(),
  disabled: z.boolean().exactOptional(),
  'x-troupe': settings
    .extend({ oauth: oauthSchema.prefault({}), maxSendBytes: sendBytes.prefault('64MB') })
    .refine(isWithinLongest, TOO_LONG)
    .meta({ id: 'RemoteSettings' })
    .prefault({}),
});

/** A subset of the servers behind one endpoint, `/mcp/@<profile>`. Tools are named as they appear there: `server__tool`. */
const profileSchema = z.strictObject({ servers: z.array(word).min(1, 'must name at least one server'), tools });

const askRule = z.strictObject({
  server: word.exactOptional(),
  tool: word.exactOptional(),
  kind: z.enum(ASK_KINDS).exactOptional(),
  /** `defaults` accepts a form with the values it proposes, and an approval. */
  answer: z.enum(['defaults', 'decline', 'cancel']),
});
export type AskRule = Readonly<z.output<typeof askRule>>;

const asksSchema = z
  .strictObject({
    /** Every question ends by then, or earlier, with its call. */
    timeoutMs: duration(1).prefault('10m'),
    /** How long a host is asked before others are asked too. */
    hostMs: duration(0).prefault('2m'),
    /** How long a service on the bus may take. */
    answererMs: duration(1).prefault('1m'),
    maxOpen: count(1).prefault(1_000),
    /** A question that neither host nor service has answered is answered by the first rule that fits. Names or globs. */
    rules: z.array(askRule).prefault([]),
  })
  .meta({ id: 'AskSettings' });
export type AskSettings = Readonly<z.output<typeof asksSchema>>;

const tasksSchema = z
  .strictObject({
    /** Unfinished tasks of one principal. */
    maxOpen: count(1).prefault(1_000),
    /** How long a task lives, from its creation, unless its creator says; and at most. */
    ttlMs: duration(1, LONGEST_LIFE_MS).prefault('1d'),
    maxTtlMs: duration(1, LONGEST_LIFE_MS).prefault('30d'),
    maxResultBytes: size(1_024, 24 * MIB).prefault('8MB'),
    /** How long the result of an ended task is kept at most; 0 is until its ttl is over. */
    keepMs: duration(0, LONGEST_LIFE_MS).prefault(0),
    /** How often hosts are asked to look. */
    pollMs: duration(1).prefault('1s'),
  })
  .refine(({ ttlMs, maxTtlMs }) => ttlMs <= maxTtlMs, {
    path: ['ttlMs'],
    error: 'must not exceed maxTtlMs, which is 30 days unless it is set',
  })
  .meta({ id: 'TaskSettings' });
export type TaskSettings = Readonly<z.output<typeof tasksSchema>>;

/** Paths of directories; `allow` bounds the roots that hosts offer, not those of `list` or of `troupe roots add`. */
const rootsSchema = z
  .strictObject({ list: z.array(word).prefault([]), allow: z.array(word).prefault(() => [homedir()]) })
  .meta({ id: 'RootSettings' });

export const troupeSchema = z.strictObject({
  plugins: z.record(z.string(), z.looseObject({ required: z.boolean().prefault(false) })).prefault({}),
  requests: z.enum(['table', 'actor']).prefault('table'),
  nats: z
    .strictObject({
      url: word.exactOptional(),
      subject: z
        .string()
        .max(128, 'must have at most 128 characters')
        .regex(/^[\w-]+(\.[\w-]+)*$/, 'must be a NATS subject without wildcards, such as "troupe" or "team.troupe"')
        .prefault('troupe'),
      // 64 MiB is the most that a nats-server can be set to.
      maxPayloadBytes: size(1024, 64 * MIB).prefault('8MB'),
    })
    .prefault({}),
  http: httpSchema.prefault({}),
  profiles: z.record(z.string(), profileSchema).prefault({}),
  asks: asksSchema.prefault({}),
  tasks: tasksSchema.prefault({}),
  roots: rootsSchema.prefault({}),
  logLevel: z.enum(LOG_LEVELS).prefault('info'),
  servers: settingsSchema.prefault({}),
});
type TroupeSettings = z.output<typeof troupeSchema>;

/** The settings of the whole, with the servers beside them: what the daemon works with. */
export type Config = Readonly<Omit<TroupeSettings, 'servers' | 'plugins'>> & {
  readonly servers: ServerConfig[];
  readonly plugins: readonly PluginConfig[];
  /** The file it came from; none for the embedded configuration. */
  readonly path: string | undefined;
};
export type Profile = Readonly<z.output<typeof profileSchema>>;
export type RootSettings = { readonly list: readonly string[]; readonly allow: readonly string[] };
export type PluginConfig = {
  /** A plugin of ours, a path, or the name of a package; the latter two are looked up from the folder `from`. */
  readonly name: string;
  readonly from: string;
  readonly options: unknown;
  readonly required: boolean;
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

/** One server as the file has it, before defaults are filled in: what hosts write, plus `x-troupe`. */
export type ServerDefinition = StdioDefinition | RemoteDefinition;
type StdioDefinition = Pick<
  z.input<typeof definitionSchema>,
  'command' | 'args' | 'env' | 'cwd' | 'disabled' | 'x-troupe'
>;
type RemoteDefinition = Pick<z.input<typeof remoteSchema>, 'url' | 'headers' | 'disabled' | 'x-troupe'> & {
  readonly type?: string; // checked when the definition is
};

export const ROOT_KEYS = ['$schema', 'mcpServers', 'x-troupe'] as const;

/** Keys of a remote server's address in the hosts that share this form; ours is the first. */
export const ADDRESS_KEYS = ['url', 'serverUrl', 'httpUrl'] as const;

/** The JSON Schema of the file, for `$schema` in editors. */
export function schemaJson(): Record<string, unknown> {
  const remotes = ADDRESS_KEYS.map((key) => remoteSchema.omit({ url: true }).extend({ [key]: word }));
  const name = z.string().regex(new RegExp(`^${NAME_RULE}$`));
  const file = z.looseObject({
    $schema: z.string().exactOptional(),
    mcpServers: z.record(name, z.union([definitionSchema, ...remotes])).exactOptional(),
    'x-troupe': troupeSchema.exactOptional(),
  });
  return { title: 'troupe.json', ...z.toJSONSchema(file, { io: 'input' }) };
}
