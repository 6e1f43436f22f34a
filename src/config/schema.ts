// The shape of the configuration file and of what it becomes once every default is filled in.
// One zod schema serves three purposes: checking, defaults, and the JSON Schema that editors read.

import { z } from 'zod';
import { NAME_RULE } from './names.ts';
import { count, duration, size } from './units.ts';

const MIB = 1024 ** 2;
const SERVER_LOG_LEVELS = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'] as const;
const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

export type ServerSettings = {
  readonly share: 'principal' | 'all' | 'session';
  readonly timeoutMs: number;
  readonly maxTimeoutMs: number;
  readonly maxInFlight: number;
  readonly maxQueued: number;
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
};

export type ServerConfig = {
  readonly name: string;
  readonly command: string;
  readonly args: string[];
  readonly env: Record<string, string>;
  readonly cwd?: string;
  readonly settings: ServerSettings;
};

export type Config = {
  readonly servers: ServerConfig[];
  readonly plugins: { readonly name: string; readonly options: unknown; readonly required: boolean }[];
  readonly requests: 'table' | 'actor';
  readonly nats: { readonly url?: string; readonly subject: string; readonly maxPayloadBytes: number };
  readonly logLevel: (typeof LOG_LEVELS)[number];
  /** The file it came from; none for the embedded configuration. */
  readonly path: string | undefined;
};

/** One server as the file has it: what hosts write, plus `x-troupe`. */
export type ServerDefinition = {
  readonly command: string;
  readonly args?: string[];
  readonly env?: Record<string, string>;
  readonly cwd?: string;
  readonly disabled?: boolean;
  readonly 'x-troupe'?: Record<string, unknown>;
};

// A NUL cannot pass into the arguments or the environment of a process: spawning would throw.
const text = z.string().refine((value) => !value.includes('\0'), 'must not contain a NUL character');
const word = text.min(1, 'must not be empty');
const variableName = z.string().regex(/^[^=\0]+$/);
const toolNames = z.array(word).exactOptional();

export const settingsSchema = z
  .strictObject({
    share: z.enum(['principal', 'all', 'session']).prefault('principal'),
    timeoutMs: duration(1).prefault('60s'),
    maxTimeoutMs: duration(1).prefault('10m'),
    maxInFlight: count(1).prefault(1024),
    maxQueued: count(0).prefault(10_000),
    restart: z
      .strictObject({
        intensity: count(0).prefault(5),
        periodMs: duration(1).prefault('60s'),
        backoffMs: z.array(duration(0)).min(1, 'must have at least one step').prefault([100, 500, 2_000, 10_000]),
      })
      .prefault({}),
    idleStopMs: duration(0).prefault(0),
    env: z
      .union([z.enum(['minimal', 'inherit']), z.array(variableName)], {
        error: 'must be "minimal", "inherit" or a list of names of variables',
      })
      .prefault('minimal'),
    maxFrameBytes: size(1024, 1024 * MIB).prefault('16MB'),
    tools: z.strictObject({ allow: toolNames, deny: toolNames }).prefault({}),
    logLevel: z.enum(SERVER_LOG_LEVELS).prefault('info'),
    openMs: duration(1).prefault('60s'),
    drainMs: duration(0).prefault('10s'),
    stdinMs: duration(0).prefault('2s'),
    termMs: duration(0).prefault('3s'),
    pingMs: duration(0).prefault('30s'),
    pingTimeoutMs: duration(1).prefault('10s'),
    enabled: z.boolean().prefault(true),
  })
  .refine(({ timeoutMs, maxTimeoutMs }) => timeoutMs <= maxTimeoutMs, {
    path: ['timeoutMs'],
    error: 'must not exceed maxTimeoutMs, which is 10 minutes unless it is set',
  })
  .meta({ id: 'ServerSettings' });

export const definitionSchema = z.looseObject({
  type: z.enum(['stdio']).exactOptional(),
  command: word,
  args: z.array(text).exactOptional(),
  env: z.record(variableName, text).exactOptional(),
  cwd: word.exactOptional(),
  disabled: z.boolean().exactOptional(),
  'x-troupe': settingsSchema.prefault({}),
});

export const troupeSchema = z.strictObject({
  plugins: z.record(z.string(), z.looseObject({ required: z.boolean().prefault(false) })).prefault({}),
  requests: z.enum(['table', 'actor']).prefault('table'),
  nats: z
    .strictObject({
      url: word.exactOptional(),
      subject: z
        .string()
        .regex(/^[\w-]+(\.[\w-]+)*$/, 'must be a NATS subject without wildcards, such as "troupe" or "team.troupe"')
        .prefault('troupe'),
      // 64 MiB is the most that a nats-server can be set to.
      maxPayloadBytes: size(1024, 64 * MIB).prefault('8MB'),
    })
    .prefault({}),
  logLevel: z.enum(LOG_LEVELS).prefault('info'),
  servers: settingsSchema.prefault({}),
});

export const ROOT_KEYS = ['$schema', 'mcpServers', 'x-troupe'] as const;

/** Keys of a remote server's address in the hosts that share this form. */
export const ADDRESS_KEYS = ['url', 'serverUrl', 'httpUrl'] as const;

/** The JSON Schema of the file, for `$schema` in editors. Remote servers pass: other hosts run them. */
export function schemaJson(): Record<string, unknown> {
  const remotes = ADDRESS_KEYS.map((key) => z.looseObject({ [key]: z.string() }));
  const file = z.looseObject({
    $schema: z.string().exactOptional(),
    mcpServers: z
      .record(z.string().regex(new RegExp(`^${NAME_RULE}$`)), z.union([definitionSchema, ...remotes]))
      .exactOptional(),
    'x-troupe': troupeSchema.exactOptional(),
  });
  return { title: 'troupe.json', ...z.toJSONSchema(file, { io: 'input' }) };
}
