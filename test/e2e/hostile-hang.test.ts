// Servers that answer late, twice or never. Each time: the caller gets one answer that says what is known, the state is
// shown, and a healthy neighbour’s calls go on.

import { createInbox, headers } from 'nats';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Daemon, daemon, fixture, type Reply, replyOf } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { whileNeighbourWorks } from '../support/neighbour.ts';

const OFF = { enabled: false, stdinMs: 200, termMs: 300 };
let d: Daemon;

beforeAll(async () => {
  d = await daemon({
    servers: {
      echo: fixture('echo'),
      hung: fixture('hangs', { ...OFF, timeoutMs: 400, pingTimeoutMs: 300 }),
      silent: fixture('hangs', { ...OFF, pingMs: 300, pingTimeoutMs: 300, timeoutMs: 500 }),
      slow: fixture('answers-late', OFF),
      double: fixture('answers-twice', OFF),
    },
  });
});
afterAll(() => d[Symbol.asyncDispose]());

const during = <Value>(work: () => Promise<Value>) => whileNeighbourWorks(d, work);
const start = (name: string) => d.cli('start', name);
const text = ({ data }: Reply) => data?.content?.[0]?.text;

test('a server that hangs costs its caller the timeout, is asked if it lives, and gets a fresh start', async () => {
  await during(async () => {
    await start('hung');
    const replies = await Promise.all([d.request('troupe.call.hung.hang'), d.request('troupe.call.hung.echo')]);
    for (const reply of replies) {
      expect(reply).toMatchObject({
        code: 408,
        data: { code: -32001, data: { troupe: { code: 'timeout', delivery: 'outcome unknown', server: 'hung' } } },
      });
      expect(reply.error).toMatch(/server hung \(ready\) did not answer (hang|echo) within 400 ms; .* is unknown/);
    }
    await eventually(async () => (await d.server('hung')).restarts === 1);
    const back = await d.until('hung', 'ready');
    expect(back.lastError).toBe('it did not answer a ping within 300 ms');
    expect(text(await d.request('troupe.call.hung.echo', { message: 'awake' }))).toBe('awake');
  });
});

test('a server that falls silent without any call is noticed by its missing pong', async () => {
  await during(async () => {
    await start('silent');
    void d.request('troupe.call.silent.hang').catch(() => {}); // its own fate is the test above
    await eventually(async () => (await d.server('silent')).restarts === 1);
    expect(await d.until('silent', 'ready')).toMatchObject({ lastError: 'it did not answer a ping within 300 ms' });
  });
});

test('an answer that comes after the timeout is dropped, and its caller hears nothing more', async () => {
  await during(async () => {
    await start('slow');
    const replies = await collect('troupe.call.slow.late', { ms: 500 }, { 'Troupe-Timeout': '150' });
    await eventually(() => replies.length === 1);
    expect(replies[0]).toMatchObject({ code: 408, data: { data: { troupe: { delivery: 'outcome unknown' } } } });
    await eventually(async () => expect(strayAnswers(await d.log(), 'late by 500 ms')).toHaveLength(1));
    expect(replies).toHaveLength(1);
    const { value } = (await d.request('troupe.call.slow.cancelled')).data.structuredContent;
    expect(value).toHaveLength(1);
    expect(await d.server('slow')).toMatchObject({ state: 'ready', restarts: 0, inFlight: 0 });
  });
});

test('a server that answers only what was cancelled gives its caller the cancellation and nothing else', async () => {
  await during(async () => {
    await start('slow');
    const replies = await collect('troupe.call.slow.stubborn', {}, { 'Troupe-Request-Id': 'stubborn-1' });
    await eventually(async () => (await d.server('slow')).inFlight === 1);
    (await d.nats()).publish('troupe.cancel.stubborn-1');
    await eventually(() => replies.length === 1);
    expect(replies[0]).toMatchObject({ code: 499, data: { data: { troupe: { delivery: 'outcome unknown' } } } });
    await eventually(async () => expect(strayAnswers(await d.log(), 'answered all the same')).toHaveLength(1));
    expect(replies).toHaveLength(1);
  });
});

const TWO_ANSWERS = [
  ['twice', String.raw`\"second\"`],
  ['both', 'second thoughts'],
] as const;

test.each(TWO_ANSWERS)('the first of two answers counts (%s), the second is dropped', async (tool, second) => {
  await during(async () => {
    await start('double');
    const replies = await collect(`troupe.call.double.${tool}`, {});
    await eventually(async () => expect(strayAnswers(await d.log(), second)).toHaveLength(1));
    expect(replies.map(text)).toEqual(['first']);
    expect(await d.server('double')).toMatchObject({ state: 'ready', restarts: 0, errors: 0 });
  });
});

/** Every message that comes to the caller's inbox, also those after the first. */
async function collect(subject: string, body: object, more: Record<string, string> = {}): Promise<Reply[]> {
  const nc = await d.nats();
  const reply = createInbox();
  const replies: Reply[] = [];
  nc.subscribe(reply, { callback: (_, msg) => replies.push(replyOf(msg)) });
  const all = headers();
  for (const [key, value] of Object.entries(more)) all.set(key, value);
  nc.publish(subject, JSON.stringify(body), { reply, headers: all });
  await nc.flush();
  return replies;
}

const strayAnswers = (log: string, words: string) =>
  log.split('\n').filter((line) => line.includes('dropped an answer to nobody') && line.includes(words));
