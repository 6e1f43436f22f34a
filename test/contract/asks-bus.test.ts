import { headers, type Msg } from 'nats';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { TroupeError } from '../../src/protocol/failures.ts';
import { form, rung, service, subscriptionsOf } from '../support/answerers.ts';
import { eventually } from '../support/eventually.ts';
import { natsServer, type TestServer } from '../support/nats.ts';

let nats: TestServer;
beforeAll(async () => {
  nats = await natsServer({ maxPayload: 64 * 1024 });
});
afterAll(() => nats[Symbol.asyncDispose]());

const isOver = (asking: Promise<void>) => asking.then(() => true);

describe('a service', () => {
  test('is asked what the inbox shows, and its content arrives byte for byte', async () => {
    await using it = await rung(nats);
    await using who = await service(nats, [
      '{"action":"accept", "content" : {"n": 12345678901234567890,  "é":"\\u0041"}}',
    ]);
    const view = form();
    await it.ask(view);
    const { waitsOn: _, ...asked } = view;
    expect(who.asked).toEqual([asked]);
    expect(it.given).toEqual([
      { reply: expect.objectContaining({ action: 'accept' }), content: '{"n": 12345678901234567890,  "é":"\\u0041"}' },
    ]);
    expect(subscriptionsOf(it.nc)).toBe(0);
  });

  test.each([
    ['{"action":"decline"}', { action: 'decline' }],
    ['{"action":"cancel"}', { action: 'cancel' }],
    ['{"action":"accept"}', { action: 'accept' }],
  ])('may say %s', async (said, reply) => {
    await using it = await rung(nats);
    await using _ = await service(nats, [said]);
    await it.ask();
    expect(it.given.map((each) => each.reply)).toEqual([reply]);
  });

  test('answers sampling with an action, or with the message alone', async () => {
    const message = '{"role":"assistant","model":"m","content":{"type":"text","text":"hi"}}';
    const view = form({ kind: 'sampling', request: { messages: [], maxTokens: 1 } });
    for (const said of [message, `{"action":"accept","content":${message}}`]) {
      await using it = await rung(nats);
      await using _ = await service(nats, [said]);
      await it.ask(view);
      expect(it.given.map(({ content }) => content)).toEqual([message]);
    }
  });

  test.each([
    ['nothing', ''],
    ['that it passes', '{"action":"pass"}'],
    ['that it failed', (msg: Msg) => void msg.respond('{"password":"hunter2"}', { headers: failed('hunter2') })],
  ])('that says %s lets the question go on', async (_, said) => {
    await using it = await rung(nats);
    await using who = await service(nats, [said]);
    await it.ask();
    expect([who.asked.length, it.given]).toEqual([1, []]);
    expect(it.troubles.join()).not.toContain('hunter2');
    expect(it.troubles).toEqual(typeof said === 'string' ? [] : [expect.stringContaining('a-form of gh failed (503)')]);
  });

  test('that is not there lets the question go on at once', async () => {
    await using it = await rung(nats);
    await using _ = await service(nats, ['{"action":"accept"}'], 'troupe.ask.bob.>');
    await it.ask();
    expect([it.given, it.troubles, subscriptionsOf(it.nc)]).toEqual([[], [], 0]);
  });

  test('that is silent is given its time, and may still answer until the question ends', async () => {
    const held: Msg[] = [];
    await using it = await rung(nats, async () => undefined, 30);
    await using _ = await service(nats, [(msg) => void held.push(msg)]);
    await it.ask();
    expect(it.given).toEqual([]);
    held[0]?.respond('{"action":"decline"}');
    await eventually(() => expect(it.given).toHaveLength(1));
  });

  test('that answers when the question has ended is not heard', async () => {
    const held: Msg[] = [];
    await using it = await rung(nats);
    await using who = await service(nats, [(msg) => void held.push(msg)]);
    const asking = isOver(it.ask());
    await eventually(() => expect(held).toHaveLength(1));
    it.over.abort();
    expect(await asking).toBe(true);
    await eventually(() => expect(subscriptionsOf(it.nc)).toBe(0));
    await it.nc.flush(); // the broker knows it too
    await expect(who.nc.request(held[0]?.reply ?? '', '{"action":"decline"}')).rejects.toThrow('503');
    expect(it.given).toEqual([]);
  });
});

const failed = (message: string) => {
  const all = headers();
  all.set('Nats-Service-Error', message);
  all.set('Nats-Service-Error-Code', '503');
  return all;
};

describe('an answer that cannot stand', () => {
  test('goes back to the service with the field named, until one stands', async () => {
    await using it = await rung(nats, async ({ content }) =>
      content === '{"name":1}' ? 'name must be text' : undefined,
    );
    await using who = await service(nats, [
      '{"action":"accept","content":{"name":1}}',
      '{"action":"accept","content":{}}',
    ]);
    await it.ask();
    expect(who.asked.map(({ error }) => error)).toEqual([undefined, 'name must be text']);
    expect(who.asked[1]).toMatchObject({ id: 'a-form', message: 'Who are you?' });
    expect(it.given).toHaveLength(2);
  });

  test.each([
    ['no JSON', 'yes please', 'JSON object'],
    ['cut short', '{"action":"accept","content":{"a":', 'JSON object'],
    ['an array', '[1]', 'JSON object'],
    ['too deep', `{"action":"accept","content":${'['.repeat(500)}${']'.repeat(500)}}`, 'JSON object'],
    ['without an action', '{"content":{}}', 'action must be'],
    ['another action', '{"action":"approve"}', 'action must be'],
    ['two actions', '{"action":"accept","action":"decline"}', 'action must be'],
    ['two contents', '{"action":"accept","content":{},"content":{}}', 'given twice'],
    ['a message to a form', '{"role":"assistant","content":{}}', 'action must be'],
  ])('may be %s: it is asked for three times, then left to others', async (_, said, why) => {
    await using it = await rung(nats);
    await using who = await service(nats, [said]);
    await it.ask();
    expect(who.asked.map(({ error }) => error)).toEqual([undefined, ...Array(2).fill(expect.stringContaining(why))]);
    expect([it.given, it.troubles]).toEqual([[], [expect.stringContaining('the elicitation a-form of gh')]]);
  });

  test('does not keep another service from answering', async () => {
    const held: Msg[] = [];
    await using it = await rung(nats);
    await using _ = await service(nats, ['garbage']);
    await using __ = await service(nats, [(msg) => void held.push(msg)], 'troupe.ask.alice.elicitation.gh', 'people');
    await it.ask();
    await eventually(() => held.length > 0);
    held[0]?.respond('{"action":"decline"}');
    await eventually(() => expect(it.given).toHaveLength(1));
  });

  test('because somebody was quicker ends the matter', async () => {
    await using it = await rung(nats, () =>
      Promise.reject(new TroupeError('answered', 'already answered by the host')),
    );
    await using who = await service(nats, ['{"action":"decline"}']);
    await it.ask();
    expect([who.asked.length, it.troubles, subscriptionsOf(it.nc)]).toEqual([1, [], 0]);
  });
});
