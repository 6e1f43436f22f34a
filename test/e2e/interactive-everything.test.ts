// The reference server with a pool of processes behaves towards a host as it does without: what a session has told it and what
// its calls have begun there meet in one process, also while another host's calls are spread over the others.

import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import {
  LoggingMessageNotificationSchema,
  ResourceUpdatedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { expect, it } from 'vitest';
import { daemon, ROOT } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';

const EVERYTHING = {
  command: process.execPath,
  args: [join(ROOT, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js'), 'stdio'],
};
const URI = 'demo://resource/dynamic/text/1';

async function host(transport: Transport) {
  const client = new Client({ name: 'host', version: '1' });
  const [updates, logs]: [string[], string[]] = [[], []];
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => void updates.push(params.uri));
  client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => void logs.push(String(params.data)));
  await client.connect(transport);
  const call = async (name: string, args = {}): Promise<string> =>
    ((await client.callTool({ name, arguments: args })) as any).content[0].text;
  return { client, updates, logs, call };
}

/** Listens to a resource and to log lines of every level, and has the server tell of both. */
async function listenTo({ client, updates, logs, call }: Awaited<ReturnType<typeof host>>): Promise<void> {
  await client.setLoggingLevel('debug');
  await client.subscribeResource({ uri: URI });
  logs.length = 0;
  const [first, second] = await Promise.all([call('toggle-subscriber-updates'), call('toggle-simulated-logging')]);
  expect([first, second]).toEqual([expect.stringContaining('Started'), expect.stringContaining('Started')]);
  await eventually(() => expect(new Set(updates)).toEqual(new Set([URI])));
  await eventually(() => expect(logs.some((line) => /level.message/i.test(line))).toBe(true));
}

it('updates, log lines and what calls have begun are the same through a pool as without troupe', async () => {
  const direct = await host(new StdioClientTransport({ ...EVERYTHING, stderr: 'ignore' }));
  await listenTo(direct);
  await direct.client.close();

  const everything = { ...EVERYTHING, 'x-troupe': { interactive: true, pool: 4 } };
  await using d = await daemon({ servers: { everything }, troupe: { http: { address: '127.0.0.1:0' } } });
  const url = new URL(`${await d.http()}/mcp/everything`);
  const [busy, listening] = [
    await host(new StreamableHTTPClientTransport(url)),
    await host(new StreamableHTTPClientTransport(url)),
  ];
  const work = busy.call('trigger-long-running-operation', { duration: 0.5, steps: 2 });
  await eventually(async () => expect((await d.server('everything')).inFlight).toBe(1));
  await listenTo(listening);
  await work;
  const more = busy.call('trigger-long-running-operation', { duration: 0.5, steps: 2 });
  // The very process that began to tell is asked to stop.
  expect(await listening.call('toggle-subscriber-updates')).toContain('Stopped');
  expect(await listening.call('toggle-simulated-logging')).toContain('Stopped');
  await more;
  for (const { client } of [busy, listening]) await client.close();
}, 30_000);
