// Messages on the bus that a client library would not send: whatever their lengths, headers and bodies, the daemon's own
// connection stays, and its outbox stays empty.

import fc from 'fast-check';
import { expect } from 'vitest';
import { chosenSeed } from '../chaos/random.ts';
import { message } from '../fuzz/arbitraries/bus.ts';
import { askControl } from '../support/control.ts';
import { fixture } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { rawNats } from '../support/raw-nats.ts';
import { over } from './bus-line.ts';
import { anywhere, ours, surface, type Target } from './kit.ts';

const bytes = (text: string) => Buffer.from(text, 'latin1');
const BLOCK = (...lines: string[]) => bytes(['NATS/1.0', ...lines, '', ''].join('\r\n'));
const MESSAGES = 4_000;

type Bus = { bus: { state: string; outbox: number; refused: number } };
const isClean = (target: Target) =>
  eventually(async () => {
    const { bus } = await askControl<Bus>(target.control, 'status');
    expect(bus).toMatchObject({ state: 'online', outbox: 0, refused: 0 });
  }, 10_000);

surface(
  'bus',
  {
    'long callers': anywhere(async ({ target, attempt }) => {
      await using stranger = await rawNats(target.nats.port, target.nats.token);
      for (const length of [201, 255, 1_000, 1_900])
        await attempt(`${length} characters`, async () => {
          const { code, error } = await over(target, `troupe.as.${'c'.repeat(length)}.call.asks.ask`, { body: '{}' });
          expect([code, error]).toEqual([expect.toSatisfy((each) => [400, 503].includes(each)), expect.anything()]);
        });
      for (const length of [2_000, 3_900, 3_990, 4_030, 4_050, 4_060])
        for (const tail of ['call.asks.ask', 'call.echo.echo', 'task.list', 'inbox', 'rpc.echo', 'subscribe.echo'])
          await attempt(`${length} characters, ${tail}`, async () => {
            const subject = bytes(`troupe.as.${'c'.repeat(length)}.${tail}`);
            stranger.publish({ subject, body: bytes('{}') });
            stranger.publish({ subject, headers: BLOCK('Troupe-Task: 1'), body: bytes('{}') });
            await stranger.flush();
            await over(target, 'troupe.task.list');
          });
      await attempt('nothing waits to be sent', () => isClean(target));
    }),

    'long replies': anywhere(async ({ target, attempt }) => {
      await using stranger = await rawNats(target.nats.port, target.nats.token);
      const blocks = [
        undefined,
        BLOCK('Troupe-Stream: 1'),
        BLOCK('Troupe-Accept: chunk,object'),
        BLOCK('Troupe-Task: 1'),
      ];
      for (const length of [900, 1_017, 1_018, 2_000, 3_900, 4_000, 4_040])
        for (const headers of blocks)
          for (const subject of ['troupe.call.echo.echo', 'troupe.inbox', 'troupe.task.list', 'troupe.rpc.echo'])
            await attempt(`${length} characters, ${subject}`, async () => {
              const reply = bytes(`_INBOX.${'r'.repeat(length)}`);
              stranger.publish({ subject: bytes(subject), reply, ...(headers && { headers }), body: bytes('{}') });
              await stranger.flush();
              await over(target, 'troupe.task.list');
            });
      await attempt('nothing waits to be sent', () => isClean(target));
    }),

    'garbage headers': anywhere(async ({ target, attempt }) => {
      await using stranger = await rawNats(target.nats.port, target.nats.token);
      const samples = fc.sample(message(['echo', 'asks']), { numRuns: MESSAGES, seed: chosenSeed() });
      for (let at = 0; at < samples.length; at += 100)
        await attempt(`messages ${at} to ${at + 100} of seed ${chosenSeed()}`, async () => {
          for (const each of samples.slice(at, at + 100)) stranger.publish(each);
          await stranger.flush();
          await over(target, 'troupe.task.list');
        });
      await attempt('nothing waits to be sent', () => isClean(target));
    }, 120),

    'foreign objects': ours(async ({ target, attempt }) => {
      const { connection } = target.nats;
      const store = connection.jetstream().views;
      const [blobs, other] = [await store.os('troupe_blobs'), await store.os('others')];
      await other.putBlob({ name: 'secret' }, bytes('{"message":"secret"}'));
      await blobs.link('link', (await other.info('secret')) as never);
      await blobs.putBlob({ name: 'no-json' }, Buffer.alloc(1_000, 0xff));
      await blobs.putBlob({ name: 'deep' }, bytes('['.repeat(1_000_000)));
      const names = [
        ...['others/secret', 'troupe_blobs/link', 'troupe_blobs/no-json', 'troupe_blobs/deep', 'troupe_blobs/absent'],
        ...['troupe_blobs/', '/secret', 'troupe_blobs', ' ', '../others/secret', 'troupe_blobs/../others/secret'],
        ...['troupe_blobs/*', 'troupe_blobs/>', `troupe_blobs/${'x'.repeat(129)}`, `troupe_blobs/${'x'.repeat(4_000)}`],
        ...[
          'TROUPE_BLOBS/no-json',
          'OBJ_others/secret',
          'troupe_blobs/no-json/x',
          'troupe_blobs//no-json',
          '$O.others.x',
        ],
      ];
      for (const name of names)
        await attempt(name.slice(0, 40), async () => {
          const headers = { 'Troupe-Object': name };
          const { code, text } = await over(target, 'troupe.call.echo.echo', { headers, timeout: 20_000 });
          expect([text.includes('secret"'), code]).toEqual([
            false,
            expect.toSatisfy((each) => [400, 404, 413].includes(each)),
          ]);
        });
      await attempt('a body beside an object', async () => {
        const asked = { headers: { 'Troupe-Object': 'troupe_blobs/no-json' }, body: '{"message":"both"}' };
        expect((await over(target, 'troupe.call.echo.echo', asked)).code).toBe(400);
      });
    }),
  },
  { servers: { asks: fixture('asks') } },
);
