// Servers of every version of MCP that troupe speaks: each is talked to in its own way, and nothing is sent to it that
// was not negotiated.

import { setTimeout as silence } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Daemon, daemon, fixture } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';

const VERSIONS = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'];
const nameOf = (version: string) => `of-${version}`;
const PROMPTS_ONLY = JSON.stringify({ tools: {}, prompts: {} });
const COMPLETE = { ref: { type: 'ref/prompt', name: 'greet' }, argument: { name: 'who', value: 'Bo' } };
let d: Daemon;

beforeAll(async () => {
  const old = VERSIONS.map((VERSION) => [nameOf(VERSION), fixture('old', {}, { VERSION })]);
  const recording = VERSIONS.map((VERSION) => [`r-${VERSION}`, fixture('records', { pingMs: 200 }, { VERSION })]);
  const completing = VERSIONS.map((VERSION) => [
    `c-${VERSION}`,
    fixture('records', {}, { VERSION, CAPABILITIES: PROMPTS_ONLY }),
  ]);
  const asks = [['asks', fixture('asks')]];
  const rules = [{ server: 'asks', answer: 'cancel' }];
  d = await daemon({
    servers: Object.fromEntries([...old, ...recording, ...completing, ...asks]),
    troupe: { asks: { rules } },
  });
});
afterAll(() => d[Symbol.asyncDispose]());

const received = async (server: string): Promise<any[]> => {
  const reply = await d.request(`troupe.call.${server}.received`);
  return reply.data.structuredContent.value.map((line: string) => JSON.parse(line));
};
const methods = async (server: string) => new Set((await received(server)).map(({ method }) => method));

describe.each(VERSIONS)('a server that speaks only %s', (version) => {
  test('is negotiated with and serves many calls at once', async () => {
    expect(await d.server(nameOf(version))).toMatchObject({ state: 'ready', protocolVersion: version, tools: 1 });
    const messages = Array.from({ length: 40 }, (_, at) => `message ${at}`);
    const subject = `troupe.call.${nameOf(version)}.echo`;
    const replies = await Promise.all(messages.map((message) => d.request(subject, { message })));
    expect(replies.map(({ data }) => data.content[0].text)).toEqual(messages);
    expect((await d.request(subject.replace('.echo', '.ech'))).error).toContain('did you mean echo?');
  });

  test('hears the newest version first, no capabilities, then initialized before anything else', async () => {
    const [first, second, ...rest] = await received(`r-${version}`);
    expect(first).toMatchObject({
      method: 'initialize',
      params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'troupe' } },
    });
    expect(second).toEqual({ jsonrpc: '2.0', method: 'notifications/initialized' });
    expect(rest.length).toBeGreaterThan(0);
    expect(new Set(rest.map(({ id }) => id)).size).toBe(rest.length);
  });

  test('is not asked for what it did not declare: the caller hears so at once', async () => {
    const server = `r-${version}`;
    const replies = await Promise.all([
      d.request(`troupe.list.${server}.resources`),
      d.request(`troupe.list.${server}.templates`),
      d.request(`troupe.list.${server}.prompts`),
      d.request(`troupe.read.${server}`, { uri: 'memo://a' }),
      d.request(`troupe.prompt.${server}.greet`, { who: 'Bo' }),
      d.request(`troupe.complete.${server}`, COMPLETE),
      d.request(`troupe.subscribe.${server}`, { uri: 'memo://a' }),
    ]);
    for (const reply of replies) {
      expect(reply).toMatchObject({ code: 404, data: { code: -32601, data: { troupe: { code: 'unsupported' } } } });
      expect(reply.data.data.troupe.delivery).toBe('not sent');
      expect(reply.error).toMatch(/does not offer \S+; it did not declare the capability/);
    }
    const heard = await methods(server);
    heard.delete('ping');
    expect([...heard].sort()).toEqual(['initialize', 'notifications/initialized', 'tools/call', 'tools/list']);
  });

  test('may answer in a batch only if its version has them', async () => {
    const options = { headers: { 'Troupe-Timeout': version === '2025-03-26' ? '10000' : '300' } };
    const reply = await d.request(`troupe.call.r-${version}.batched`, '', options);
    if (version === '2025-03-26') return expect(reply.data.content[0].text).toBe('batched');
    expect(reply).toMatchObject({ code: 408, data: { data: { troupe: { delivery: 'outcome unknown' } } } });
    await eventually(async () => expect(await d.log()).toContain(`dropped a batch, which ${version} does not have`));
  });

  test('completes if it declared so, or if its version is older than that declaration', async () => {
    const reply = await d.request(`troupe.complete.c-${version}`, COMPLETE);
    const isSent = (await methods(`c-${version}`)).has('completion/complete');
    if (version === '2024-11-05') {
      expect(reply.data.completion.values).toEqual(['Bo!']);
      return expect(isSent).toBe(true);
    }
    expect(reply).toMatchObject({ code: 404, data: { data: { troupe: { code: 'unsupported' } } } });
    expect(isSent).toBe(false);
  });
});

test('every one of them is pinged when it is silent', async () => {
  await eventually(async () => {
    await silence(700); // to ask whether it was pinged breaks the silence
    for (const version of VERSIONS) expect(await methods(`r-${version}`)).toContain('ping');
  }, 10_000);
});

test('a server’s ping and roots/list are answered at once, and its questions by a rule where no host could', async () => {
  const { replies } = (await d.request('troupe.call.asks.ask')).data.structuredContent;
  const answers = Object.fromEntries(replies.map(({ method, line }: any) => [method, JSON.parse(line)]));
  expect(answers.ping).toMatchObject({ jsonrpc: '2.0', result: {} });
  expect(answers['elicitation/create'].result).toEqual({ action: 'cancel' });
  const message = 'User rejected sampling request';
  expect(answers['sampling/createMessage'].error).toEqual({ code: -1, message });
  expect(answers['roots/list'].result).toEqual({ roots: [] });
});
