// A daemon that is stopped in order, servers that are narrow or out of reach for a moment: what was not sent is sent later,
// what goes on is gone on with, and what cannot be known is said to be so.

import { createServer, connect as dial, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Daemon, daemon, fixture } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/nats.ts';
import { executions, taskLine, upstreamOf } from '../support/task-line.ts';
import { taskServer } from '../support/task-server.ts';

let d: Daemon;
let tallies: string;
let kept: Awaited<ReturnType<typeof taskServer>>;
let road: Awaited<ReturnType<typeof detour>>;
beforeAll(async () => {
  d = await daemon();
  tallies = join(d.dir, 'tallies');
  kept = await taskServer(tallies);
  road = await detour(new URL(kept.url).port);
  const server = (troupe: object) => {
    const each = fixture('tallies', { drainMs: 100, ...troupe });
    each.args.push(tallies);
    return each;
  };
  await d.write({
    ...{ plain: server({}), again: server({ rerun: true }), narrow: server({ maxInFlight: 1 }) },
    ...{
      wipes: fixture('destructive', { approve: 'destructive' }),
      kept: { type: 'http', url: `http://127.0.0.1:${road.port}/mcp`, 'x-troupe': { rerun: true, pingMs: '200ms' } },
    },
  });
  for (const name of ['plain', 'again', 'narrow', 'wipes', 'kept']) await d.until(name, 'ready');
}, 60_000);
afterAll(async () => {
  await d[Symbol.asyncDispose]();
  await road.close();
  await kept[Symbol.asyncDispose]();
});

const line = () => taskLine(join(d.state, 'control.sock'));

it('a server with room for one call runs all its tasks in turn, and others get their turn too', async () => {
  await using tasks = await line();
  const made = [];
  for (let nth = 0; nth < 5; nth++) made.push(await tasks.create('narrow', 'tally', { id: `narrow-${nth}`, ms: 50 }));
  expect((await d.request('troupe.call.narrow.tally', { id: 'plain call' })).data.content[0].text).toBe('plain call');
  for (const [nth, { taskId }] of made.entries()) expect(await tasks.end(taskId)).toEqual({ text: `narrow-${nth}` });
});

it('those that are made at once are dispatched one by one', async () => {
  await using tasks = await line();
  const made = await Promise.all(
    [1, 2, 3, 4].map((nth) => tasks.create('narrow', 'tally', { id: `once-${nth}`, ms: 300 })),
  );
  const phases = made.map(({ phase }) => phase).sort();
  expect(phases).toEqual(['dispatching', 'queued', 'queued', 'queued']);
  for (const { taskId } of made) await tasks.end(taskId);
  for (const nth of [1, 2, 3, 4]) expect(executions(tallies, `once-${nth}`)).toBe(1);
});

it('after a stop, what waited for a word or for its turn goes on, and what may be run again is', async () => {
  const ids = await (async () => {
    await using tasks = await line();
    const wiped = await tasks.create('wipes', 'wipe', { path: 'all' });
    await eventually(async () => (await tasks.get(wiped.taskId)).status === 'input_required', 15_000);
    const busy = await tasks.create('narrow', 'tally', { id: 'long', ms: 600_000 });
    const behind = await tasks.create('narrow', 'tally', { id: 'behind' });
    const again = await tasks.create('again', 'tally', { id: 'again', ms: 1_500 });
    await eventually(() => executions(tallies, 'again') === 1 && executions(tallies, 'long') === 1, 15_000);
    return { wiped, busy, behind, again };
  })();
  expect(await d.down()).toBe(0);
  await d.start();
  await using tasks = await line();
  expect(await tasks.end(ids.busy.taskId)).toEqual({ code: 'lost', delivery: 'outcome unknown' });
  expect((await tasks.get(ids.busy.taskId)).statusMessage).toBe(
    'interrupted, outcome unknown: troupe was stopped while tally of narrow ran',
  );
  expect(await tasks.end(ids.behind.taskId)).toEqual({ text: 'behind' });
  expect(await tasks.end(ids.again.taskId)).toEqual({ text: 'again' });
  expect([executions(tallies, 'behind'), executions(tallies, 'again'), executions(tallies, 'long')]).toEqual([1, 2, 1]);
  const asks = async () => (await tasks.ask<{ asks: { id: string; task?: string }[] }>('inbox', {})).asks;
  const ask = await eventually(async () => {
    const found = (await asks()).find((each) => each.task === ids.wiped.taskId);
    if (!found) throw new Error('nobody is asked');
    return found;
  }, 15_000);
  await tasks.ask('answer', { id: ask.id, action: 'accept' });
  expect(await tasks.end(ids.wiped.taskId)).toEqual({ text: 'wiped all, call 1' });
}, 90_000);

it('a remote server that cannot be reached for a moment is followed again, and its tool not called again', async () => {
  await using tasks = await line();
  const { taskId } = await tasks.create('kept', 'tally', { id: 'blip', ms: 4_000 });
  // Before the daemon knows what to follow, a lost call may be made again: the rule of this server says so.
  await eventually(() => expect(upstreamOf(d.state, taskId)).toEqual(expect.any(String)), 15_000);
  expect(executions(tallies, 'blip')).toBe(1);
  road.cut();
  await eventually(async () => (await d.server('kept')).state !== 'ready', 30_000);
  await road.mend();
  expect(await tasks.end(taskId)).toEqual({ text: 'blip' });
  expect(executions(tallies, 'blip')).toBe(1);
}, 90_000);

/** A way to that port which can be cut. */
async function detour(to: string) {
  const open = new Set<Socket>();
  let server: Server;
  const listen = (port: number) =>
    new Promise<number>((resolve) => {
      server = createServer((near) => {
        const far = dial(Number(to), '127.0.0.1');
        for (const socket of [near, far]) open.add(socket.on('error', () => {}).on('close', () => socket.destroy()));
        near.pipe(far).pipe(near);
      }).listen(port, '127.0.0.1', () => resolve((server.address() as { port: number }).port));
    });
  const cut = () => {
    server.close();
    for (const socket of open) socket.destroy();
    open.clear();
  };
  const port = await listen(await freePort());
  return { port, cut, mend: () => listen(port), close: async () => cut() };
}
