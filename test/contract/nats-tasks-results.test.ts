// Waiting on NATS for the result of a task: as long as it takes and somebody listens, and never for ever.

import { createInbox, type NatsConnection } from 'nats';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Outcome } from '../../src/calls/call.ts';
import type { OpenAsk } from '../../src/doors/nats/results.ts';
import { subscriptionsOf } from '../support/answerers.ts';
import { ask, digestOf, header, joined, kindOf } from '../support/ask.ts';
import { eventually } from '../support/eventually.ts';
import { taskView } from '../support/little-tasks.ts';
import { natsServer, type TestServer } from '../support/nats.ts';
import { requester, type TaskDoor, taskDoor } from '../support/task-door.ts';

let nats: TestServer;
let client: NatsConnection;
const request = requester(() => client);
beforeAll(async () => {
  nats = await natsServer({ maxPayload: 64 * 1024 });
  client = await nats.connect();
});
afterAll(() => nats[Symbol.asyncDispose]());

const ok = (text: string, isError = false): Outcome => ({ ok: true, result: Buffer.from(text), isError });
const STREAM = { 'Troupe-Stream': '1' };
const isWaitedFor = (it: TaskDoor, count = 1) => eventually(() => expect(it.waiters('one')).toBe(count));

describe('a plain request', () => {
  test('gets what the call came to, byte for byte, when the task has ended, and after it', async () => {
    await using it = await taskDoor(nats, [taskView('one')]);
    const waiting = [request('troupe.task.result.one'), request('troupe.node.host-1.task.result.one')];
    await isWaitedFor(it, 2);
    it.end('one', ok('{"n":12345678901234567890, "m":1e2}'));
    for (const { text, headers } of [...(await Promise.all(waiting)), await request('troupe.task.result.one')])
      expect([text, headers]).toEqual(['{"n":12345678901234567890, "m":1e2}', {}]);
    expect(it.waiters('one')).toBe(0);
  });

  test('gets the word that the tool reports an error, as a call does', async () => {
    await using it = await taskDoor(nats, [taskView('one')]);
    it.end('one', ok('{"isError":true}', true));
    expect((await request('troupe.task.result.one')).headers).toEqual({ 'Mcp-Is-Error': 'true' });
  });

  test('gets the bytes of the error that it came to, and its headers', async () => {
    await using it = await taskDoor(nats, [taskView('one')]);
    const error = Buffer.from('{"code":-32000, "message":"no"}');
    it.end('one', { ok: false, failure: { code: 'rejected', delivery: 'failed', message: 'no', error } });
    const { text, code, headers } = await request('troupe.task.result.one');
    expect([text, code, headers['Mcp-Error-Code']]).toEqual([error.toString(), 500, '-32000']);
  });

  test('gets a result that does not fit in chunks, if it accepts them, and is told of it if not', async () => {
    await using it = await taskDoor(nats, [taskView('one')]);
    const large = Buffer.from(JSON.stringify({ text: 'x'.repeat(300_000) }));
    it.end('one', { ok: true, result: large, isError: false });
    const parts = await ask(client, 'troupe.task.result.one', '', { 'Troupe-Accept': 'chunk' }).toTheEnd();
    expect(joined(parts).equals(large)).toBe(true);
    expect(header(parts[0], 'Digest')).toBe(digestOf(large));
    expect((await request('troupe.task.result.one')).code).toBe(413);
  });

  test('is told after its own time that the task goes on, and how to look', async () => {
    await using it = await taskDoor(nats, [taskView('one', { principal: 'alice' })]);
    const { code, error, data } = await request('troupe.as.alice.task.result.one', '', { 'Troupe-Timeout': '60ms' });
    expect([code, error]).toEqual([
      408,
      expect.stringMatching(/^task one goes on after 60 ms; .*alice\.task\.get\.one$/),
    ]);
    expect(data.data.troupe).toEqual({ code: 'timeout', delivery: 'not sent', state: 'working' });
    expect(it.waiters('one')).toBe(0);
    expect((await request('troupe.as.alice.task.result.one', '', { 'Troupe-Timeout': 'soon' })).code).toBe(400);
  });

  test('is told when its caller waits for too many, and others are not', async () => {
    await using it = await taskDoor(nats, [taskView('one'), taskView('hers', { principal: 'alice' })]);
    const inbox = createInbox();
    const codes: string[] = [];
    client.subscribe(inbox, { callback: (_, msg) => void codes.push(header(msg, 'Nats-Service-Error-Code')) });
    for (let n = 0; n < 10_001; n++) client.publish('troupe.task.result.one', '', { reply: inbox });
    await eventually(() => expect(codes).toEqual(['429']), 20_000);
    expect(it.waiters('one')).toBe(10_000);
    const hers = request('troupe.as.alice.task.result.hers');
    await eventually(() => expect(it.waiters('hers')).toBe(1));
    for (const id of ['one', 'hers']) it.end(id, ok('{}'));
    expect((await hers).text).toBe('{}');
    await eventually(() => expect(codes).toHaveLength(10_001), 20_000);
    expect((await request('troupe.task.result.one')).text).toBe('{}');
  });

  test('is told when the daemon stops, and so is one that comes while it does', async () => {
    const it = await taskDoor(nats, [taskView('one')]);
    const waiting = request('troupe.task.result.one');
    const streaming = ask(client, 'troupe.task.result.one', '', STREAM);
    await isWaitedFor(it, 2);
    const inbox = createInbox();
    const late: string[] = [];
    client.subscribe(inbox, { callback: (_, msg) => void late.push(header(msg, 'Nats-Service-Error-Code')) });
    await client.flush();
    it.nc.publish('troupe.task.result.one', '', { reply: inbox }); // comes back to the door when it is closing
    const closing = it.open.close();
    expect(await waiting).toMatchObject({
      code: 503,
      error: expect.stringMatching(/task one stops; the task is kept/),
    });
    expect((await streaming.toTheEnd()).map(kindOf)).toEqual(['ack', 'error', 'end']);
    await eventually(() => expect(late).toEqual(['503']));
    await closing;
    await it.nc.close();
    expect([it.waiters('one'), it.troubles]).toEqual([0, []]);
  });
});

describe('a stream', () => {
  test('has ack, what was reported before and since, the questions of the task, the result and the end', async () => {
    const asks: (OpenAsk & { principal: string })[] = [
      { id: 'q1', kind: 'elicitation', server: 's', tool: 't', expiresAt: 9, task: 'one', principal: 'alice' },
      { id: 'q2', kind: 'approval', server: 's', tool: 't', expiresAt: 9, task: 'another', principal: 'alice' },
    ];
    const progress = { progress: 1, total: 3 };
    await using it = await taskDoor(nats, [taskView('one', { principal: 'alice', progress })], { asks });
    const before = subscriptionsOf(it.nc);
    const asked = ask(client, 'troupe.as.alice.task.result.one', '', STREAM);
    await isWaitedFor(it);
    await it.nc.flush(); // it listens
    const told = (value: unknown, tree = 'troupe.as.alice') =>
      client.publish(`${tree}.ev.progress.one`, typeof value === 'string' ? value : JSON.stringify(value));
    told({ progress: 9 }, 'troupe'); // of another tree, so of another task
    told({ progress: 2, total: 3, message: 'two', secret: 1 });
    for (const wrong of [
      'no JSON',
      '[]',
      '{"progress":"3"}',
      `{"progress":4,"message":"${'x'.repeat(66_000)}"`.slice(0, 60_000),
    ])
      told(wrong);
    told({ progress: 1.5 });
    const later = { server: 's', tool: 't', task: 'one', principal: 'alice' };
    asks.push({ id: 'q3', kind: 'sampling', expiresAt: 10, ...later });
    client.publish('troupe.as.alice.ev.gh.ask.opened', '{}');
    await asked.atLeast(5);
    told({ progress: 3, total: 3 });
    await client.flush();
    it.end('one', ok('{}'));
    const frames = await asked.toTheEnd();
    const body = (msg: (typeof frames)[number]) => (msg.data.length > 0 ? msg.json() : undefined);
    expect(frames.map((msg) => [kindOf(msg), body(msg)])).toEqual([
      ['ack', { requestId: 'one' }],
      ['progress', { progress: 1, total: 3 }],
      ['ask', { id: 'q1', kind: 'elicitation', expiresAt: 9, message: expect.stringContaining('troupe answer q1') }],
      ['progress', { progress: 2, total: 3, message: 'two' }],
      ['ask', { id: 'q3', kind: 'sampling', expiresAt: 10, message: expect.stringContaining('troupe answer q3') }],
      ['progress', { progress: 3, total: 3 }],
      ['result', {}],
      ['end', undefined],
    ]);
    expect(frames.slice(0, -1).map((msg) => Number(header(msg, 'Mcp-Seq')))).toEqual([1, 2, 3, 4, 5, 6, 7]);
    told({ progress: 4 });
    await request('troupe.as.alice.task.get.one'); // whatever came late would have come before this
    expect([asked.messages.length, it.troubles]).toEqual([frames.length, []]);
    expect(subscriptionsOf(it.nc)).toBe(before + 1); // that by which all streams learn that their readers are gone
  });

  test('of a task that is not there is one error frame and the end', async () => {
    await using _ = await taskDoor(nats, [taskView('one', { principal: 'bob' })]);
    const frames = await ask(client, 'troupe.task.result.one', '', STREAM).toTheEnd();
    expect(frames.map(kindOf)).toEqual(['error', 'end']);
    expect(header(frames[0], 'Nats-Service-Error-Code')).toBe('404');
  });

  test('ends by its own time, too', async () => {
    await using _ = await taskDoor(nats, [taskView('one')]);
    const frames = await ask(client, 'troupe.task.result.one', '', { ...STREAM, 'Troupe-Timeout': '80' }).toTheEnd();
    expect(frames.map(kindOf)).toEqual(['ack', 'error', 'end']);
    expect(header(frames[1], 'Nats-Service-Error-Code')).toBe('408');
  });

  test('whose reader is gone is let go, and its task is left alone', async () => {
    await using it = await taskDoor(nats, [taskView('one')], { keepAliveMs: 50 });
    const asked = ask(client, 'troupe.task.result.one', '', STREAM);
    await isWaitedFor(it);
    asked.stopListening();
    await isWaitedFor(it, 0);
    expect([it.known.get('one')?.status, it.troubles]).toEqual(['working', []]);
  });
});
