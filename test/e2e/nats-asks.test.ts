// Questions of servers on the bus, with a real daemon: calls wait, services and people answer, and nobody else hears of it.

import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import type { Msg } from 'nats';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { AskView } from '../../src/asks/ask.ts';
import { daemonName } from '../../src/config/names.ts';
import { ask, kindOf } from '../support/ask.ts';
import { type Daemon, daemon, fixture, ROOT } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';

const QUESTION = 'Which-pet-did-you-have-first';
const ANSWER = 'Rex-the-iguana';
const requestedSchema = { type: 'object', properties: { pet: { type: 'string', minLength: 3 } }, required: ['pet'] };
const FORM = { method: 'elicitation/create', params: { message: QUESTION, requestedSchema } };
const messages = [{ role: 'user', content: { type: 'text', text: QUESTION } }];
const SAMPLING = { method: 'sampling/createMessage', params: { messages, maxTokens: 10 } };
const ACCEPT = `{"action":"accept","content":{"pet": "${ANSWER}"}}`;

const NODE = `troupe.node.${daemonName(hostname(), undefined)}`;

let d: Daemon;
const events: { subject: string; told: Record<string, unknown> }[] = [];

beforeAll(async () => {
  const trusting = { trust: true };
  d = await daemon({
    servers: {
      ...{ curious: fixture('inquires', trusting), careful: fixture('echo', { approve: 'always' }) },
      visit: fixture('url-required'),
    },
  });
  const hear = (_: unknown, msg: Msg) => void events.push({ subject: msg.subject, told: msg.json() });
  for (const subject of ['troupe.ev.*.ask.*', 'troupe.as.*.ev.*.ask.*'])
    (await d.nats()).subscribe(subject, { callback: hear });
  await (await d.nats()).flush();
});
afterAll(() => d[Symbol.asyncDispose]());

const inquire = (about: object, tree = 'troupe') =>
  d.request(`${tree}.call.curious.inquire`, about, { timeout: 50_000 });
/** The JSON-RPC reply that the server got, as it came. */
const repliedTo = async (call: ReturnType<typeof inquire>): Promise<string> => (await call).data.content[0].text;
const open = async (tree = 'troupe'): Promise<AskView[]> => (await d.request(`${tree}.inbox`)).data;
const theAsk = (tree = 'troupe') =>
  eventually(async () => {
    const [view, another] = await open(tree);
    if (!view || another) throw new Error('not one question is open');
    return view;
  }, 20_000);

it('a call waits in the inbox for an answer that can stand, and the second answer hears who was first', async () => {
  const call = inquire(FORM);
  const { id, expiresAt, ...view } = await theAsk();
  expect(view).toMatchObject({ kind: 'elicitation', mode: 'form', server: 'curious', tool: 'inquire', principal: '_' });
  expect(view).toMatchObject({ message: QUESTION, schema: requestedSchema });
  expect(id).toMatch(/^[\w-]{22,32}$/);

  const short = await d.request(`troupe.answer.${id}`, '{"action":"accept","content":{"pet":"ox"}}');
  expect([short.code, short.error]).toEqual([400, expect.stringContaining('pet')]);
  expect((await d.request(`troupe.answer.${id}`, ACCEPT)).data).toEqual({ id, outcome: 'accepted' });
  expect(await repliedTo(call)).toContain(`"result":{"action":"accept","content":{"pet": "${ANSWER}"}}`);
  const late = await d.request(`troupe.answer.${id}`, '{"action":"decline"}');
  expect([late.code, late.error]).toEqual([409, expect.stringContaining('already answered by a client on NATS')]);
  expect(await open()).toEqual([]);

  const about = { id, kind: 'elicitation', server: 'curious', tool: 'inquire', openedAt: view.openedAt, expiresAt };
  await eventually(() =>
    expect(events.filter(({ told }) => told.id === id)).toEqual([
      { subject: 'troupe.ev.curious.ask.opened', told: about },
      {
        subject: 'troupe.ev.curious.ask.closed',
        told: { ...about, outcome: 'accepted', by: 'a client on NATS', at: expect.any(Number) },
      },
    ]),
  );
});

it('a question of one caller is neither seen nor answered by another', async () => {
  const call = inquire(FORM, 'troupe.as.alice');
  const { id } = await theAsk('troupe.as.alice');
  for (const tree of ['troupe.as.bob', 'troupe', NODE]) {
    expect(await open(tree)).toEqual([]);
    const [refused, unknown] = await Promise.all([
      d.request(`${tree}.answer.${id}`, ACCEPT),
      d.request(`${tree}.answer.${'x'.repeat(22)}`, ACCEPT),
    ]);
    expect([refused.code, refused.text]).toEqual([404, unknown.text.replaceAll('x'.repeat(22), id)]);
  }
  await d.request(`troupe.as.alice.answer.${id}`, '{"action":"decline"}');
  expect(await repliedTo(call)).toContain('"result":{"action":"decline"}');
  await eventually(() =>
    expect(events.filter(({ told }) => told.id === id).map(({ subject }) => subject)).toEqual([
      'troupe.as.alice.ev.curious.ask.opened',
      'troupe.as.alice.ev.curious.ask.closed',
    ]),
  );
});

it('the example answers forms and sampling, and leaves the rest to people', async () => {
  const { stdout } = await d.cli('env');
  const NATS_URL = /NATS_URL='?([^'\s]+)/.exec(stdout)?.[1] ?? '';
  const values = JSON.stringify({ pet: ANSWER });
  const example = execa(process.execPath, ['examples/answerer.mjs', values], {
    cwd: ROOT,
    env: { NATS_URL },
    reject: false,
  });
  try {
    const [first] = await once(example.stdout, 'data');
    expect(String(first)).toBe('answering on troupe.ask._.>\n');
    expect(await repliedTo(inquire(FORM))).toContain(`"result":{"action":"accept","content":{"pet":"${ANSWER}"}}`);
    expect(await repliedTo(inquire(SAMPLING))).toContain(`"text":"You said: ${QUESTION}"`);
    const url = {
      method: 'elicitation/create',
      params: { mode: 'url', message: 'Log in', url: 'https://x.test/', elicitationId: 'e1' },
    };
    const call = inquire(url);
    const { id, url: address } = await theAsk();
    expect(address).toBe('https://x.test/');
    await d.request(`troupe.answer.${id}`, '{"action":"cancel"}');
    expect(await repliedTo(call)).toContain('"result":{"action":"cancel"}');
    await eventually(() =>
      expect(events.filter(({ told }) => told.by === 'a service on the bus').map(({ told }) => told.kind)).toEqual([
        'elicitation',
        'sampling',
      ]),
    );
  } finally {
    example.kill('SIGTERM');
    expect((await example).exitCode).toBe(0);
  }
});

it('a service hears what was wrong with its answer, and another hears that it came too late', async () => {
  const nc = await d.nats();
  const asked: Record<string, unknown>[] = [];
  const subscription = nc.subscribe('troupe.ask._.elicitation.curious', {
    queue: 'answer',
    callback: (_, msg) => {
      asked.push(msg.json());
      msg.respond(asked.length === 1 ? '{"action":"accept","content":{"pet":7}}' : ACCEPT);
    },
  });
  await nc.flush();
  expect(await repliedTo(inquire(FORM))).toContain(`"pet": "${ANSWER}"`);
  subscription.unsubscribe();
  expect(asked.map(({ error }) => error)).toEqual([undefined, expect.stringContaining('pet')]);
  const late = await d.request(`troupe.answer.${asked[0]?.id}`, ACCEPT);
  expect([late.code, late.error]).toEqual([409, expect.stringContaining('already answered by a service on the bus')]);
});

it('a stream says that the call waits, and for what', async () => {
  const asked = ask(await d.nats(), 'troupe.call.curious.inquire', FORM, { 'Troupe-Stream': '1' });
  const { id, expiresAt } = await theAsk();
  await eventually(async () => (await open())[0]?.waitsOn === 'inbox'); // nobody but a person is left
  await d.request(`troupe.answer.${id}`, '{"action":"cancel"}');
  const frames = await asked.toTheEnd();
  expect(frames.map(kindOf)).toEqual(['ack', 'ask', 'result', 'end']);
  const message = `curious waits for the answer to a question: troupe answer ${id.slice(0, 8)}`;
  expect(frames[1]?.json()).toEqual({ id, kind: 'elicitation', expiresAt, message });
});

it('a call that must be approved waits too, and a service may say yes', async () => {
  const first = d.request('troupe.call.careful.echo', { message: ANSWER });
  const { id, kind, arguments: given } = await theAsk();
  expect([kind, given]).toEqual(['approval', { message: ANSWER }]);
  const denied = await d.request(`troupe.answer.${id}`, '{"action":"decline"}');
  expect(denied.data).toEqual({ id, outcome: 'denied' });
  expect((await first).code).toBe(403);
  const nc = await d.nats();
  const yes = nc.subscribe('troupe.ask._.approval.>', {
    callback: (_, msg) => void msg.respond('{"action":"accept"}'),
  });
  await nc.flush();
  expect((await d.request('troupe.call.careful.echo', { message: 'hi' })).data.content[0].text).toBe('hi');
  yes.unsubscribe();
});

it('the word that an address was visited is taken only from who says that this is meant', async () => {
  const call = d.request('troupe.call.visit.mail', {}, { timeout: 50_000 });
  const { id } = await theAsk();
  const answer = (body: string) => d.request(`troupe.answer.${id}`, body);
  expect((await answer('{"action":"accept"}')).data).toEqual({ id, outcome: 'open' });
  for (const body of ['{"action":"accept"}', '{"action":"accept","stage":"result"}'])
    expect(await answer(body)).toMatchObject({ code: 409, error: expect.stringContaining('has moved on') });
  expect((await answer('{"action":"accept","stage":"done"}')).data).toEqual({ id, outcome: 'completed' });
  expect((await call).data).toMatchObject({ code: -32042 }); // it was not, and the server knows
});

it('nothing that was asked or answered lies in the state directory', async () => {
  await d.down(); // everything that is written late is written
  const files = await readdir(d.state, { recursive: true, withFileTypes: true });
  const texts = await Promise.all(
    files
      .filter((file) => file.isFile())
      .map(async (file) => {
        const path = join(file.parentPath, file.name);
        return { path, bytes: await readFile(path) };
      }),
  );
  expect(texts.some(({ bytes }) => bytes.includes('elicitation/create'))).toBe(true); // the audit knows that it was asked
  const found = texts.filter(({ bytes }) => bytes.includes(QUESTION) || bytes.includes(ANSWER)).map(({ path }) => path);
  expect(found).toEqual([]);
});
