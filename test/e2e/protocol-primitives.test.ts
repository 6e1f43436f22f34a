// Resources, templates, prompts, completion, subscriptions, lists that change and log messages, over NATS; and what an
// allow list leaves of a server.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Daemon, daemon, fixture } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';

const A = 'memo://a';
let d: Daemon;

beforeAll(async () => {
  d = await daemon({
    servers: {
      memo: fixture('resources', { logLevel: 'notice' }),
      partial: fixture('resources', { tools: { allow: ['echo', 'co*', 'to*'], deny: ['*uch'] } }),
    },
  });
  await eventually(async () => (await d.server('memo')).tools > 0);
});
afterAll(() => d[Symbol.asyncDispose]());

const counters = async () => (await d.request('troupe.call.memo.counters')).data.structuredContent.value;
const as = (subscriber: string) => ({ headers: { 'Troupe-Subscriber': subscriber } });

/** Collects the events of a subject from now on. */
async function events(subject: string): Promise<{ subject: string; body: any }[]> {
  const nc = await d.nats();
  const heard: { subject: string; body: any }[] = [];
  nc.subscribe(subject, { callback: (_, msg) => heard.push({ subject: msg.subject, body: msg.json() }) });
  await nc.flush();
  return heard;
}

test('lists, reads, prompts and completes as the server does', async () => {
  const list = async (kind: string) => (await d.request(`troupe.list.memo.${kind}`)).data;
  expect((await list('resources')).resources.map(({ uri }: any) => uri)).toEqual([A, 'memo://b']);
  expect((await list('templates')).resourceTemplates).toEqual([{ uriTemplate: 'memo://{name}', name: 'memo' }]);
  expect((await list('prompts')).prompts).toMatchObject([{ name: 'greet', arguments: [{ name: 'who' }] }]);
  expect((await list('tools')).tools.map(({ name }: any) => name)).toEqual(['counters', 'touch', 'log', 'add', 'echo']);
  expect((await list('nonsense')).data.troupe).toMatchObject({ code: 'invalid', delivery: 'not sent' });

  expect((await d.request('troupe.read.memo', { uri: A })).data.contents[0].text).toBe('the memo memo://a');
  expect((await d.request('troupe.read.memo', A)).data.contents[0].text).toBe('the memo memo://a');
  const greeting = await d.request('troupe.prompt.memo.greet', { who: 'Bo' });
  expect(greeting.data.messages[0].content.text).toBe('Greet Bo.');
  const ref = { type: 'ref/prompt', name: 'greet' };
  const completed = await d.request('troupe.complete.memo', { ref, argument: { name: 'who', value: 'B' } });
  expect(completed.data.completion).toEqual({ values: ['B!'], total: 1 });
});

test('passes on the server’s own refusal, byte for byte', async () => {
  const missing = await d.request('troupe.read.memo', { uri: 'file:///etc/passwd' });
  expect(missing).toMatchObject({
    code: 404,
    text: '{"code":-32002,"message":"Resource not found: file:///etc/passwd"}',
  });
  const unfit = await d.request('troupe.prompt.memo.greet', {});
  expect(unfit).toMatchObject({ code: 400, headers: { 'Mcp-Error-Code': '-32602' } });
  const unknown = await d.request('troupe.prompt.memo.greed', { who: 'Bo' });
  expect(unknown).toMatchObject({ code: 404, error: expect.stringContaining('did you mean greet?') });
});

test('reads a list again when the server says that it changed, and tells the bus', async () => {
  const heard = await events('troupe.ev.memo.tools.list_changed');
  expect((await d.request('troupe.call.memo.extra')).code).toBe(404);
  for (const name of ['extra', 'more', 'most']) await d.request('troupe.call.memo.add', { name });
  await eventually(() => heard.length > 0);
  await eventually(async () => (await d.server('memo')).tools === 8);
  expect((await d.request('troupe.call.memo.most')).data.content[0].text).toBe('most');
  expect((await d.request('troupe.list.memo.tools')).data.tools.map(({ name }: any) => name)).toContain('extra');
  expect(heard.length).toBeLessThanOrEqual(3);
});

test('subscribes once at the server however many listen, until the last one leaves', async () => {
  const both = await Promise.all([
    d.request('troupe.subscribe.memo', { uri: A }, as('one')),
    d.request('troupe.subscribe.memo', { uri: A }, as('two')),
  ]);
  expect(both.map(({ code }) => code)).toEqual([undefined, undefined]);
  await d.request('troupe.subscribe.memo', { uri: A }, as('one')); // a renewal
  expect((await counters()).subscribe).toEqual({ [A]: 1 });

  const { subject } = both[0].data;
  expect(subject).toMatch(/^troupe\.ev\.memo\.resources\.updated\.[A-Z2-7]{26}$/);
  const heard = await events(subject);
  await d.request('troupe.call.memo.touch', { uri: A });
  await eventually(() => heard.length === 1);
  expect(heard[0]?.body).toEqual({ uri: A });

  await d.request('troupe.unsubscribe.memo', { uri: A }, as('one'));
  await d.request('troupe.unsubscribe.memo', { uri: A }, as('stranger'));
  expect((await counters()).unsubscribe).toEqual({});
  await d.request('troupe.unsubscribe.memo', { uri: A }, as('two'));
  expect((await counters()).unsubscribe).toEqual({ [A]: 1 });
  await d.request('troupe.subscribe.memo', { uri: A }, as('two'));
  expect((await counters()).subscribe).toEqual({ [A]: 2 });
});

test('subscribes again, once each, when the server was restarted or was killed', async () => {
  await d.request('troupe.subscribe.memo', { uri: A }, as('one'));
  await d.request('troupe.subscribe.memo', { uri: 'memo://b' }, as('one'));
  const again = { [A]: 1, 'memo://b': 1 };
  await d.cli('restart', 'memo');
  await eventually(async () => expect((await counters()).subscribe).toEqual(again));
  const { pid, restarts } = await d.server('memo');
  process.kill(pid as number, 'SIGKILL');
  await eventually(async () => (await d.server('memo')).restarts > restarts);
  await d.until('memo', 'ready');
  await eventually(async () => expect((await counters()).subscribe).toEqual(again));
});

test('sets the configured log level, and carries log messages to the bus and into the log', async () => {
  expect((await counters()).levels).toEqual(['notice']);
  const heard = await events('troupe.ev.memo.log.*');
  await d.request('troupe.call.memo.log', { level: 'warning', text: 'mind the gap' });
  await d.request('troupe.call.memo.log', { level: 'emergency', text: 'fire' });
  await eventually(() => heard.length === 2);
  expect(heard).toEqual([
    { subject: 'troupe.ev.memo.log.warning', body: { level: 'warning', logger: 'fixture', data: 'mind the gap' } },
    { subject: 'troupe.ev.memo.log.emergency', body: { level: 'emergency', logger: 'fixture', data: 'fire' } },
  ]);
  await eventually(async () => {
    const lines = (await d.log()).split('\n').filter((line) => line.includes('"source":"mcp"'));
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      { level: 40, server: 'memo', name: 'fixture', msg: 'mind the gap' },
      { level: 50, server: 'memo', name: 'fixture', msg: 'fire' },
    ]);
  });
});

test('shows and serves only the tools that are allowed and not denied', async () => {
  const { tools } = (await d.request('troupe.list.partial.tools')).data;
  expect(tools.map(({ name }: any) => name)).toEqual(['counters', 'echo']);
  expect((await d.request('troupe.call.partial.echo', { message: 'hi' })).data.content[0].text).toBe('hi');
  for (const denied of ['touch', 'add', 'log']) {
    const reply = await d.request(`troupe.call.partial.${denied}`, {});
    expect(reply).toMatchObject({
      code: 403,
      data: { data: { troupe: { code: 'unauthorized', delivery: 'not sent' } } },
    });
    expect(reply.error).toContain('see x-troupe.tools');
  }
});
