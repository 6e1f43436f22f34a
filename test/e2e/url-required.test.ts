// A server that wants an address visited before it does anything (-32042), with the real daemon: a caller that knows nothing
// of that waits until somebody was there, and one that does gets the server's own error.

import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { AskView } from '../../src/asks/ask.ts';
import { askControl } from '../support/control.ts';
import { type Daemon, daemon, fixture, ROOT } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { rawHost } from '../support/host.ts';

let d: Daemon;
const EVERYTHING = join(ROOT, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js');
beforeAll(async () => {
  d = await daemon({
    servers: {
      ...{ visited: fixture('url-required'), finished: fixture('url-required'), said: fixture('url-required') },
      ...{ refused: fixture('url-required'), quick: fixture('url-required'), host: fixture('url-required') },
      told: fixture('url-required'),
      everything: { command: process.execPath, args: [EVERYTHING, 'stdio'] },
    },
    troupe: { http: { address: '127.0.0.1:0' } },
  });
}, 60_000);
afterAll(async () => d[Symbol.asyncDispose]());

const call = (server: string, tool: string, args: object = {}) => d.request(`troupe.call.${server}.${tool}`, args);
const waiting = (server: string, isThere = (_: AskView) => true) =>
  eventually(async () => {
    const { asks } = await askControl<{ asks: AskView[] }>(join(d.state, 'control.sock'), 'inbox');
    const [ask, another] = asks.filter((each) => each.server === server && isThere(each));
    expect([ask !== undefined, another]).toEqual([true, undefined]);
    return ask as AskView;
  });
const textOf = ({ data, error }: { data: any; error: string | undefined }) => data?.content?.[0]?.text ?? error;

test('a call goes on when its address was visited and the server says so', async () => {
  const reply = call('visited', 'mail');
  const ask = await waiting('visited');
  expect(ask).toMatchObject({
    kind: 'elicitation',
    mode: 'url',
    server: 'visited',
    tool: 'mail',
    message: 'Please log in.',
  });
  await (await fetch(String(ask.url))).text();
  expect(textOf(await reply)).toBe('sent');
});

test('two calls that wait for one visit both go on', async () => {
  const replies = [call('finished', 'mail'), call('finished', 'mail')];
  await eventually(async () => {
    const { asks } = await askControl<{ asks: AskView[] }>(join(d.state, 'control.sock'), 'inbox');
    expect(asks).toHaveLength(2);
  });
  expect(textOf(await call('finished', 'finish'))).toBe('finished');
  expect((await Promise.all(replies)).map(textOf)).toEqual(['sent', 'sent']);
});

test('a visit that was over before anybody could be asked counts', async () => {
  expect(textOf(await call('quick', 'quick'))).toBe('sent');
});

test('the user’s own word is as good; a server that is not content with it is not asked a third time', async () => {
  const reply = call('said', 'never');
  const { id } = await waiting('said', ({ stage }) => stage === 'answer');
  expect((await d.cli('answer', id, '--accept')).exitCode).toBe(0);
  await waiting('said', ({ stage }) => stage === 'done');
  expect((await d.cli('answer', id, '--accept')).exitCode).toBe(0);
  const { code, data } = await reply;
  expect([code, data.code]).toEqual([500, -32042]);
  expect(data.data.elicitations[0].elicitationId).toBe('visit-2');
});

test('whoever declines gives the caller the server’s own error', async () => {
  const reply = call('refused', 'mail');
  const { id } = await waiting('refused');
  await d.cli('answer', id, '--decline');
  expect((await reply).data).toMatchObject({ code: -32042, message: 'log in first' });
});

test('a host that knows of addresses gets the error as it is, and one that does not gets the result', async () => {
  const url = `${await d.http()}/mcp/host`;
  const wise = await rawHost(url, { capabilities: { elicitation: { form: {}, url: {} } } });
  const { error } = await wise.ask('tools/call', { name: 'mail', arguments: {} });
  expect(error).toMatchObject({ code: -32042, data: { elicitations: [{ mode: 'url', elicitationId: 'visit-1' }] } });
  const simple = await rawHost(url, { capabilities: { elicitation: {} } });
  const answer = simple.ask('tools/call', { name: 'mail', arguments: {} });
  await waiting('host');
  await call('host', 'finish');
  expect((await answer).result.content[0].text).toBe('sent');
  wise.close();
  simple.close();
});

test('a host that knows of addresses is told when what it visits is done, after its call was refused', async () => {
  const capabilities = { elicitation: { url: {} } };
  const host = await rawHost(`${await d.http()}/mcp/told`, { capabilities });
  const { error } = await host.ask('tools/call', { name: 'mail', arguments: {} });
  const standing = await host.get();
  await (await fetch(error.data.elicitations[0].url)).text();
  for await (const { message } of standing.events) {
    if (message.method !== 'notifications/elicitation/complete') continue;
    expect(message.params).toEqual({ elicitationId: error.data.elicitations[0].elicitationId });
    break;
  }
  await host.close();
});

test('the reference server’s own tool is called again after the word, and then asks in the ordinary way', async () => {
  const url = 'https://example.com/form';
  const reply = call('everything', 'trigger-url-elicitation', { url, errorPath: true });
  const first = await waiting('everything', (ask) => ask.stage === 'answer');
  expect(first.url).toBe('https://modelcontextprotocol.io');
  for (let times = 0; times < 2; times++) await d.cli('answer', first.id, '--accept');
  const second = await waiting('everything', (ask) => ask.id !== first.id);
  expect(second.url).toBe(url);
  await d.cli('answer', second.id, '--decline');
  expect(textOf(await reply)).toMatch(/declin/i);
});
