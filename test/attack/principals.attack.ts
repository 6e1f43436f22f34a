// Two who share a daemon, alice and bob: whatever bob tries with what is alice's must be answered as if it were not there, and
// must change nothing. What alone the daemon may say, nobody else can make it say.

import { randomBytes } from 'node:crypto';
import { createInbox } from 'nats';
import { request } from 'undici';
import { expect } from 'vitest';
import { askControl } from '../support/control.ts';
import { fixture } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { rawHost } from '../support/host.ts';
import { eavesdrop, over, streamed } from './bus-line.ts';
import { hostAt } from './doors.ts';
import { ALICE, anywhere, BOB, ours, surface, type Target } from './kit.ts';

const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });
const AS_OTHERS = ['troupe.as.bob', 'troupe'] as const;
const guess = () => randomBytes(16).toString('hex');

/** A tool's call as a task of alice's, over NATS. */
const aliceTask = async (target: Target, call: string, body: object, headers = {}) =>
  (await over(target, `troupe.as.alice.call.${call}`, { body, headers: { 'Troupe-Task': '1', ...headers } })).data
    .taskId as string;

surface(
  'principals',
  {
    'sessions of others': ours(async ({ target, attempt }) => {
      const url = `${target.http}/mcp`;
      const alice = await rawHost(url, bearer(ALICE));
      for (const [who, token] of [
        ['bob', BOB],
        ['the owner', target.token],
      ] as const) {
        const thief = await rawHost(url, { ...bearer(token), session: alice.session });
        for (const method of ['POST', 'GET', 'DELETE'] as const)
          await attempt(`${who}: ${method} with her session`, async () => {
            const body = method === 'POST' ? { id: 1, method: 'tools/list' } : undefined;
            const { statusCode, body: said } = await thief.send(method, body);
            await said.dump();
            expect(statusCode).toBe(404);
          });
        await attempt(`${who}: her stream from its first event`, async () => {
          const stream = await alice.begin(7, 'tools/call', { name: 'late__late', arguments: { ms: 300 } });
          for await (const _ of stream.events) break;
          const own = await rawHost(url, bearer(token));
          const found = await own.get(stream.last);
          expect([400, 404]).toContain(found.status);
          for await (const _ of found.events) throw new Error('there are events for somebody else');
          await own.close();
        });
        await thief.close();
      }
      await using old = await hostAt('sse', target, { token: ALICE });
      for (const token of [BOB, target.token])
        await attempt('her HTTP+SSE session', async () => {
          const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
          const body = '{"jsonrpc":"2.0","id":"stolen","method":"ping"}';
          const path = `${target.http}/messages?sessionId=${old.session}`;
          const { statusCode, body: said } = await request(path, { method: 'POST', headers, body });
          await said.dump();
          expect([statusCode, old.heard.join().includes('stolen')]).toEqual([404, false]);
        });
      await using onBus = await hostAt('nats', target, { caller: 'alice' });
      for (const tree of AS_OTHERS)
        await attempt(`${tree}: coming back to her session on the bus`, async () => {
          const headers = { 'Mcp-Session-Id': onBus.session ?? '' };
          expect((await over(target, `${tree}.rpc`, { headers })).code).toBe(404);
        });
      for (const session of [alice.session, onBus.session ?? ''])
        await attempt('the control socket: her session', async () => {
          const { resumed } = await askControl<{ resumed: boolean }>(target.control, 'mcp', { scope: '', session });
          expect(resumed).toBe(false);
        });
      await attempt('her sessions are there', async () => {
        expect((await alice.ask('ping')).result).toEqual({});
        expect((await onBus.ask('ping')).result).toEqual({});
        expect((await old.ask('ping')).result).toEqual({});
      });
      await alice.close();
    }),

    'tasks of others': ours(async ({ target, attempt }) => {
      const id = await aliceTask(target, 'late.late', { ms: 4_000 }, { 'Troupe-Idempotency-Key': 'hers' });
      for (const tree of AS_OTHERS)
        for (const verb of ['get', 'result', 'cancel'])
          await attempt(`${tree}: ${verb}`, async () =>
            expect((await over(target, `${tree}.task.${verb}.${id}`)).code).toBe(404),
          );
      for (const tree of AS_OTHERS)
        await attempt(`${tree}: list`, async () =>
          expect((await over(target, `${tree}.task.list`)).text).not.toContain(id),
        );
      await attempt('her key makes a task of his own', async () => {
        const headers = { 'Troupe-Task': '1', 'Troupe-Idempotency-Key': 'hers' };
        const his = await over(target, 'troupe.as.bob.call.late.late', { body: { ms: 4_000 }, headers });
        expect([typeof his.data.taskId, his.data.taskId === id]).toEqual(['string', false]);
      });
      for (const token of [BOB, target.token]) {
        const host = await rawHost(`${target.http}/mcp`, bearer(token));
        for (const method of ['tasks/get', 'tasks/result', 'tasks/cancel'])
          await attempt(`HTTP: ${method}`, async () =>
            expect((await host.ask(method, { taskId: id })).error?.code).toBe(-32602),
          );
        await attempt('HTTP: tasks/list', async () =>
          expect(JSON.stringify(await host.ask('tasks/list'))).not.toContain(id),
        );
        await host.close();
      }
      await attempt('her task is done', async () => {
        const { code, data } = await over(target, `troupe.as.alice.task.result.${id}`, { timeout: 20_000 });
        expect([code, data.content?.length]).toEqual([undefined, 1]);
      });
    }),

    'questions of others': ours(async ({ target, attempt }) => {
      await using wire = await eavesdrop(
        target,
        'troupe.ev.>',
        'troupe.as.bob.ev.>',
        'troupe.ask._.>',
        'troupe.ask.bob.>',
      );
      const params = { message: 'hers?', requestedSchema: { type: 'object', properties: {} } };
      const body = { method: 'elicitation/create', params };
      const answer = over(target, 'troupe.as.alice.call.curious.inquire', { body, timeout: 30_000 });
      const { id } = await eventually(async () => {
        const [ask] = (await over(target, 'troupe.as.alice.inbox')).data;
        expect(ask).toMatchObject({ message: 'hers?' });
        return ask as { id: string };
      }, 10_000);
      for (const tree of AS_OTHERS) {
        await attempt(`${tree}: the inbox`, async () =>
          expect((await over(target, `${tree}.inbox`)).text).not.toContain(id),
        );
        await attempt(`${tree}: the inbox by its id`, async () =>
          expect((await over(target, `${tree}.inbox`, { body: { id } })).text).not.toContain('hers?'),
        );
        for (const action of ['accept', 'decline', 'cancel'])
          await attempt(`${tree}: ${action}`, async () =>
            expect((await over(target, `${tree}.answer.${id}`, { body: { action, content: {} } })).code).toBe(404),
          );
      }
      const bob = await rawHost(`${target.http}/mcp`, { ...bearer(BOB), capabilities: { elicitation: {} } });
      for (const guessed of [0, 1, 2, 3, 'inquiry-1', id])
        await attempt(`HTTP: an answer to ${guessed}`, async () => {
          const { statusCode, body } = await bob.send('POST', {
            id: guessed,
            result: { action: 'accept', content: {} },
          });
          await body.dump();
          expect(statusCode).toBe(202);
        });
      await bob.close();
      await attempt('nobody else was told of it', () => {
        const told = wire.heard
          .filter(({ text }) => text.includes(id))
          .map(({ subject, text }) => `${subject} ${text}`);
        expect(told.join('\n')).toBe('');
      });
      await attempt('she answers it herself', async () => {
        const accepted = { action: 'accept', content: {} };
        expect((await over(target, `troupe.as.alice.answer.${id}`, { body: accepted })).data.outcome).toBe('accepted');
        expect((await answer).text).toContain('accept');
      });
    }),

    'requests of others': ours(async ({ target, attempt }) => {
      await using wire = await eavesdrop(target, 'troupe.ev.>', 'troupe.as.bob.ev.>');
      const bob = await rawHost(`${target.http}/mcp`, bearer(BOB));
      const alice = await rawHost(`${target.http}/mcp`, bearer(ALICE));
      const heard: string[] = [];
      const standing = await bob.get();
      void (async () => {
        for await (const { message } of standing.events) heard.push(JSON.stringify(message));
      })().catch(() => {}); // he left
      const headers = { 'Troupe-Request-Id': 'hers' };
      const late = over(target, 'troupe.as.alice.call.late.late', { body: { ms: 2_000 }, headers });
      const tagged = over(target, 'troupe.as.alice.call.tags.tag', {
        body: { arguments: { tag: 'alices-tag', ms: 500 }, _meta: { progressToken: 1 } },
        headers: { 'Troupe-Request-Id': 'tagged' },
      });
      const overHttp = alice.ask('tools/call', { name: 'late__late', arguments: { ms: 2_000 } }, 77);
      const daemon = (await over(target, '$SRV.INFO.mcp-echo')).data?.metadata?.daemon ?? 'x';
      for (const tree of [...AS_OTHERS, `troupe.node.${daemon}`])
        for (const id of ['hers', 'tagged'])
          await attempt(`${tree}: cancel ${id}`, async () => {
            target.nats.connection.publish(`${tree}.cancel.${id}`, '', { reply: createInbox() });
            await target.nats.connection.flush();
          });
      await attempt('HTTP: cancelled', async () =>
        expect(await bob.notify('notifications/cancelled', { requestId: 77 })).toBe(202),
      );
      await attempt('a second request with her id is his own', async () => {
        const { code } = await over(target, 'troupe.as.bob.call.late.late', { body: { ms: 10 }, headers });
        expect(code).toBeUndefined();
      });
      await attempt('hers are answered', async () => {
        expect([(await late).code, (await tagged).code, (await overHttp).error]).toEqual([
          undefined,
          undefined,
          undefined,
        ]);
      });
      await attempt('her progress and her log lines are hers', () => {
        const strange = [...wire.heard.map(({ text }) => text), ...heard].filter((text) => text.includes('alices-tag'));
        expect(strange).toEqual([]);
      });
      standing.leave();
      await Promise.all([alice.close(), bob.close()]);
    }),

    'reply injection': ours(async ({ target, attempt, d }) => {
      await using wire = await eavesdrop(target, '>');
      const { connection } = target.nats;
      const count = async () => (await d.server('records')).calls;
      const before = await count();
      const victims = [
        ...['troupe.call.records.echo', 'troupe.as.alice.call.records.echo', 'troupe.rpc.records', 'troupe.cancel.x'],
        ...['troupe.answer.x', 'troupe.task.cancel.x', 'troupe.ev.records.state.failed', 'troupe.ev.task.x.completed'],
        ...[
          'troupe.peers.x',
          'troupe.peers.x.tasks',
          'troupe.hb.x',
          'troupe.ask._.approval.records',
          'troupe.sess.x.y',
        ],
        ...['$JS.API.STREAM.DELETE.OBJ_troupe_blobs', '$JS.API.STREAM.LIST', '$SYS.REQ.SERVER.PING', '$SRV.PING'],
        ...[
          '$KV.x.y',
          '$O.troupe_blobs.C.x',
          '_INBOX',
          '_INBOXES.x',
          '_R_',
          '_Rx.y',
          'inbox.x',
          'anything',
          '_inbox.x',
        ],
        ...['$JS.ACK.x', '_GR_.x', '$NRG.x'],
      ];
      for (const reply of victims)
        for (const subject of [
          'troupe.call.records.echo',
          'troupe.list.records.tools',
          'troupe.inbox',
          'troupe.rpc.records',
        ])
          await attempt(`${subject} to ${reply}`, async () => {
            const marker = guess();
            connection.publish(subject, JSON.stringify({ message: marker }), { reply });
            await over(target, 'troupe.call.echo.echo', { body: { message: 'behind it' } });
            const arrived = wire.heard.filter((each) => each.subject === reply && !each.text.startsWith('{"message"'));
            expect(arrived.filter(({ text }) => text.includes('content') || text.includes('tools'))).toEqual([]);
          });
      await attempt('none of them was served', async () => expect(await count()).toBe(before));
    }),

    'forged events': ours(async ({ target, attempt, d }) => {
      const { connection } = target.nats;
      const id = await aliceTask(target, 'late.late', { ms: 2_500 });
      const ended = {
        taskId: id,
        status: 'completed',
        phase: 'ended',
        server: 'late',
        tool: 'late',
        principal: 'alice',
      };
      const stream = streamed(target, `troupe.as.alice.task.result.${id}`);
      const forged: [string, object][] = [
        ...['completed', 'failed', 'cancelled'].flatMap((status): [string, object][] => [
          [`troupe.ev.task.${id}.${status}`, { ...ended, status }],
          [`troupe.as.alice.ev.task.${id}.${status}`, { ...ended, status }],
          [`troupe.as.bob.ev.task.${id}.${status}`, { ...ended, status }],
        ]),
        ['troupe.ev.late.state.failed', { server: 'late', state: 'failed', why: 'forged', at: 1 }],
        ['troupe.ev.late.tools.list_changed', { server: 'late', kind: 'tools', count: 0, at: 1 }],
        [`troupe.as.alice.ev.progress.${id}`, { progress: 99, message: 'forged' }],
        ['troupe.hb.nobody', { daemon: 'nobody', ts: 0, interval_s: 0 }],
        ['troupe.peers.x', { forged: true }],
        [`troupe.peers.x.tasks`, { id }],
        ['troupe.peers.x.asks', { forged: true }],
      ];
      for (const [subject, body] of forged)
        await attempt(subject, async () => {
          connection.publish(subject, JSON.stringify(body));
          connection.publish(subject, Buffer.from([0xff, 0, 0xfe]));
          await connection.flush();
          expect((await over(target, `troupe.as.alice.task.get.${id}`)).data.status).toBe('working');
          expect((await d.server('late')).state).toBe('ready');
        });
      await attempt('its stream ends with what the server said', async () => {
        const said = (await stream).join('\n');
        expect(said).toContain('content');
      });
    }),

    'guessed ids': anywhere(async ({ target, attempt }) => {
      const all = Array.from({ length: GUESSES }, guess);
      const overBus = ['task.get', 'task.result', 'task.cancel', 'answer'].map((verb) => `troupe.as.bob.${verb}`);
      for (const subject of overBus)
        await attempt(`${GUESSES} of ${subject}`, async () => {
          const codes = await spread(all, 2_000, async (id) =>
            Number((await over(target, `${subject}.${id}`, { body: '{"action":"accept"}', timeout: 30_000 })).code),
          );
          expect([...codes].filter((code) => code !== 404 && code !== 429)).toEqual([]);
        });
      await attempt(`${GUESSES} of sessions on the bus`, async () => {
        const codes = await spread(all, 500, async (id) => Number((await over(target, `troupe.sess.x.${id}`)).code));
        expect([...codes]).toEqual([503]);
      });
      for (const path of ['/mcp', '/messages?sessionId='])
        await attempt(`${GUESSES} of sessions at ${path}`, async () => {
          const body = '{"jsonrpc":"2.0","id":1,"method":"ping"}';
          const authorization = `Bearer ${target.token}`;
          const codes = await spread(all, 32, async (id) => {
            const headers = { authorization, 'content-type': 'application/json', accept: BOTH, 'mcp-session-id': id };
            const url = `${target.http}${path}${path.endsWith('=') ? id : ''}`;
            const answer = await request(url, { method: 'POST', headers, body });
            await answer.body.dump();
            return answer.statusCode;
          });
          expect([...codes]).toEqual([404]);
        });
      await attempt(`${GUESSES} of tasks over HTTP`, async () => {
        const host = await rawHost(`${target.http}/mcp`, bearer(target.token));
        const codes = await spread(
          all,
          32,
          async (taskId) => (await host.ask('tasks/get', { taskId }, taskId)).error?.code,
        );
        expect([...codes].filter((code) => code !== -32602 && code !== -32012)).toEqual([]);
        await host.close();
      });
    }, 180),
  },
  {
    servers: {
      records: fixture('records'),
      late: fixture('answers-late'),
      tags: fixture('tags'),
      curious: fixture('inquires'),
    },
  },
);

const GUESSES = 10_000;
const BOTH = 'application/json, text/event-stream';

/** The different outcomes of all of them, with so many at once. */
async function spread<Outcome>(ids: string[], atOnce: number, work: (id: string) => Promise<Outcome>) {
  const found = new Set<Outcome>();
  let next = 0;
  const worker = async () => {
    while (next < ids.length) found.add(await work(ids[next++] as string));
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  return found;
}
