import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { connect, type NatsConnection } from 'nats';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { AskView, Inbox, Reply } from '../../src/asks/ask.ts';
import { createAnswerers } from '../../src/asks/bus.ts';
import { createEvents } from '../../src/bus/events.ts';
import { outbox } from '../../src/bus/outbox.ts';
import { subjects } from '../../src/bus/subjects.ts';
import { serveAsks } from '../../src/doors/nats/asks.ts';
import { createResponder } from '../../src/doors/nats/responder.ts';
import { openStore, type Store } from '../../src/store/store.ts';
import { realWorld } from '../../src/world/world.ts';
import { eventually } from '../support/eventually.ts';
import { freePort, natsBinary } from '../support/nats.ts';
import { type Scratch, scratch } from '../support/scratch.ts';

/** Exactly what docs/SUBJECTS.md says that each of them needs. */
const PERMISSIONS = {
  daemon: {
    subscribe: [
      ...['troupe.answer.*', 'troupe.inbox', 'troupe.as.*.answer.*', 'troupe.as.*.inbox'],
      ...['troupe.node.host.answer.*', 'troupe.node.host.inbox', '_INBOX.>'],
    ],
    publish: ['troupe.ask.>', 'troupe.as.*.ev.>', '_INBOX.>', '_INBOX_alice.>'],
  },
  service: {
    subscribe: ['troupe.ask.alice.> answer'],
    publish: { deny: ['>'] },
    allow_responses: { max: 1, expires: '1m' },
  },
  console: {
    subscribe: ['_INBOX_alice.>', 'troupe.as.alice.ev.*.ask.*'],
    publish: ['troupe.as.alice.inbox', 'troupe.as.alice.answer.*'],
  },
};

const subject = subjects('troupe');
const ask = (principal: string): AskView => ({
  id: `of-${principal}`,
  kind: 'elicitation',
  mode: 'form',
  stage: 'answer',
  server: 'gh',
  tool: 'greet',
  principal,
  message: 'What is your secret?',
  schema: {},
  openedAt: 1,
  expiresAt: Date.now() + 60_000,
  waitsOn: 'inbox',
});

const connections: NatsConnection[] = [];
let directory: Scratch;
let store: Store;
let url: string;
let stop: () => Promise<void>;

async function as(user: string, inboxPrefix?: string): Promise<NatsConnection> {
  const options = { servers: url, user, pass: user, noAsyncTraces: true, ...(inboxPrefix && { inboxPrefix }) };
  const nc = await connect(options);
  connections.push(nc);
  return nc;
}

beforeAll(async () => {
  directory = await scratch();
  store = await openStore(directory.path, { ballastBytes: 0 });
  const port = await freePort();
  url = `127.0.0.1:${port}`;
  const users = Object.entries(PERMISSIONS).map(([user, permissions]) => ({ user, password: user, permissions }));
  const file = join(directory.path, 'nats.conf');
  await writeFile(file, JSON.stringify({ listen: url, authorization: { users } }));
  const child = spawn((await natsBinary()).path, ['-c', file], { stdio: 'ignore' });
  stop = async () => {
    const gone = once(child, 'exit');
    child.kill('SIGKILL');
    await gone;
  };
  await eventually(() => as('daemon'));
});
afterAll(async () => {
  await Promise.all(connections.map((each) => each.close()));
  await stop();
  await store.close();
  await directory[Symbol.asyncDispose]();
});

test('a service may answer the questions to its caller, also when asked again, and hears of no other', async () => {
  const [daemon, service] = [await as('daemon'), await as('service')];
  const heard: string[] = [];
  const callback = (_: unknown, msg: { string(): string; respond(data: string): boolean }) => {
    heard.push(msg.string());
    msg.respond(heard.length === 1 ? 'garbage' : '{"action":"decline"}');
  };
  const refused: unknown[] = [];
  const denied = (error: unknown) => void (error && refused.push(error));
  service.subscribe('troupe.ask.alice.>', { queue: 'answer', callback });
  service.subscribe('troupe.ask.bob.>', { queue: 'answer', callback: denied });
  service.subscribe('troupe.as.alice.ev.>', { callback: denied });
  await service.flush();
  await eventually(() => expect(refused).toHaveLength(2));

  const answerers = createAnswerers({
    subjects: subject,
    settings: () => ({ answererMs: 60_000 }),
    world: realWorld,
    onTrouble: denied,
  });
  answerers.online(daemon);
  const given: Reply[] = [];
  const accept = async (reply: Reply) => void given.push(reply);
  await answerers.ask(ask('alice'), new AbortController().signal, accept);
  await answerers.ask(ask('bob'), new AbortController().signal, accept); // nobody there: at once
  expect(given).toEqual([{ action: 'decline' }]);
  expect(heard.map((text) => JSON.parse(text).principal)).toEqual(['alice', 'alice']);
});

test('a console sees when to look, looks and answers; what it is told has nothing of what was asked or said', async () => {
  const [daemon, console] = [await as('daemon'), await as('console', '_INBOX_alice')];
  const answered: string[] = [];
  const inbox = {
    list: (principal?: string) => [ask('alice'), ask('bob')].filter((each) => each.principal === principal),
    answer: async (id: string) => {
      answered.push(id);
      return 'accepted' as const;
    },
  };
  const door = createResponder({ nc: daemon, onTrouble: () => {} });
  serveAsks(door, {
    subjects: subject,
    daemon: 'host',
    family: 'f',
    ports: { inbox: inbox as Partial<Inbox> as Inbox },
  });
  await daemon.flush();

  const rows = async () => store.all<{ subject: string; payload: Buffer }>('outbox', [10]);
  const events = createEvents(subject, outbox(store), () => {});
  const told = {
    ...ask('alice'),
    arguments: { password: 'hunter2' },
    request: { messages: [] },
    url: 'https://x.test',
  };
  events.askOpened(told);
  events.askClosed({ ...told, outcome: 'accepted', by: 'the host' });
  await eventually(async () => expect(await rows()).toHaveLength(2)); // no bus yet: they lie in a table, in clear
  expect(JSON.stringify((await rows()).map(({ payload }) => payload.toString()))).not.toMatch(/secret|hunter2|x\.test/);

  const heard: unknown[] = [];
  console.subscribe('troupe.as.alice.ev.*.ask.*', {
    callback: (_, msg) => void heard.push([msg.subject, msg.json(), msg.headers?.has('Nats-Msg-Id')]),
  });
  await console.flush();
  events.online(daemon);
  const { openedAt, expiresAt } = told;
  const opened = { id: 'of-alice', kind: 'elicitation', server: 'gh', tool: 'greet', openedAt, expiresAt };
  const closed = { ...opened, outcome: 'accepted', by: 'the host', at: expect.any(Number) };
  await eventually(() =>
    expect(heard).toEqual([
      ['troupe.as.alice.ev.gh.ask.opened', opened, true],
      ['troupe.as.alice.ev.gh.ask.closed', closed, true],
    ]),
  );

  const listed = await console.request('troupe.as.alice.inbox', '', { timeout: 5_000 });
  expect(listed.json<AskView[]>().map(({ id }) => id)).toEqual(['of-alice']);
  const reply = await console.request('troupe.as.alice.answer.of-alice', '{"action":"accept"}', { timeout: 5_000 });
  expect(reply.json()).toEqual({ id: 'of-alice', outcome: 'accepted' });
  for (const forbidden of ['troupe.inbox', 'troupe.as.bob.inbox', 'troupe.answer.of-bob'])
    await expect(console.request(forbidden, '', { timeout: 5_000 })).rejects.toThrow(/permission/i);
  expect(answered).toEqual(['of-alice']);
  await door.close();
});
