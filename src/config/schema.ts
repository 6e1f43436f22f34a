// The shape of the configuration file. One zod schema serves three purposes: checking, defaults, and the JSON Schema
// that editors read.

import { z } from 'zod';
import { approveSchema, asksSchema, rootsSchema, samplingSchema } from './asks.ts';
import { httpSchema } from './http.ts';
import { NAME_RULE } from './names.ts';
import { oauthSchema } from './oauth.ts';
import { rerunSchema, tasksSchema } from './tasks.ts';
import { LOG_LEVELS, SERVER_LOG_LEVELS } from './types.ts';
import { count, duration, size, text, word } from './units.ts';

export type * from './definition-types.ts';
export type * from './types.ts';

const MIB = 1024 ** 2;

const variableName = z.string().regex(/^[^=\0]+$/, 'is not a name that a variable can have');
const toolNames = z.array(word).exactOptional();
const tools = z.strictObject({ allow: toolNames, deny: toolNames }).prefault({});

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
  idleStopMs: duration(0).prefault(0),
  env: z
    .union([z.enum(['minimal', 'inherit']), z.array(variableName)], {
      error: 'must be "minimal", "inherit" or a list of names of variables',
    })
    .prefault('minimal'),
  maxFrameBytes: size(1024, 1024 * MIB).prefault('16MB'),
  tools,
  logLevel: z.enum(SERVER_LOG_LEVELS).prefault('info'),
  openMs: duration(1).prefault('60s'),
  drainMs: duration(0).prefault('10s'),
  stdinMs: duration(0).prefault('2s'),
  termMs: duration(0).prefault('3s'),
  pingMs: duration(0).prefault('30s'),
  pingTimeoutMs: duration(1).prefault('10s'),
  enabled: z.boolean().prefault(true),
  trust: z.boolean().prefault(false),
  approve: approveSchema.prefault([]),
  interactive: z.union([z.boolean(), z.literal('auto')], { error: 'must be true, false or "auto"' }).prefault('auto'),
  pool: count(1).prefault(4),
  sampling: samplingSchema.prefault({}),
  rerun: rerunSchema.prefault(false),
});

const isWithinLongest = ({ timeoutMs, maxTimeoutMs }: { timeoutMs: number; maxTimeoutMs: number }): boolean =>
  timeoutMs <= maxTimeoutMs;
const TOO_LONG = {
  path: ['timeoutMs'],
  error: 'must not exceed maxTimeoutMs, which is 10 minutes unless it is set',
};

export const settingsSchema = settings.refine(isWithinLongest, TOO_LONG).meta({ id: 'ServerSettings' });

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

export const remoteSchema = z.looseObject({
  type: z.enum(REMOTE_TYPES).exactOptional(),
  url: word,
  headers: z.record(headerName, headerValue).exactOptional(),
  disabled: z.boolean().exactOptional(),
  'x-troupe': settings
    .extend({ oauth: oauthSchema.prefault({}) })
    .refine(isWithinLongest, TOO_LONG)
    .meta({ id: 'RemoteSettings' })
    .prefault({}),
});

const profileSchema = z.strictObject({ servers: z.array(word).min(1, 'must name at least one server'), tools });

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
  http: httpSchema.prefault({}),
  profiles: z.record(z.string(), profileSchema).prefault({}),
  asks: asksSchema.prefault({}),
  tasks: tasksSchema.prefault({}),
  roots: rootsSchema.prefault({}),
  logLevel: z.enum(LOG_LEVELS).prefault('info'),
  servers: settingsSchema.prefault({}),
});

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
