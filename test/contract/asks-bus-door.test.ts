import { setTimeout as wait } from 'node:timers/promises';
import { createInbox, type Msg, type NatsConnection } from 'nats';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Answerer, AskView, Inbox, Reply } from '../../src/asks/ask.ts';
import { subjects } from '../../src/bus/subjects.ts';
import { serveAsks } from '../../src/doors/nats/asks.ts';
import { createResponder } from '../../src/doors/nats/responder.ts';
import { TroupeError } from '../../src/protocol/failures.ts';
import { eventually } from '../support/eventually.ts';
import { natsServer, type TestServer } from '../support/nats.ts';

let nats: TestServer;
let client: NatsConnection;
beforeAll(async () => {
  nats = await natsServer({ maxPayload: 16 * 1024 });
  client = await nats.connect();
});
afterAll(() => nats[Symbol.asyncDispose]());

let opened = 1_000;
const question = (id: string, principal = '_', change: Partial<AskView> = {}): AskView => ({
  id,
  principal,
  kind: 'elicitation',
  mode: 'form',
  stage: 'answer',
  server: 'gh',
  tool: 'ask',
  message: 'Who?',
  schema: { type: 'object' },
  openedAt: opened++,
  expiresAt: 9_000,
  waitsOn: 'inbox',
  ...change,
});

type Said = { id: string; reply: Reply; content: string | undefined; answerer: Answerer };

/** The contract of the inbox, in memory: a form whose `name` is no text is refused, an answered one stays known. */
function littleInbox(asks: AskView[]) {
  const said: Said[] = [];
  const inbox: Pick<Inbox, 'list' | 'answer'> = {
    list: (principal) => asks.filter((ask) => ask.principal === principal && !said.some(({ id }) => id === ask.id)),
    async answer(id, reply, answerer) {
      const ask = asks.find((each) => each.id === id);
      if (ask?.principal !== answerer.principal)
        throw new TroupeError('unknownName', ask ? `it is of ${ask.principal}` : 'there is none');
      await wait(50); // a disk and a validator take a moment, and a quick "unknown" elsewhere must not win
      const earlier = said.find((each) => each.id === id);
      if (earlier) throw new TroupeError('answered', `already answered by ${earlier.answerer.by}`);
      const content = 'content' in reply ? reply.content?.toString() : undefined;
      if (content === '{"name":1}') throw new TroupeError('invalid', 'name must be text');
      said.push({ id, reply, content, answerer });
      return reply.action === 'accept' ? 'accepted' : 'declined';
    },
  };
  return { inbox, said };
}

async function door(asks: AskView[], { family = 'f1', daemon = 'host-1' } = {}) {
  const nc = await nats.connect();
  const little = littleInbox(asks);
  const troubles: string[] = [];
  const onTrouble = (why: unknown) => void troubles.push(String(why));
  const open = createResponder({ nc, onTrouble });
  const inbox = little.inbox as Inbox;
  serveAsks(open, { subjects: subjects('troupe'), daemon, family, ports: { inbox } });
  await nc.flush();
  const dispose = async () => {
    await open.close();
    await nc.close();
  };
  return { ...little, open, troubles, [Symbol.asyncDispose]: dispose };
}

const request = async (subject: string, body = '') => {
  const msg = await client.request(subject, body, { timeout: 5_000 });
  const code = Number(msg.headers?.get('Nats-Service-Error-Code')) || undefined;
  return { code, error: msg.headers?.get('Nats-Service-Error'), data: msg.json<any>(), msg };
};

describe('an answer', () => {
  test('is passed on with its bytes and whose it is, and hears how the question ended', async () => {
    await using it = await door([question('one'), question('two', 'al.ice'), question('three')]);
    const yes = '{"action":"accept","content":{"n":1e2, "m":12345678901234567890}}';
    expect((await request('troupe.answer.one', yes)).data).toEqual({ id: 'one', outcome: 'accepted' });
    const no = await request('troupe.as.al=2Eice.answer.two', '{"action":"decline"}');
    expect(no.data).toEqual({ id: 'two', outcome: 'declined' });
    expect((await request('troupe.node.host-1.answer.three', yes)).data.outcome).toBe('accepted');
    expect(it.said.map(({ id, content, answerer }) => [id, content, answerer.principal])).toEqual([
      ['one', '{"n":1e2, "m":12345678901234567890}', '_'],
      ['two', undefined, 'al.ice'],
      ['three', '{"n":1e2, "m":12345678901234567890}', '_'],
    ]);
  });

  test('to a question that was answered hears who was quicker', async () => {
    await using _ = await door([question('one')]);
    await request('troupe.answer.one', '{"action":"decline"}');
    const late = await request('troupe.answer.one', '{"action":"decline"}');
    expect([late.code, late.error]).toEqual([409, 'already answered by a client on NATS']);
    expect(late.data).toMatchObject({ code: -32016, data: { troupe: { code: 'answered' } } });
  });

  test.each([
    ['a wrong field', '{"action":"accept","content":{"name":1}}', 'name must be text'],
    ['no JSON', 'yes', 'JSON object'],
    ['nothing', '', 'JSON object'],
    ['a stage that is no text', '{"action":"decline","stage":1}', 'stage must be a text'],
    ['two stages', '{"action":"decline","stage":"done","stage":"answer"}', 'stage must be a text'],
    ['a pass', '{"action":"pass"}', 'action must be accept, decline or cancel'],
    ['a message to a form', '{"role":"assistant","content":{"type":"text","text":"x"}}', 'action must be'],
  ])('of %s is refused with the reason, and the question stays open', async (_, body, why) => {
    await using it = await door([question('one')]);
    const refused = await request('troupe.answer.one', body);
    expect([refused.code, refused.error]).toEqual([400, expect.stringContaining(why)]);
    expect(it.said).toEqual([]);
    expect((await request('troupe.inbox')).data).toHaveLength(1);
  });

  test('to sampling may be the message alone', async () => {
    await using it = await door([question('one', '_', { kind: 'sampling' })]);
    const message = '{"role":"assistant","model":"m","content":{"type":"text","text":"x"}}';
    expect((await request('troupe.answer.one', message)).data.outcome).toBe('accepted');
    expect(it.said[0]?.content).toBe(message);
  });

  test('says which stage it is for, where that is not the question itself', async () => {
    await using it = await door([question('one', '_', { kind: 'sampling', stage: 'request' }), question('two')]);
    const edited = '{"action":"accept","stage":"request","content":{"stage":"x", "messages":[]}}';
    expect((await request('troupe.answer.one', edited)).data.outcome).toBe('accepted');
    expect((await request('troupe.answer.two', '{"action":"decline"}')).data.outcome).toBe('declined');
    const by = { by: 'a client on NATS', principal: '_' };
    expect(it.said.map(({ answerer }) => answerer)).toEqual([{ ...by, stage: 'request' }, by]);
    expect(it.said[0]?.content).toBe('{"stage":"x", "messages":[]}');
  });

  test('to the question of another is answered like one to no question at all', async () => {
    await using it = await door([question('mine', 'alice'), question('bare')]);
    const yes = '{"action":"accept"}';
    const message = '{"role":"assistant","content":{}}';
    for (const body of [yes, message]) {
      const [bob, none, bare, owner] = await Promise.all([
        request('troupe.as.bob.answer.mine', body),
        request('troupe.as.bob.answer.none', body),
        request('troupe.answer.mine', body),
        request('troupe.as.alice.answer.bare', body),
      ]);
      for (const each of [bob, none, bare, owner]) expect(each.code).toBe(404);
      expect(bob.msg.string()).toBe(none.msg.string().replaceAll('none', 'mine'));
      expect(bob.error).toBe(none.error?.replaceAll('none', 'mine'));
    }
    expect(it.said).toEqual([]);
  });

  test('is served once in a family, and by the state directory that has the question', async () => {
    const asks = [question('one')];
    await using first = await door(asks, { family: 'f1' });
    await using second = await door(asks, { family: 'f1' });
    await using _ = await door([], { family: 'f2', daemon: 'host-2' });
    await using __ = await door([], { family: 'f3', daemon: 'host-3' });
    const replies: Msg[] = [];
    const inbox = createInbox();
    client.subscribe(inbox, { callback: (_, msg) => void replies.push(msg) });
    client.publish('troupe.answer.one', '{"action":"decline"}', { reply: inbox });
    await eventually(() => expect(replies).toHaveLength(3));
    expect(replies[0]?.json()).toEqual({ id: 'one', outcome: 'declined' });
    expect(replies.slice(1).map((msg) => msg.headers?.get('Nats-Service-Error-Code'))).toEqual(['404', '404']);
    expect(first.said.length + second.said.length).toBe(1);
  });

  test('is dropped if it wants its reply anywhere but in an inbox', async () => {
    await using it = await door([question('one'), question('two')]);
    const heard: string[] = [];
    client.subscribe('troupe.call.gh.drop', { callback: (_, msg) => void heard.push(msg.string()) });
    for (const subject of ['troupe.answer.one', 'troupe.inbox'])
      client.publish(subject, '{"action":"decline"}', { reply: 'troupe.call.gh.drop' });
    client.publish('troupe.answer.two', '{"action":"decline"}'); // no reply subject: served, and nobody hears of it
    await eventually(() => expect(it.said.map(({ id }) => id)).toEqual(['two']));
    await client.flush();
    expect(heard).toEqual([]);
  });

  test('that nobody knows is told so before the door is closed', async () => {
    const it = await door([]);
    const asked = request('troupe.answer.none', '{"action":"decline"}');
    await client.flush();
    await eventually(async () => expect((await request('troupe.inbox')).data).toEqual([]));
    await it[Symbol.asyncDispose]();
    expect((await asked).code).toBe(404);
    expect(it.troubles).toEqual([]);
  });
});

describe('the inbox', () => {
  test('has the open questions of its caller, as they are', async () => {
    const [bare, alice] = [question('one'), question('two', 'alice')];
    await using _ = await door([bare, alice]);
    expect((await request('troupe.inbox')).data).toEqual([bare]);
    expect((await request('troupe.node.host-1.inbox')).data).toEqual([bare]);
    expect((await request('troupe.as.alice.inbox')).data).toEqual([alice]);
    expect((await request('troupe.as.bob.inbox')).data).toEqual([]);
    expect((await request('troupe.inbox', '{"id":"two"}')).data).toEqual([]);
  });

  test('loses the details of the largest before it loses a question, and says so', async () => {
    const schema = { type: 'object', description: 'x'.repeat(10_000) };
    const [small, large] = [question('small'), question('large', '_', { schema })];
    await using _ = await door([small, large, question('other', '_', { schema: { ...schema, n: 1 } })]);
    const { data, msg } = await request('troupe.inbox');
    expect(data).toEqual([
      small,
      expect.objectContaining({ id: 'large', schema }),
      expect.objectContaining({ cut: ['schema'] }),
    ]);
    expect(msg.headers?.get('Troupe-Next') ?? '').toBe('');
    expect((await request('troupe.inbox', '{"id":"other"}')).data[0].schema.n).toBe(1);
  });

  test('has pages when even so it does not fit, and none is lost or told twice', async () => {
    const asks = Array.from({ length: 300 }, (_, n) =>
      question(`q-${1_000 + n}`, '_', { message: 'm'.repeat(250), openedAt: 5_000 + Math.floor(n / 40) }),
    );
    await using it = await door(asks);
    const [seen, sizes]: [string[], number[]] = [[], []];
    for (let cursor: string | undefined = ''; cursor !== undefined; ) {
      const page = await request('troupe.inbox', cursor ? JSON.stringify({ cursor }) : '');
      seen.push(...page.data.map(({ id }: AskView) => id));
      sizes.push(page.data.length);
      cursor = page.msg.headers?.get('Troupe-Next') || undefined;
      // The place holds although the question it was made of is gone.
      if (cursor && sizes.length === 2) await request(`troupe.answer.${seen.at(-1)}`, '{"action":"decline"}');
    }
    expect(seen).toEqual(asks.map(({ id }) => id));
    expect(sizes.length).toBeGreaterThan(3);
    expect((await request('troupe.inbox', '{"cursor":"x"}')).code).toBe(400);
    expect((await request('troupe.inbox', '[]')).code).toBe(400);
    expect(it.troubles).toEqual([]);
  });
});
