// The promises of the daemon that can be seen at its NATS door, one test each, named after the promise.
// Executions are counted by the server itself, in a file, so that nobody's word has to be taken for them.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInbox, type Msg, type NatsConnection } from 'nats';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ask, header } from '../support/ask.ts';
import { type Daemon, daemon, fixture, replyOf } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { type Scratch, scratch } from '../support/scratch.ts';

let dir: Scratch;
let d: Daemon;

beforeAll(async () => {
  dir = await scratch();
  const tallies = fixture('tallies', { share: 'all', maxInFlight: 100, restart: { backoffMs: [300] } });
  tallies.args.push(join(dir.path, 'tallies'));
  d = await daemon({
    servers: {
      tallies,
      steps: fixture('progress', { share: 'all' }),
      slow: fixture('hangs', { share: 'all' }),
      things: fixture('resources'),
      broken: fixture('dies-at-start', { restart: { intensity: 0 } }),
    },
  });
});
afterAll(async () => {
  await d[Symbol.asyncDispose]();
  await dir[Symbol.asyncDispose]();
});

/** How often each id was executed. */
async function executions(): Promise<Map<string, number>> {
  const lines = (await readFile(join(dir.path, 'tallies'), 'utf8').catch(() => '')).split('\n').filter(Boolean);
  const counts = new Map<string, number>();
  for (const id of lines) counts.set(id, (counts.get(id) ?? 0) + 1);
  return counts;
}

/** Many calls at once, each with every reply it got. */
function callMany(nc: NatsConnection, prefix: string, count: number, ms: number): Map<string, Msg[]> {
  const inbox = createInbox();
  const replies = new Map(Array.from({ length: count }, (_, i) => [`${prefix}-${i}`, [] as Msg[]]));
  nc.subscribe(`${inbox}.*`, { callback: (_, msg) => replies.get(msg.subject.slice(inbox.length + 1))?.push(msg) });
  for (const id of replies.keys())
    nc.publish('troupe.call.tallies.tally', JSON.stringify({ id, ms }), { reply: `${inbox}.${id}` });
  return replies;
}

const troupeOf = (msg: Msg) => (replyOf(msg).data?.data?.troupe ?? {}) as Record<string, string>;

it('P1 answered once, P3 at most once: kill -9 of the server in the middle of 500 overlapping calls', async () => {
  const { pid } = await d.server('tallies');
  const replies = callMany(await d.nats(), 'p1', 500, 50);
  await eventually(async () => (await executions()).size > 150);
  process.kill(pid as number, 'SIGKILL');
  await eventually(() => [...replies.values()].every((each) => each.length > 0), 15_000);
  await d.until('tallies', 'ready');
  await d.request('troupe.call.tallies.tally', { id: 'after p1' });

  const counts = await executions();
  const fates = { answered: 0, 'outcome unknown': 0, 'not sent': 0 };
  for (const [id, [reply, ...more]] of replies) {
    expect([id, more.length]).toEqual([id, 0]);
    const { code } = replyOf(reply as Msg);
    const { delivery, server } = troupeOf(reply as Msg);
    const fate = (delivery ?? 'answered') as keyof typeof fates;
    fates[fate] += 1;
    if (fate === 'answered') expect([id, counts.get(id)]).toEqual([id, 1]);
    else if (fate === 'outcome unknown')
      expect([code, server, (counts.get(id) ?? 0) <= 1]).toEqual([502, 'tallies', true]);
    else expect([code, server, counts.get(id)]).toEqual([503, 'tallies', undefined]);
  }
  expect(fates.answered).toBeGreaterThan(0);
  expect(fates['outcome unknown']).toBeGreaterThan(0);
  expect(fates.answered + fates['outcome unknown'] + fates['not sent']).toBe(500);
  expect([...counts.values()].filter((count) => count > 1)).toEqual([]);
});

it('P1 answered once: a server that never answers is answered for, at the deadline, and its late answer is dropped', async () => {
  const asked = ask(await d.nats(), 'troupe.call.tallies.tally', { id: 'late', ms: 600 }, { 'Troupe-Timeout': '200' });
  const [first] = await asked.atLeast(1);
  expect([header(first, 'Nats-Service-Error-Code'), troupeOf(first as Msg).delivery]).toEqual([
    '408',
    'outcome unknown',
  ]);
  await d.request('troupe.call.tallies.tally', { id: 'later than late', ms: 700 });
  expect(asked.messages).toHaveLength(1);
});

it('P3 at most once: kill -9 of the daemon under 100 calls executes none of them again', async () => {
  const nc = await d.nats();
  const replies = callMany(nc, 'p3', 100, 300);
  await eventually(async () => [...(await executions()).keys()].some((id) => id.startsWith('p3')));
  await d.kill();
  await d.start();
  await d.request('troupe.call.tallies.tally', { id: 'after p3' });
  const counts = await executions();
  expect(Math.max(...counts.values())).toBe(1);
  expect([...replies.values()].filter((each) => each.length > 1)).toEqual([]);
});

it('P4 honest failure: not sent, outcome unknown and failed, each with the server, its state and why', async () => {
  await d.until('broken', 'failed');
  const unsent = await d.request('troupe.call.broken.echo', {});
  expect(unsent.data.data.troupe).toEqual({
    ...{ code: 'unavailable', delivery: 'not sent', server: 'broken', state: 'failed' },
  });
  expect(unsent.error).toMatch(/server broken is failed: exited with code 3; see troupe logs broken/);

  const { pid } = await d.server('tallies');
  const asked = ask(await d.nats(), 'troupe.call.tallies.tally', { id: 'p4', ms: 10_000 });
  await eventually(async () => (await executions()).has('p4'));
  process.kill(pid as number, 'SIGKILL');
  const [unknown] = await asked.atLeast(1);
  const { code, delivery, server, state } = troupeOf(unknown as Msg);
  expect({ code, delivery, server }).toEqual({ code: 'lost', delivery: 'outcome unknown', server: 'tallies' });
  expect(state).toBe('waiting');
  expect(header(unknown, 'Nats-Service-Error')).toBe(
    'server tallies went away: killed by SIGKILL; the request was sent and its outcome is unknown',
  );

  const restarting = await d.request('troupe.call.tallies.tally', { id: 'early' });
  expect(restarting.code).toBeUndefined(); // only what was in flight is lost
  expect((await executions()).get('early')).toBe(1);
  const failed = await d.request('troupe.call.tallies.refuse', { id: 'refused' });
  expect([failed.code, failed.error]).toEqual([500, 'server tallies answered with an error']);
  expect(failed.text).toBe('{"code":-32000,"message":"no refused today"}');
});

it('P6 right caller: nobody else can cancel a call by its id, or reuse it', async () => {
  const headers = { 'Troupe-Request-Id': 'hers' };
  const call = d.request('troupe.as.alice.call.slow.sleep', { ms: 1_000 }, { headers });
  await eventually(async () => (await d.server('slow')).inFlight === 1);
  for (const other of ['troupe.as.bob.cancel.hers', 'troupe.cancel.hers'])
    await expect(d.request(other, '', { timeout: 100 })).rejects.toMatchObject({ code: 'TIMEOUT' });
  expect((await d.request('troupe.as.bob.call.slow.sleep', { ms: 1 }, { headers })).code).toBeUndefined();
  expect((await call).data.content[0].text).toBe('slept 1000 ms');
});

it('P6 right caller: what the process of one caller says is told to that caller only', async () => {
  const nc = await d.nats();
  const heard: string[] = [];
  nc.subscribe('troupe.>', { callback: (_, msg) => msg.subject.includes('.ev.') && heard.push(msg.subject) });
  const say = { level: 'warning', text: 'a secret of alice' };
  await d.request('troupe.as.alice.subscribe.things', { uri: 'memo://hers' });
  await d.request('troupe.as.alice.call.things.log', say);
  await d.request('troupe.as.alice.call.things.touch', { uri: 'memo://hers' });
  await eventually(() => heard.some((subject) => subject.includes('resources.updated')));
  expect(heard).toContain('troupe.as.alice.ev.things.log.warning');
  expect(heard.filter((subject) => !subject.startsWith('troupe.as.alice.ev.'))).toEqual([]);
});

it('P6 right caller: one of many callers of a shared server gets its own replies and its own progress', async () => {
  const nc = await d.nats();
  const callers = Array.from({ length: 20 }, (_, i) => `caller${i}`);
  const streams = callers.map((caller, i) =>
    ask(nc, `troupe.as.${caller}.call.steps.steps`, { count: i + 1, ms: 5 }, { 'Troupe-Stream': '1' }),
  );
  for (const [i, stream] of streams.entries()) {
    const totals = (await stream.toTheEnd()).filter((msg) => header(msg, 'Mcp-Frame') === 'progress');
    expect(new Set(totals.map((msg) => msg.json<{ total: number }>().total))).toEqual(new Set([i + 1]));
  }
});
