// What only grows is kept within bounds: events by age, by number, and for one session by a number of its own; sessions
// that nobody uses come to an end.

import { afterEach, beforeEach, expect, it } from 'vitest';
import { createStreams } from '../../src/sessions/streams.ts';
import { openSeal } from '../../src/store/seal.ts';
import { openStore, type Store } from '../../src/store/store.ts';
import { realWorld } from '../../src/world/world.ts';
import { eventually } from '../support/eventually.ts';
import { type Scratch, scratch } from '../support/scratch.ts';

let dir: Scratch;
let store: Store;
const HOUR_MS = 3_600_000;
const frame = Buffer.from('{}');
const eventsOf = (stream: string, after = 0) => store.all<{ seq: number }>('eventsAfter', [stream, after]);
const newest = () => store.get<{ seq: number }>('newestEvent')?.seq ?? 0;

async function reopen(): Promise<void> {
  await store.close();
  store = await openStore(dir.path);
}

beforeEach(async () => {
  dir = await scratch();
  store = await openStore(dir.path);
});
afterEach(async () => {
  await store.close();
  await dir[Symbol.asyncDispose]();
});

it('forgets events that are older than an hour, large ones within minutes, and keeps the others', async () => {
  const old = Date.now() - HOUR_MS - 1_000;
  for (const [stream, body, at] of [
    ['old', frame, old],
    ['large and not new', Buffer.alloc(300_000), Date.now() - 700_000],
    ['large and new', Buffer.alloc(300_000), Date.now()],
    ['new', frame, Date.now()],
  ] as const)
    await store.commit('addEvent', [stream, body, 0, at]);
  await reopen();
  await eventually(() => expect([eventsOf('old'), eventsOf('large and not new')]).toEqual([[], []]));
  for (const stream of ['large and new', 'new']) expect(eventsOf(stream)).toHaveLength(1);
});

it('keeps the newest hundred thousand events, and gives no number twice', async () => {
  for (let n = 0; n < 101_500; n++) store.write('addEvent', ['many', frame, 0, Date.now()]);
  await store.flush();
  const last = newest();
  await reopen();
  await eventually(() => expect(eventsOf('many')[0]?.seq).toBe(last - 100_000 + 1), 20_000);
  await store.commit('addEvent', ['many', frame, 0, Date.now()]);
  expect(newest()).toBe(last + 1);
});

it('keeps no more than a thousand events of one standing stream, the newest', async () => {
  const options = {
    world: realWorld,
    store,
    seal: openSeal(dir.path),
    daemon: 'daemon',
    isAlive: () => true,
    maxStreams: 1,
    onTrouble: (error: unknown) => expect.fail(String(error)),
  };
  const streams = createStreams(options);
  streams.skip('s');
  const { stream } = streams.standing('s');
  for (let n = 0; n < 3_000; n++) streams.tell('s', frame);
  await store.flush();
  await eventually(() => expect(eventsOf(stream)[0]?.seq).toBe(2_001));
  expect(newest()).toBe(3_000);
  streams.close();
});
