// What anybody with a NATS client sees of the daemon: every verb on every tree, one reply to a plain request, and a
// sentence for every request that cannot be served.

import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { subjects } from '../../src/bus/subjects.ts';
import { ask } from '../support/ask.ts';
import { type Daemon, daemon, fixture } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { type Scratch, scratch } from '../support/scratch.ts';

const subject = subjects('troupe');
let dir: Scratch;
let d: Daemon;
let node: string;

beforeAll(async () => {
  dir = await scratch();
  const tallies = fixture('tallies', { share: 'all' });
  tallies.args.push(join(dir.path, 'tallies'));
  d = await daemon({
    servers: {
      things: fixture('resources', { share: 'all' }),
      slow: fixture('hangs', { share: 'all' }),
      echo: fixture('echo', { share: 'all' }),
      tallies,
    },
  });
  node = ((await d.status()).daemon as unknown as { name: string }).name;
});
afterAll(async () => {
  await d[Symbol.asyncDispose]();
  await dir[Symbol.asyncDispose]();
});

const text = (value: string) => ({ content: [{ type: 'text', text: value }] });

describe.each(['bare', 'as', 'node'] as const)('on the %s tree', (tree) => {
  const to = () => ({ bare: {}, as: { caller: 'alice' }, node: { node } })[tree];

  it('calls a tool', async () => {
    const { text: bytes, headers } = await d.request(subject.call('things', 'touch', to()), { uri: 'memo://a' });
    expect(JSON.parse(bytes)).toEqual(text('true'));
    expect(headers).toEqual({});
  });

  it('lists every kind', async () => {
    const list = async (kind: 'tools' | 'prompts' | 'resources' | 'templates') =>
      (await d.request(subject.list('things', kind, to()))).data;
    const names = (await list('tools')).tools.map(({ name }: { name: string }) => name);
    expect(names).toEqual(expect.arrayContaining(['echo', 'touch', 'counters']));
    expect((await list('prompts')).prompts).toMatchObject([{ name: 'greet' }]);
    expect((await list('resources')).resources).toMatchObject([{ uri: 'memo://a' }, { uri: 'memo://b' }]);
    expect((await list('templates')).resourceTemplates).toMatchObject([{ uriTemplate: 'memo://{name}' }]);
  });

  it('reads a resource by {"uri"} and by the bare URI', async () => {
    const contents = [{ uri: 'memo://a', mimeType: 'text/plain', text: 'the memo memo://a' }];
    expect((await d.request(subject.read('things', to()), { uri: 'memo://a' })).data).toEqual({ contents });
    expect((await d.request(subject.read('things', to()), 'memo://a')).data).toEqual({ contents });
  });

  it('gets a prompt', async () => {
    const { data } = await d.request(subject.prompt('things', 'greet', to()), { who: 'Ada' });
    expect(data.messages[0].content.text).toBe('Greet Ada.');
  });

  it('completes', async () => {
    const params = { ref: { type: 'ref/prompt', name: 'greet' }, argument: { name: 'who', value: 'A' } };
    expect((await d.request(subject.complete('things', to()), params)).data.completion.values).toEqual(['A!']);
  });

  it('subscribes to a resource, hears of it, and unsubscribes', async () => {
    const uri = `memo://${tree}`;
    const event = subject.resourceUpdated('things', uri);
    const nc = await d.nats();
    const heard: unknown[] = [];
    const subscription = nc.subscribe(event, { callback: (_, msg) => heard.push(msg.json()) });
    const { data } = await d.request(subject.subscribe('things', to()), { uri });
    expect(data).toEqual({ subject: event, leaseMs: 3_600_000 });
    await d.request(subject.call('things', 'touch', to()), { uri });
    await eventually(() => expect(heard).toEqual([{ uri }]));
    expect((await d.request(subject.unsubscribe('things', to()), { uri })).data).toEqual({ subject: event });
    subscription.unsubscribe();
  });

  it('cancels a call, which ends with 499, and the server hears of it', async () => {
    const id = `long-${tree}`;
    const call = d.request(
      subject.call('slow', 'sleep', to()),
      { ms: 60_000 },
      { headers: { 'Troupe-Request-Id': id } },
    );
    await eventually(async () => (await d.request(subject.cancel(id, to()), '', { timeout: 200 })).text === '{}');
    const { code, data } = await call;
    expect(code).toBe(499);
    expect(data.data.troupe).toMatchObject({ code: 'cancelled', delivery: 'outcome unknown', server: 'slow' });
    const { structuredContent } = (await d.request('troupe.call.slow.cancelled')).data;
    expect(structuredContent.value.at(-1).reason).toBe('the caller cancelled it');
  });
});

describe('a plain request', () => {
  it('gets exactly one reply: the bytes of the result, and no header', async () => {
    const asked = ask(await d.nats(), 'troupe.call.echo.echo', '{"message":"hi"}');
    await asked.atLeast(1);
    await d.request('troupe.call.echo.echo', { message: 'a second reply would have come before this one' });
    expect(asked.messages.map((msg) => msg.string())).toEqual([JSON.stringify(text('hi'))]);
    expect(asked.messages[0]?.headers).toBeUndefined();
  });

  it('passes {"arguments", "_meta"} on as what it is, and anything else as the arguments', async () => {
    const wrapped = '{"arguments":{"n":9007199254740993},"_meta":{"trace":"t"}}';
    expect((await d.request('troupe.call.echo.raw', wrapped)).text).toContain(
      '"structuredContent":{"n":9007199254740993}',
    );
    const other = '{"arguments":{"n":1},"more":2}';
    expect((await d.request('troupe.call.echo.raw', other)).text).toContain(`"structuredContent":${other}`);
  });

  it('says Mcp-Is-Error when the tool itself reports an error', async () => {
    const { data, headers } = await d.request('troupe.call.tallies.wrong', { id: 'w' });
    expect(data).toEqual({ ...text('w is wrong'), isError: true });
    expect(headers).toEqual({ 'Mcp-Is-Error': 'true' });
  });

  it('gets the bytes of an error that the server sent', async () => {
    const { text: bytes, headers } = await d.request('troupe.call.tallies.refuse', { id: 'r' });
    expect(bytes).toBe('{"code":-32000,"message":"no r today"}');
    expect(headers).toMatchObject({ 'Nats-Service-Error-Code': '500', 'Mcp-Error-Code': '-32000' });
  });

  it.each([
    ['troupe.call.echo.echo', '[1]', 400, /JSON object/],
    ['troupe.call.echo.echo', '{"message":', 400, /JSON object/],
    ['troupe.call.echo.ecco', '{}', 404, /did you mean echo/],
    ['troupe.call.echo.=61', '{}', 400, /Mcp-Name/],
    ['troupe.list.echo.toys', '', 400, /tools, resources, templates or prompts/],
    ['troupe.read.things', '{}', 400, /URI/],
    ['troupe.read.echo', 'memo://a', 404, /does not offer resources\/read/],
    ['troupe.as._.call.echo.echo', '{}', 400, /subject/],
  ])('on %s with %s is refused with %i and a sentence', async (to, body, code, sentence) => {
    const reply = await d.request(to, body);
    expect(reply.code).toBe(code);
    expect(reply.error).toMatch(sentence);
    expect(reply.data.data.troupe.delivery).toBe('not sent');
  });

  it.each([
    [{ 'Troupe-Timeout': 'soon' }, /Troupe-Timeout/],
    [{ 'Troupe-Request-Id': 'a b' }, /Troupe-Request-Id/],
    [{ 'Mcp-Name': 'raw' }, /Mcp-Name/],
  ])('with the header %j is refused with 400', async (wanted, sentence) => {
    const reply = await d.request('troupe.call.echo.echo', { message: 'hi' }, { headers: wanted });
    expect([reply.code, reply.error]).toEqual([400, expect.stringMatching(sentence)]);
  });

  it.each(['300', '300ms', '0.3s'])('with Troupe-Timeout %s ends with 408 by then', async (timeout) => {
    const reply = await d.request('troupe.call.slow.sleep', { ms: 30_000 }, { headers: { 'Troupe-Timeout': timeout } });
    expect(reply.code).toBe(408);
    expect(reply.error).toMatch(/did not answer sleep within 300 ms; .* outcome is unknown/);
  });

  it('may use the id of a call that has ended, and not that of one in flight', async () => {
    const headers = { 'Troupe-Request-Id': 'again' };
    for (const tool of ['echo', 'no_such_tool', 'echo'])
      expect((await d.request(`troupe.call.echo.${tool}`, {}, { headers })).error ?? '').not.toMatch(/in flight/);
    const first = d.request('troupe.call.slow.sleep', { ms: 400 }, { headers });
    const second = await d.request('troupe.call.slow.sleep', { ms: 400 }, { headers });
    expect([second.code, second.error]).toEqual([400, expect.stringMatching(/again is in flight/)]);
    expect((await first).data).toEqual(text('slept 400 ms'));
  });

  it('whose reply subject is no inbox is neither answered nor executed', async () => {
    const nc = await d.nats();
    const heard: string[] = [];
    nc.subscribe('troupe.ev.>', { callback: (_, msg) => heard.push(msg.string()) });
    const { calls } = await d.server('echo');
    nc.publish('troupe.call.echo.echo', '{"message":"boo"}', { reply: 'troupe.ev.echo.state.failed' });
    await d.request('troupe.call.echo.echo', { message: 'after it' });
    expect((await d.server('echo')).calls).toBe(calls + 1);
    expect(heard.join()).not.toContain('boo');
  });
});
