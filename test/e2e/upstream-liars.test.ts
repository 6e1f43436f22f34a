// Servers whose tasks cannot be relied on, over stdio: one that never says anything of them, and one that never stops. No call
// hangs beyond its time, nobody else waits, and what was given up is cancelled as the task that it has become.

import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Daemon, daemon, fixture } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';

let d: Daemon;
beforeAll(async () => {
  const trusted = { share: 'all', trust: true };
  const [sulks, floods] = [fixture('tasks-sulks', trusted), fixture('tasks-floods', trusted)];
  d = await daemon({ servers: { sulks, floods, echo: fixture('echo', trusted) } });
}, 60_000);
afterAll(() => d?.[Symbol.asyncDispose]());

const heard = async (): Promise<[string, unknown][]> =>
  JSON.parse((await d.request('troupe.call.sulks.heard')).data.content[0].text);
const sulk = (args: object, headers: Record<string, string>) =>
  d.request('troupe.call.sulks.sulk', args, { headers, timeout: 30_000 });

it('ends a call whose task is never spoken of when its time is over, and cancels the task', async () => {
  const { code, data } = await sulk({}, { 'Troupe-Timeout': '2500' });
  expect([code, data.data.troupe.delivery]).toEqual([408, 'outcome unknown']);
  await eventually(async () => {
    const all = await heard();
    const [, id] = all.find(([what]) => what === 'sulk') ?? [];
    expect(all).toContainEqual(['cancel', `sulk-${id}`]);
    expect(all).not.toContainEqual(['cancelled', id]); // the call was answered: with the task
  }, 20_000);
});

it('cancels a task that came into being only after its call was given up', async () => {
  const pending = sulk({ waits: true }, { 'Troupe-Request-Id': 'early' });
  const id = await eventually(async () => {
    const calls = (await heard()).filter(([what]) => what === 'sulk');
    if (calls.length < 2) throw new Error('it has not heard of the call');
    return calls.at(-1)?.[1];
  }, 20_000);
  await d.request('troupe.cancel.early');
  expect((await pending).code).toBe(499);
  await d.request('troupe.call.sulks.relent');
  await eventually(async () => expect(await heard()).toContainEqual(['cancel', `sulk-${id}`]), 20_000);
  expect(await heard()).not.toContainEqual(['result', `sulk-${id}`]);
  expect(await heard()).not.toContainEqual(['cancelled', id]);
});

it('is neither deafened by a flood of statuses nor made to ask without pause, and others do not wait', async () => {
  const begunAt = performance.now();
  const flood = d.request('troupe.call.floods.flood', { count: 50_000 }, { timeout: 60_000 });
  for (let n = 0; n < 20; n++)
    expect((await d.request('troupe.call.echo.echo', { message: `${n}` })).code).toBeUndefined();
  const { data } = await flood;
  const asked = Number(/asked (\d+) times/.exec(data.content[0].text)?.[1]);
  expect(asked).toBeLessThan(5 + (performance.now() - begunAt) / 100);
}, 90_000);
