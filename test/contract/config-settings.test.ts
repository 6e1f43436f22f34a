// The settings that only troupe knows: their defaults, their units, their layers, and what is said when they are wrong.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { schemaJson, settingsSchema } from '../../src/config/schema.ts';
import { scratch } from '../support/scratch.ts';

type Case = [sin: string, text: string, complaints: string[]];

const settings = (text: string) => `{"mcpServers": {\n"a": {"command": "x", "x-troupe": ${text}}\n}}`;
const troupe = (text: string) => `{"x-troupe":\n${text}}`;
const DURATION = 'must be a duration, such as 30000 (milliseconds), "30s" or "5m"';
const SIZE = 'must be a size, such as 1048576 (bytes), "512KB" or "16MB"';

const CASES: Case[] = [
  [
    'settings that do not exist',
    settings('{"timeout": 1,\n"maxInflight": 2, "colour": 3,\n"restart": {"period": 4}, "tools": {"allowed": []}}'),
    [
      '2:36 server "a": x-troupe.timeout is not a setting; did you mean "timeoutMs"?',
      '3:1 server "a": x-troupe.maxInflight is not a setting; did you mean "maxInFlight"?',
      '3:19 server "a": x-troupe.colour is not a setting; remove it',
      '4:13 server "a": x-troupe.restart.period is not a setting; did you mean "periodMs"?',
      '4:37 server "a": x-troupe.tools.allowed is not a setting; did you mean "allow"?',
    ],
  ],
  [
    'durations that are none',
    settings('{"timeoutMs": "soon",\n"openMs": 0,\n"pingMs": "60d",\n"drainMs": true}'),
    [
      `2:49 server "a": x-troupe.timeoutMs ${DURATION}`,
      '3:11 server "a": x-troupe.openMs must be between 1 ms and 24 days',
      '4:11 server "a": x-troupe.pingMs must be between 0 ms and 24 days',
      `5:12 server "a": x-troupe.drainMs ${DURATION}`,
    ],
  ],
  [
    'sizes that are none',
    settings('{"maxFrameBytes": "16 elephants"}'),
    [`2:53 server "a": x-troupe.maxFrameBytes ${SIZE}`],
  ],
  [
    'counts that are none',
    settings('{"maxInFlight": 0,\n"maxQueued": 1.5,\n"restart": {"backoffMs": []}}'),
    [
      '2:51 server "a": x-troupe.maxInFlight must be a whole number of at least 1',
      '3:14 server "a": x-troupe.maxQueued must be a whole number of at least 0',
      '4:26 server "a": x-troupe.restart.backoffMs must have at least one step',
    ],
  ],
  [
    'choices that are none',
    settings('{"share": "principle",\n"logLevel": "warn",\n"env": "some"}'),
    [
      '2:45 server "a": x-troupe.share must be one of "principal", "all", "session"; did you mean "principal"?',
      '3:13 server "a": x-troupe.logLevel must be one of "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"; did you mean "warning"?',
      '4:8 server "a": x-troupe.env must be "minimal", "inherit" or a list of names of variables',
    ],
  ],
  [
    'a timeout beyond the longest',
    settings('{"timeoutMs": "1h"}'),
    ['2:49 server "a": x-troupe.timeoutMs must not exceed maxTimeoutMs, which is 10 minutes unless it is set'],
  ],
  ['settings that are no object', settings('[]'), ['2:35 server "a": x-troupe must be an object, not a list']],
  [
    'wrong settings of troupe itself',
    troupe('{"plugin": {},\n"plugins": {"redact": true},\n"requests": "tabel",\n"logLevel": "loud"}'),
    [
      '2:2 x-troupe.plugin is not a setting; did you mean "plugins"?',
      '3:23 x-troupe.plugins.redact must be an object, not a boolean',
      '4:13 x-troupe.requests must be one of "table", "actor"; did you mean "table"?',
      '5:13 x-troupe.logLevel must be one of "fatal", "error", "warn", "info", "debug", "trace", "silent"',
    ],
  ],
  [
    'a wrong bus',
    troupe('{"nats": {"url": "http://u:hunter2@h",\n"subject": "a.*",\n"maxPayloadBytes": "65MB"}}'),
    [
      '2:18 x-troupe.nats.url must be an address such as "nats://127.0.0.1:4222"',
      '3:12 x-troupe.nats.subject must be a NATS subject without wildcards, such as "troupe" or "team.troupe"',
      '4:20 x-troupe.nats.maxPayloadBytes must be between 1024 and 67108864 bytes',
    ],
  ],
  [
    'wrong defaults, said once',
    '{"x-troupe": {"servers":\n{"pingMs": "x"}},\n"mcpServers": {"a": {"command": "x"}, "b": {"command": "x"}}}',
    [`2:12 x-troupe.servers.pingMs ${DURATION}`],
  ],
];

test.each(CASES)('%s', async (_, text, expected) => {
  const loaded = await load(text);
  const complaints = loaded.ok ? [] : loaded.complaints;
  expect(complaints.map(({ line, column, message }) => `${line}:${column} ${message}`)).toEqual(expected);
});

test('a server that says nothing gets every default', async () => {
  const [server] = await serversOf('{"mcpServers": {"a": {"command": "x"}}}');
  expect(server).toEqual({
    transport: 'stdio',
    name: 'a',
    command: 'x',
    args: [],
    env: {},
    settings: {
      share: 'principal',
      timeoutMs: 60_000,
      maxTimeoutMs: 600_000,
      maxInFlight: 1024,
      maxQueued: 10_000,
      holdMs: 10_000,
      restart: { intensity: 5, periodMs: 60_000, backoffMs: [100, 500, 2_000, 10_000] },
      idleStopMs: 0,
      env: 'minimal',
      maxFrameBytes: 16 * 1024 * 1024,
      maxSendBytes: 10 * 1024 * 1024 - 64 * 1024,
      tools: {},
      methods: 'auto',
      logLevel: 'info',
      openMs: 60_000,
      drainMs: 10_000,
      stdinMs: 2_000,
      termMs: 3_000,
      pingMs: 30_000,
      pingTimeoutMs: 10_000,
      enabled: true,
      trust: false,
      approve: [],
      interactive: 'auto',
      pool: 4,
      sampling: { requestsPerHour: 60, tokensPerHour: 200_000, maxIterations: 20 },
      rerun: [{ tools: '*', when: 'never' }],
    },
  });
});

test('durations and sizes may be numbers or words', () => {
  const parse = (timeoutMs: unknown) => settingsSchema.parse({ timeoutMs, maxTimeoutMs: '20d' }).timeoutMs;
  expect([500, '500', '500ms', '30s', '1.5s', '5m', '2h', '1 d'].map(parse)).toEqual([
    500, 500, 500, 30_000, 1_500, 300_000, 7_200_000, 86_400_000,
  ]);
  const bytes = (maxFrameBytes: unknown) => settingsSchema.parse({ maxFrameBytes }).maxFrameBytes;
  expect([2048, '2048B', '512KB', '16mb', '1GiB'].map(bytes)).toEqual([2048, 2048, 524_288, 16_777_216, 1024 ** 3]);
});

test('a server has its own settings over those for every server, part by part', async () => {
  const [a, b] = await serversOf(`{
    "x-troupe": { "servers": { "timeoutMs": "5s", "restart": { "intensity": 9 }, "tools": { "deny": ["rm_*"] } } },
    "mcpServers": {
      "a": { "command": "x", "x-troupe": { "timeoutMs": "7s", "restart": { "periodMs": 1 }, "tools": { "allow": ["*"] } } },
      "b": { "command": "x" }
    }
  }`);
  expect(a?.settings).toMatchObject({
    timeoutMs: 7_000,
    restart: { intensity: 9, periodMs: 1, backoffMs: [100, 500, 2_000, 10_000] },
    tools: { allow: ['*'], deny: ['rm_*'] },
  });
  expect(b?.settings).toMatchObject({ timeoutMs: 5_000, restart: { intensity: 9 } });
});

test('a server that is disabled for its host is off, unless x-troupe turns it on', async () => {
  const servers = await serversOf(`{"mcpServers": {
    "off": { "command": "x", "disabled": true },
    "on": { "command": "x", "disabled": true, "x-troupe": { "enabled": true } }
  }}`);
  expect(servers.map(({ name, settings }) => [name, settings.enabled])).toEqual([
    ['off', false],
    ['on', true],
  ]);
});

test('the JSON Schema for editors knows every setting, its default, and both kinds of servers', () => {
  const schema: any = schemaJson();
  const known = Object.keys(schema.$defs.ServerSettings.properties);
  expect(known).toEqual(Object.keys(settingsSchema.parse({})));
  expect(schema.$defs.ServerSettings.properties.timeoutMs.default).toBe('60s');
  expect(schema.$defs.ServerSettings.additionalProperties).toBe(false);
  expect(schema.properties.mcpServers.additionalProperties.anyOf.map((form: any) => form.required)).toEqual([
    ['command'],
    ['url'],
    ['serverUrl'],
    ['httpUrl'],
  ]);
  expect(Object.keys(schema.$defs.RemoteSettings.properties)).toEqual([...known, 'oauth']);
  expect(schema.$defs.HttpSettings.properties.maxSessions.default).toBe(1000);
});

async function load(text: string) {
  await using dir = await scratch();
  writeFileSync(join(dir.path, 'troupe.json'), text);
  return loadConfig(join(dir.path, 'troupe.json'), {});
}

async function serversOf(text: string) {
  const loaded = await load(text);
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.complaints));
  return loaded.config.servers;
}
