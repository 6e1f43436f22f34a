// Questions at real hosts: each says whose it is where many servers share an endpoint, and a host is asked only what it can
// answer. The rest waits in the inbox, whatever the host says of itself.

import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AskView } from '../../src/asks/ask.ts';
import { type Daemon, daemon, fixture } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { type HostOptions, rawHost } from '../support/host.ts';

const requestedSchema = { type: 'object', properties: { pet: { type: 'string' } } };
const FORM = { method: 'elicitation/create', params: { message: 'Which pet?', requestedSchema } };
const PAGE = { mode: 'url', message: 'Log in', url: 'https://example.com/', elicitationId: 'e1' };
const URL_FORM = { method: 'elicitation/create', params: PAGE };
const sampling = (content: unknown) => ({
  method: 'sampling/createMessage',
  params: { messages: [{ role: 'user', content }], maxTokens: 9 },
});
const HELLO = { type: 'text', text: 'hello' };
const ALL = { elicitation: { form: {}, url: {} }, sampling: { tools: {} } };

let d: Daemon;
beforeAll(async () => {
  d = await daemon({
    servers: { curious: fixture('inquires'), careful: fixture('echo', { approve: 'always' }) },
    troupe: { http: { address: '127.0.0.1:0' }, profiles: { few: { servers: ['curious'] } } },
  });
}, 60_000);
afterAll(() => d?.[Symbol.asyncDispose]());

/** The question that a host gets during a call, which it then refuses to answer. */
async function heardAt(path: string, name: string, args: object, options: HostOptions = { capabilities: ALL }) {
  const host = await rawHost(`${await d.http()}${path}`, options);
  const stream = await host.begin(1, 'tools/call', { name, arguments: args });
  let question: any;
  for await (const { message } of stream.events) {
    if (message.id === 1) break;
    if (message.method === undefined || message.id === undefined) continue;
    question = message;
    const error = { code: -1, message: 'no' };
    await (await host.send('POST', { id: message.id, error })).body.dump();
  }
  await host.close();
  return question?.params;
}

/** A question that this host is not asked: it is in the inbox at once, and `decline` there ends the call. */
async function passedOn(host: Awaited<ReturnType<typeof rawHost>>, asked: object) {
  const call = host.ask('tools/call', { name: 'inquire', arguments: asked });
  const { id, waitsOn } = await eventually(async () => {
    const [view] = (await d.request('troupe.inbox')).data as AskView[];
    if (view?.waitsOn !== 'inbox') throw new Error('no question waits for a person');
    return view;
  }, 15_000);
  await d.request(`troupe.answer.${id}`, '{"action":"decline"}');
  return [waitsOn, JSON.parse((await call).result.content[0].text)];
}

describe('where many servers share an endpoint', () => {
  it.each([
    ['/mcp', 'curious__inquire'],
    ['/mcp/@few', 'curious__inquire'],
  ])('a question at %s begins with the name of who asks', async (path, tool) => {
    expect(await heardAt(path, tool, FORM)).toEqual({ ...FORM.params, message: 'curious asks: Which pet?' });
    expect(await heardAt(path, tool, URL_FORM)).toEqual({ ...PAGE, message: 'curious asks: Log in' });
    const asked = sampling(HELLO);
    expect(await heardAt(path, tool, asked)).toEqual(asked.params);
  });

  it('an approval is in words of ours, which say so themselves', async () => {
    const { message } = await heardAt('/mcp', 'careful__echo', { message: 'hi' });
    expect(message).toMatch(/^Approve this call\? .*careful/);
  });
});

it('at the endpoint of one server its question is left as it is', async () => {
  expect(await heardAt('/mcp/curious', 'inquire', FORM)).toEqual(FORM.params);
});

describe('a host that cannot be asked', () => {
  it('because of what it declares is not, and its calls go on', async () => {
    const odd = { elicitation: 3, sampling: null, roots: [] };
    const host = await rawHost(`${await d.http()}/mcp/curious`, { capabilities: odd });
    const [waitsOn, { result }] = await passedOn(host, FORM);
    expect([waitsOn, result]).toEqual(['inbox', { action: 'decline' }]);
    expect((await passedOn(host, sampling(HELLO)))[1].error.code).toBe(-1);
    await host.close();
  });

  it('because of what an earlier troupe has kept of it is not, either', async () => {
    const host = await rawHost(`${await d.http()}/mcp/curious`, { capabilities: ALL });
    await (await d.nats()).close(); // the next bus may be elsewhere
    await d.down();
    const database = new Sqlite(join(d.state, 'database', 'troupe.db'));
    const kept = JSON.stringify({ elicitation: null, sampling: null });
    expect(database.prepare('UPDATE sessions SET capabilities = ? WHERE id = ?').run(kept, host.session).changes).toBe(
      1,
    );
    database.close();
    await d.start();
    const back = await rawHost(`${await d.http()}/mcp/curious`, { session: host.session });
    expect((await passedOn(back, FORM))[1].result).toEqual({ action: 'decline' });
    expect((await passedOn(back, sampling(HELLO)))[1].error.code).toBe(-1);
    await Promise.all([host.close(), back.close()]);
  }, 60_000);

  it('because its version has no such question is not, though it declares it', async () => {
    const old = { version: '2025-06-18', capabilities: ALL };
    const host = await rawHost(`${await d.http()}/mcp/curious`, old);
    expect((await passedOn(host, URL_FORM))[1].result).toEqual({ action: 'decline' });
    expect((await passedOn(host, sampling([HELLO])))[1].error.code).toBe(-1);
    await host.close();
    expect(await heardAt('/mcp/curious', 'inquire', FORM, old)).toEqual(FORM.params);
    expect(await heardAt('/mcp/curious', 'inquire', sampling(HELLO), old)).toEqual(sampling(HELLO).params);
  });
});
