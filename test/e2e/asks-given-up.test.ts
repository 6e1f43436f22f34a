// Callers that give up, hosts that go away and come back, questions that are left open: whoever comes next is served, or told
// what it waited for.

import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { AskView } from '../../src/asks/ask.ts';
import { ask } from '../support/ask.ts';
import { askControl } from '../support/control.ts';
import { type Daemon, daemon, fixture } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { rawHost } from '../support/host.ts';

let d: Daemon;
beforeAll(async () => {
  d = await daemon({
    servers: { asks: fixture('asks-tags'), few: fixture('asks-tags', { pool: 1, timeoutMs: '1s' }) },
    troupe: { http: { address: '127.0.0.1:0' } },
  });
}, 60_000);
afterAll(() => d?.[Symbol.asyncDispose]());

const inbox = async () => (await askControl<{ asks: AskView[] }>(join(d.state, 'control.sock'), 'inbox')).asks;

it('the next call of a process is asked its own question, though the one before was cancelled', async () => {
  const headers = { 'Troupe-Request-Id': 'gone' };
  const gone = d.request('troupe.call.asks.ask', { tag: 'first' }, { headers });
  await eventually(async () => (await inbox()).length === 1);
  await d.request('troupe.cancel.gone');
  expect(await gone).toMatchObject({ code: 499 });
  const host = await rawHost(`${await d.http()}/mcp/asks`, { capabilities: { elicitation: {} } });
  const stream = await host.begin(1, 'tools/call', { name: 'ask', arguments: { tag: 'second' } });
  for await (const { message } of stream.events) {
    if (message.method !== 'elicitation/create') continue;
    expect(message.params.message).toBe('second');
    break;
  }
  await host.close();
});

it('a host that went away finds the question on the stream of its call when it comes back, and never elsewhere', async () => {
  const host = await rawHost(`${await d.http()}/mcp/asks`, { capabilities: { elicitation: {} } });
  const standing = await host.get();
  const elsewhere: any[] = [];
  const listening = (async () => {
    for await (const { message } of standing.events) elsewhere.push(message);
  })().catch(() => {}); // it is left at the end
  const stream = await host.begin(7, 'tools/call', { name: 'ask', arguments: { tag: 'who?', ms: 300 } });
  void stream.events.next().catch(() => {}); // reads as far as the first, empty event
  await eventually(() => stream.last !== '');
  stream.leave();
  await eventually(async () => (await inbox()).some(({ message }) => message === 'who?'));
  const seen: any[] = [];
  for await (const { message } of (await host.get(stream.last)).events) {
    seen.push(message);
    if (message.method === 'elicitation/create')
      await host.send('POST', { id: message.id, result: { action: 'accept', content: { said: 'me' } } });
  }
  expect(seen.map(({ method, id }) => method ?? id)).toEqual(['elicitation/create', 7]);
  expect(seen[1].result.content[0].text).toContain('"said":"me"');
  standing.leave();
  await listening;
  expect(elsewhere.filter(({ method }) => method === 'elicitation/create')).toEqual([]);
  await host.close();
});

it('a call that waits behind open questions says what it waited for', async () => {
  // One that is told: others wait no longer than their time-out.
  const asking = ask(await d.nats(), 'troupe.call.few.ask', { tag: 'open' }, { 'Troupe-Stream': '1' });
  await eventually(async () => (await inbox()).some(({ server }) => server === 'few'));
  const { error } = await d.request('troupe.call.few.work', { tag: 'behind' });
  expect(error).toMatch(/all its processes wait for answers, see troupe inbox.*not sent/);
  const open = (await inbox()).find(({ server }) => server === 'few');
  await d.cli('answer', String(open?.id), '--decline');
  await asking.toTheEnd();
});
