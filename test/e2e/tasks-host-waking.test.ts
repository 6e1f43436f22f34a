// A server that runs tasks of its own and is not up yet, of which only the list of its tools is remembered: a host may call
// them as tasks, and is told when it is known what the server says of that.

import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { daemon, ROOT } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { type RawHost, rawHost } from '../support/host.ts';
import { scratch } from '../support/scratch.ts';

const SERVER = join(ROOT, 'test/fixtures/tasks-stdio.mjs');

async function supportOf(host: RawHost): Promise<Record<string, string>> {
  const { tools } = (await host.ask('tools/list')).result;
  return Object.fromEntries(tools.map(({ name, execution }: any) => [name, execution?.taskSupport]));
}

it('a tool of a server that is coming may be a task, until the server says what it wants', async () => {
  await using dir = await scratch();
  const gate = join(dir.path, 'open');
  await writeFile(gate, '');
  const script = `while [ ! -e '${gate}' ]; do sleep 0.05; done; exec '${process.execPath}' '${SERVER}'`;
  const late = { command: '/bin/sh', args: ['-c', script] };
  await using d = await daemon({ servers: { late }, settle: false });
  await d.until('late', 'ready', 30_000);
  const own = { late__work: 'required', late__may: 'optional', late__board: 'forbidden' };
  const before = await rawHost(`${await d.http()}/mcp`);
  await eventually(async () => expect(await supportOf(before)).toEqual(own), 15_000);
  await before.close();

  await d.down();
  await rm(gate);
  await d.start();
  const host = await rawHost(`${await d.http()}/mcp`);
  const stream = await host.get();
  const ours = { late__work: 'optional', late__may: 'optional', late__board: 'optional' };
  expect(await supportOf(host)).toEqual(ours);
  const { result } = await host.ask('tools/call', { name: 'late__work', arguments: { tag: 'early' }, task: {} });
  const { taskId } = result.task;
  expect(result.task.status).toBe('working');

  await writeFile(gate, '');
  for await (const { message } of stream.events) if (message.method === 'notifications/tools/list_changed') break;
  await eventually(async () => expect(await supportOf(host)).toEqual(own), 15_000);
  expect((await host.ask('tasks/result', { taskId })).result.content[0].text).toBe('early: done');
  await host.close();
}, 120_000);
