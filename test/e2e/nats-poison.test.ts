// Whatever a stranger sends on the bus, the daemon's own connection to it stays, and others are served meanwhile.

import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { message } from '../fuzz/arbitraries/bus.ts';
import { type Daemon, daemon, fixture, replyOf } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { natsServer, type TestServer } from '../support/nats.ts';
import { type RawNats, rawNats } from '../support/raw-nats.ts';

let nats: TestServer;
let d: Daemon;
let stranger: RawNats;

beforeAll(async () => {
  nats = await natsServer({ jetstream: true, monitored: true });
  const servers = { echo: fixture('echo'), asks: fixture('asks') };
  d = await daemon({ servers, env: { NATS_URL: nats.url } });
  stranger = await rawNats(nats.port);
}, 60_000);
afterAll(async () => {
  await stranger?.[Symbol.asyncDispose]();
  await d?.[Symbol.asyncDispose]();
  await nats?.[Symbol.asyncDispose]();
});

/** The daemon's connection; another one means that the broker, or the daemon, has cut it. */
const connection = async () =>
  (await nats.connections()).filter(({ name }) => name?.startsWith('troupe ')).map(({ cid }) => cid);

async function neighbourIsServed(): Promise<void> {
  const { data } = await d.request('troupe.call.echo.echo', { message: 'neighbour' }, { timeout: 5_000 });
  expect(data.content[0].text).toContain('neighbour');
}

const bytes = (text: string) => Buffer.from(text);

test('a caller with a name of 4,000 characters hears that it is too long, and nobody else notices', async () => {
  const before = await connection();
  const nc = await d.nats();
  const long = await nc.request(`troupe.as.${'c'.repeat(1_900)}.call.asks.ask`, '{}', { timeout: 5_000 });
  expect([replyOf(long).code, replyOf(long).error]).toEqual([400, expect.stringContaining('more than 200 characters')]);
  // The line just fits; that of an event of this caller's process would not.
  stranger.publish({ subject: bytes(`troupe.as.${'c'.repeat(4_060)}.call.asks.ask`), body: bytes('{}') });
  await stranger.flush();
  expect(stranger.cuts).toBe(0);
  await neighbourIsServed();
  const healthy = { state: 'online', outbox: 0, refused: 0 };
  await eventually(async () => expect((await d.status()).bus).toMatchObject(healthy));
  expect(await connection()).toEqual(before);
});

test('a stream to a reply subject of 4,000 characters is not begun', async () => {
  const before = await connection();
  const stream = bytes('NATS/1.0\r\nTroupe-Stream: 1\r\n\r\n');
  const [subject, reply] = [bytes('troupe.call.echo.echo'), bytes(`_INBOX.${'r'.repeat(4_040)}`)];
  const { calls } = await d.server('echo');
  stranger.publish({ subject, reply, headers: stream, body: bytes('{"message":"x"}') });
  await stranger.flush();
  await neighbourIsServed();
  expect((await d.server('echo')).calls).toBe(calls + 1);
  expect(await connection()).toEqual(before);
});

test('any messages: the connection is never cut, and a neighbour is answered all the while', async () => {
  const before = await connection();
  expect(before).toHaveLength(1);
  await fc.assert(
    fc.asyncProperty(fc.array(message(['echo', 'asks']), { minLength: 1, maxLength: 20 }), async (messages) => {
      for (const each of messages) stranger.publish(each);
      await stranger.flush();
      expect(stranger.cuts).toBe(0); // or the rest of them would not have reached the daemon
      await neighbourIsServed();
      expect(await connection()).toEqual(before);
    }),
    { numRuns: 100, interruptAfterTimeLimit: 5_000, endOnFailure: true },
  );
  await eventually(async () => expect((await d.status()).bus).toMatchObject({ state: 'online', outbox: 0 }));
  expect(await connection()).toEqual(before);
});

test('a daemon whose outbox was poisoned by an earlier version, or that finds rows of a later one, is healthy from its next start on', async () => {
  await d.down();
  const db = new Sqlite(join(d.state, 'database/troupe.db'));
  const row = db.prepare('INSERT INTO outbox (subject, message_id, payload, created_at) VALUES (?, ?, ?, ?)');
  row.run(`troupe.as.${'c'.repeat(4_050)}.ev.asks.state.ready`, 'poison', bytes('{}'), Date.now());
  // A question of a kind that only a later version knows, which its daemon left open.
  db.prepare(
    `INSERT INTO asks (id, kind, server, tool, principal, daemon, status, stage, opened_at, expires_at)
     VALUES ('later', 'oracle', 'asks', 'ask', '_', 'gone', 'open', 'answer', -9007199254740992, 0)`,
  ).run();
  db.close();
  await d.start();
  await eventually(async () => expect((await d.status()).bus).toMatchObject({ outbox: 0, refused: 1 }));
  const before = await connection();
  await neighbourIsServed();
  expect((await d.cli('status')).stdout).toContain('1 event put aside that could not be sent');
  expect(await connection()).toEqual(before);
});
