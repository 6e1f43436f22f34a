// Calls that wait for a person, seen by those who wait: they are told at once what they wait for, they wait no longer than they
// have said, and when they have left nothing is done for nobody, whoever approves it then.

import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import type { AskView } from '../../src/asks/ask.ts';
import { ask, kindOf } from '../support/ask.ts';
import { askControl } from '../support/control.ts';
import { type Daemon, daemon, fixture } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { type RawHost, type RawStream, rawHost } from '../support/host.ts';

let d: Daemon;
beforeAll(async () => {
  d = await daemon({
    servers: {
      careful: fixture('destructive', { approve: 'always' }),
      hasty: fixture('destructive', { approve: 'always', timeoutMs: '1s' }),
      curious: fixture('inquires'),
    },
    troupe: { http: { address: '127.0.0.1:0' } },
  });
}, 60_000);
afterAll(() => d?.[Symbol.asyncDispose]());

const inbox = async () => (await askControl<{ asks: AskView[] }>(join(d.state, 'control.sock'), 'inbox')).asks;
/** The only question, once it is on the disk and waits for a person. */
const theAsk = () =>
  eventually(async () => {
    const asks = await inbox();
    expect(asks.map(({ waitsOn }) => waitsOn)).toEqual(['inbox']);
    return asks[0] as AskView;
  });
const answer = (id: string, action = 'accept') =>
  askControl<{ outcome: string }>(join(d.state, 'control.sock'), 'answer', { id, action });
const answered = (id: string) => answer(id).then(({ outcome }) => outcome, String);
const wipe = (path: string, more: object = {}) => ({ name: 'wipe', arguments: { path }, ...more });
/** How often the server was called so far, this time included. */
async function countOf(server: string): Promise<number> {
  const reply = d.request(`troupe.call.${server}.look`, { path: 'x' }, { headers: { 'Troupe-Timeout': '30s' } });
  await answer((await theAsk()).id);
  return Number(/call (\d+)/.exec((await reply).text)?.[1]);
}
/** Reads on until a message is the one. */
async function hears({ events }: RawStream, isIt: (message: any) => boolean): Promise<any> {
  for (;;) {
    const { value, done } = await events.next();
    if (done) throw new Error('the stream is over');
    if (isIt(value.message)) return value.message;
  }
}
const FORM = { message: 'Who?', requestedSchema: { type: 'object', properties: { name: { type: 'string' } } } };

it('a host that shows no forms is told at once, by progress, what its call waits for', async () => {
  const token = { _meta: { progressToken: 'mine' } };
  const inquire = { name: 'inquire', arguments: { method: 'elicitation/create', params: FORM }, ...token };
  for (const [server, params] of [
    ['careful', wipe('told', token)],
    ['curious', inquire],
  ] as const) {
    const host = await rawHost(`${await d.http()}/mcp/${server}`);
    const stream = await host.begin(1, 'tools/call', params);
    const { params: told } = await hears(stream, ({ method }) => method === 'notifications/progress');
    const { id } = await theAsk();
    expect(told).toEqual({
      ...{ progressToken: 'mine', progress: 0 },
      message: expect.stringMatching(new RegExp(`${server}.*troupe answer ${id.slice(0, 8)}`)),
    });
    await answer(id);
    expect(await hears(stream, (message) => message.id === 1)).toMatchObject({ result: { content: [{}] } });
    host.close();
  }
});

it('a stream on NATS has a frame that says so, and its call goes on when somebody has answered', async () => {
  const asked = ask(await d.nats(), 'troupe.call.hasty.wipe', { path: 'nats' }, { 'Troupe-Stream': '1' });
  await eventually(() => asked.messages.some((msg) => kindOf(msg) === 'ask'));
  const frame = asked.messages.find((msg) => kindOf(msg) === 'ask');
  const { id } = await theAsk();
  expect(frame?.json()).toMatchObject({ id, message: expect.stringContaining(`troupe answer ${id.slice(0, 8)}`) });
  const toldAt = performance.now();
  await eventually(() => performance.now() - toldAt > 1_200); // whoever is told may wait longer than timeoutMs
  await answer(id);
  expect((await asked.toTheEnd()).map(kindOf)).toEqual(['ack', 'ask', 'ka', 'result', 'end']);
});

it('what is approved when nobody reads its stream on NATS any more never runs, though no sign of life was due yet', async () => {
  const before = await countOf('careful');
  const nats = await d.nats();
  const asked = ask(nats, 'troupe.call.careful.wipe', { path: 'unread' }, { 'Troupe-Stream': '1' });
  const { id } = await theAsk();
  asked.stopListening();
  await nats.flush();
  expect(await answered(id)).toBe('approved');
  expect(await countOf('careful')).toBe(before + 1);
});

it('a plain request, and `--timeout`, are answered in time with what would have helped; an approval comes too late', async () => {
  const before = await countOf('hasty');
  const plain = d.request('troupe.call.hasty.wipe', { path: 'plain' });
  const { id } = await theAsk();
  const { code, text } = await plain;
  expect([code, text]).toEqual([408, expect.stringContaining(`troupe answer ${id.slice(0, 8)}`)]);
  expect(await answered(id)).toMatch(/is over: nobody answered in time/);
  const shell = d.cli('call', 'careful', 'wipe', 'path=shell', '--timeout', '1s');
  const { id: second } = await theAsk();
  const { exitCode, stderr } = await shell;
  expect([exitCode === 0, stderr]).toEqual([false, expect.stringContaining(`troupe answer ${second.slice(0, 8)}`)]);
  expect(await answered(second)).toMatch(/is over: nobody answered in time/);
  const headers = { 'Troupe-Timeout': '500ms' };
  expect(await d.request('troupe.call.careful.wipe', { path: 'x' }, { headers })).toMatchObject({ code: 408 });
  expect(await countOf('hasty')).toBe(before + 1);
});

it('what is approved when its host has left runs when the host comes back for it, and else never', async () => {
  const before = await countOf('careful');
  const leave = async (host: RawHost, id: number) => {
    const stream = await host.begin(id, 'tools/call', wipe(`away ${id}`));
    void stream.events.next().catch(() => {}); // as far as the first, empty event
    await eventually(() => stream.last !== '');
    const ask = await theAsk();
    stream.leave();
    // What comes over other connections after this is heard after the end of that one.
    for (const ping of ['a', 'b', 'c']) await host.ask('ping', {}, ping);
    return { ask, last: stream.last };
  };
  const host = await rawHost(`${await d.http()}/mcp/careful`);
  const first = await leave(host, 1);
  expect(await answered(first.ask.id)).toBe('approved');
  const back = await hears(await host.get(first.last), (message) => message.id === 1);
  expect(back.result.content[0].text).toBe(`wiped away 1, call ${before + 1}`);
  const second = await leave(host, 2);
  expect(await answered(second.ask.id)).toBe('approved');
  await (await host.send('DELETE')).body.dump();
  expect(await countOf('careful')).toBe(before + 2);
  host.close();
});

it('a connection that is closed takes its questions along, of approvals and of servers', async () => {
  const before = await countOf('careful');
  for (const [server, params] of [
    ['careful', wipe('gone')],
    ['curious', { name: 'inquire', arguments: { method: 'elicitation/create', params: FORM } }],
  ] as const) {
    const socket = new WebSocket(`${(await d.http()).replace('http', 'ws')}/ws/${server}`, ['mcp']);
    await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
    const send = (message: object) => socket.send(JSON.stringify({ jsonrpc: '2.0', ...message }));
    const clientInfo = { name: 'leaves', version: '1' };
    send({ id: 0, method: 'initialize', params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo } });
    await new Promise((resolve) => socket.once('message', resolve));
    send({ id: 1, method: 'tools/call', params });
    const { id } = await theAsk();
    socket.terminate();
    await eventually(async () => expect(await inbox()).toEqual([]));
    expect(await answered(id)).toMatch(/is over: its call has ended/);
  }
  expect(await countOf('careful')).toBe(before + 1);
});
