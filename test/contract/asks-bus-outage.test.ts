import type { Msg } from 'nats';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { form, rung, service } from '../support/answerers.ts';
import { eventually } from '../support/eventually.ts';
import { natsServer, type TestServer } from '../support/nats.ts';

let nats: TestServer;
beforeAll(async () => {
  nats = await natsServer({ maxPayload: 64 * 1024 });
});
afterAll(() => nats[Symbol.asyncDispose]());

const isOver = (asking: Promise<void>) => asking.then(() => true);

describe('the bus', () => {
  test('that is away is passed over', async () => {
    await using it = await rung(nats);
    await using who = await service(nats, [() => {}]);
    const asking = isOver(it.ask());
    await eventually(() => expect(who.asked).toHaveLength(1));
    it.answerers.offline();
    expect(await asking).toBe(true);
    await it.ask();
    expect(who.asked).toHaveLength(1);
  });

  test('that has died is not waited for', async () => {
    await using gone = await natsServer();
    await using it = await rung(gone);
    const held: Msg[] = [];
    const other = await gone.connect();
    other.subscribe('troupe.ask.>', { callback: (_, msg) => void held.push(msg) });
    await other.flush();
    await gone.kill();
    const first = isOver(it.ask());
    await eventually(() => expect(it.nc.flush()).rejects.toThrow());
    await it.ask();
    expect([await first, held, it.given]).toEqual([true, [], []]);
  });

  test('is not given a question that it cannot carry', async () => {
    await using it = await rung(nats);
    await using who = await service(nats, ['{"action":"decline"}']);
    await it.ask(form({ kind: 'sampling', request: { image: 'x'.repeat(80_000) } }));
    expect([who.asked, it.given]).toEqual([[], []]);
    expect(it.troubles).toEqual([expect.stringMatching(/sampling a-form of gh has 80\d\d\d bytes/)]);
  });

  test('hears of a question only under its caller, kind and server', async () => {
    await using it = await rung(nats);
    await using who = await service(nats, ['{"action":"decline"}'], 'troupe.ask.>');
    await using bob = await service(nats, ['{"action":"decline"}'], 'troupe.ask.bob.>', 'bob');
    await it.ask(form({ principal: 'a.b', server: 'x' }));
    await it.ask(form({ principal: '_', kind: 'approval' }));
    expect([who.asked.length, bob.asked.length]).toEqual([2, 0]);
  });
});
