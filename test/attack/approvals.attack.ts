// A tool that nobody may run without a word: `tally` of `guarded`, which notes each of its runs in a file. Whatever it is called,
// and through whichever door, the file must stay as it is until somebody who may has approved that very call.

import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect, createInbox, headers } from 'nats';
import { request } from 'undici';
import { afterAll, expect } from 'vitest';
import { askControl } from '../support/control.ts';
import { fixture } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { rawHost } from '../support/host.ts';
import { scratch } from '../support/scratch.ts';
import { taskLine } from '../support/task-line.ts';
import { over, streamed } from './bus-line.ts';
import { DOOR_NAMES, hostAt } from './doors.ts';
import { ALICE, ours, type Stage, surface, type Target } from './kit.ts';

const place = await scratch();
afterAll(() => place[Symbol.asyncDispose]());
const file = join(place.path, 'tallies');
writeFileSync(file, '');
const runs = (id?: string): string[] =>
  (existsSync(file) ? readFileSync(file, 'utf8') : '').split('\n').filter((line) => line && (!id || line === id));

type Ask = { id: string; server: string; tool: string; arguments?: { id?: string } };
const inbox = async ({ control }: Target) => (await askControl<{ asks: Ask[] }>(control, 'inbox')).asks;
const decide = ({ control }: Target, id: string, action: string) =>
  askControl<{ outcome: string }>(control, 'answer', { id, action }).catch(() => undefined);
const askAbout = (target: Target, id: string) =>
  eventually(async () => {
    const found = (await inbox(target)).find((ask) => ask.arguments?.id === id);
    if (!found) throw new Error(`nobody is asked about ${id}`);
    return found;
  }, 10_000);

type Try = readonly [what: string, make: () => Promise<unknown>];

/** Makes all of them; each must be refused, or wait to be approved, and none may run. Then whatever waits is declined. */
async function noneRuns({ target, attempt }: Stage, tries: readonly Try[], told = /./): Promise<void> {
  const before = runs().length;
  for (const [what, make] of tries)
    await attempt(what, async () => {
      let answer: string | undefined;
      const asked = make().then(
        (found) => {
          answer = JSON.stringify(found) ?? 'nothing';
        },
        (error) => {
          answer = String(error);
        },
      );
      await eventually(async () => answer !== undefined || (await inbox(target)).length > 0, 15_000);
      expect(runs().length).toBe(before);
      await eventually(async () => {
        for (const { id } of await inbox(target)) await decide(target, id, 'decline');
        return answer !== undefined;
      }, 15_000);
      await asked;
      expect(runs().length).toBe(before);
      expect(answer).toMatch(told);
    });
}

surface(
  'approvals',
  {
    'other spellings': ours(async (stage) => {
      const { target } = stage;
      const host = await rawHost(`${target.http}/mcp/guarded`);
      const all = await rawHost(`${target.http}/mcp`);
      const call = (name: string) => async () => host.ask('tools/call', { name, arguments: { id: 'x' } });
      const names = [
        ...[
          'tally',
          'TALLY',
          'Tally',
          'tally ',
          ' tally',
          'tally\n',
          'tally\0',
          'tally\u200b',
          '\u202etally',
          'ｔａｌｌｙ',
        ],
        ...['t\u0430lly', 'tally\u0301', 'guarded__tally', 'guarded.tally', 'guarded/tally', 'guarded__guarded__tally'],
        ...['tally?x', './tally', 'who/../tally', 'tally;who', 'who\0tally', 'tally__who', '%74ally', '=74ally'],
      ];
      const raw = (text: string) => async () => {
        const headers = { 'content-type': 'application/json', accept: BOTH, 'mcp-session-id': host.session };
        const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${text}}`;
        return (await request(`${target.http}/mcp/guarded`, { method: 'POST', headers, body })).body.text();
      };
      const twice = [
        '{"name":"who","name":"tally","arguments":{"id":"x"}}',
        '{"name":"tally","name":"who","arguments":{"id":"x"}}',
        '{"name":"who","n\\u0061me":"tally","arguments":{"id":"x"}}',
        '{"n\\u0061me":"tally","name":"who","arguments":{"id":"x"}}',
        '{"name":"\\u0074ally","arguments":{"id":"x"}}',
        '{"name":"tally","arguments":{"id":"x"},"arguments":{"id":"y"}}',
        '{"name":"who","arguments":{"id":"x"},"_meta":{"name":"tally"}}',
        '{"name":["tally"],"arguments":{"id":"x"}}',
        '{"name":{"toString":"tally"},"arguments":{"id":"x"}}',
      ];
      const hidden = (headers: Record<string, string>) => async () => {
        const body = { id: 1, method: 'tools/call', params: { name: 'tally', arguments: { id: 'x' } } };
        return (await host.send('POST', body, headers)).body.text();
      };
      const hashed = `=h.${createHash('sha256').update('tally').digest('hex')}`;
      const bus =
        (subject: string, headers: Record<string, string> = {}) =>
        async () =>
          over(target, subject, { body: { id: 'x' }, headers, timeout: 20_000 });
      await noneRuns(stage, [
        ...names.map((name): Try => [`the name ${JSON.stringify(name)}`, call(name)]),
        ...['guarded__tally', 'guarded__TALLY', 'Guarded__tally', 'guarded____tally', 'guarded_tally'].map(
          (name): Try => [`at /mcp ${name}`, () => all.ask('tools/call', { name, arguments: { id: 'x' } })],
        ),
        ...twice.map((text): Try => [text, raw(text)]),
        ['the header Mcp-Name: who', hidden({ 'mcp-name': 'who' })],
        ['the header Mcp-Method: ping', hidden({ 'mcp-method': 'ping' })],
        ['troupe.call.guarded.tally', bus('troupe.call.guarded.tally')],
        ['an escape that is none', bus('troupe.call.guarded.=74ally')],
        ['upper case', bus('troupe.call.guarded.TALLY')],
        ['Mcp-Name beside another subject', bus('troupe.call.guarded.who', { 'Mcp-Name': 'tally' })],
        ['another Mcp-Name beside the subject', bus('troupe.call.guarded.tally', { 'Mcp-Name': 'who' })],
        ['a hash of the name', bus(`troupe.call.guarded.${hashed}`, { 'Mcp-Name': 'tally' })],
        ['more tokens', bus('troupe.call.guarded.tally.who')],
        ['another server’s name before it', bus('troupe.call.echo.guarded__tally')],
        ['another caller', bus('troupe.as.bob.call.guarded.tally')],
      ]);
      await Promise.all([host.close(), all.close()]);
    }, 120),

    'every door': ours(async (stage) => {
      const { target } = stage;
      const viaHost =
        (door: (typeof DOOR_NAMES)[number], scope: string, more: object = {}) =>
        async () => {
          await using host = await hostAt(door, target, { scope });
          const name = scope === 'guarded' ? 'tally' : 'guarded__tally';
          await host.ask('tools/list');
          const said = await host.ask('tools/call', { name, arguments: { id: 'x' }, ...more }, 5);
          return said.result?.task ? await host.ask('tasks/result', { taskId: said.result.task.taskId }, 6) : said;
        };
      const params = { name: 'tally', arguments: { id: 'x' } };
      const bus = (headers: Record<string, string>) => async () => {
        const made = await over(target, 'troupe.call.guarded.tally', { body: { id: 'x' }, headers, timeout: 20_000 });
        const id = made.headers['Troupe-Task-Id'];
        return id ? over(target, `troupe.task.result.${id}`, { timeout: 20_000 }) : made;
      };
      await noneRuns(
        stage,
        [
          ...DOOR_NAMES.flatMap((door) =>
            ['', 'guarded', '@small'].map((scope): Try => [`${door} ${scope}`, viaHost(door, scope)]),
          ),
          ['a task over HTTP', viaHost('http', 'guarded', { task: { ttl: 60_000 } })],
          ['a task over the shim', viaHost('stdio', '', { task: { ttl: 60_000 } })],
          ['NATS', bus({})],
          ['a task over NATS', bus({ 'Troupe-Task': '1' })],
          ['a stream over NATS', () => streamed(target, 'troupe.call.guarded.tally', { id: 'x' })],
          [
            'the control socket',
            async () => {
              await using line = await taskLine(target.control); // the first that is said on it need not be the answer
              return await line.ask('call', { server: 'guarded', method: 'tools/call', params });
            },
          ],
          [
            'a task over the control socket',
            async () => {
              const made = await askControl<{ taskId: string }>(target.control, 'taskCreate', {
                ...{ server: 'guarded', tool: 'tally', params },
              });
              return askControl(target.control, 'taskResult', { id: made.taskId });
            },
          ],
        ],
        /approv/,
      );
    }, 120),

    'approved while cancelled': ours(async ({ target, attempt }) => {
      for (let round = 0; round < 30; round++)
        await attempt(`round ${round}`, async () => {
          const id = `race-${round}`;
          const headers = { 'Troupe-Request-Id': id };
          const reply = over(target, 'troupe.call.guarded.tally', { body: { id }, headers, timeout: 20_000 });
          const ask = await askAbout(target, id);
          const cancel = () => target.nats.connection.publish(`troupe.cancel.${id}`);
          if (round % 3 === 0) cancel();
          const accepted = decide(target, ask.id, 'accept');
          if (round % 3 === 1) cancel();
          const { code, data } = await reply;
          await accepted;
          const isSent = code === undefined || data?.data?.troupe?.delivery !== 'not sent';
          if (code === undefined) expect(runs(id)).toHaveLength(1);
          expect(runs(id).length).toBeLessThanOrEqual(isSent ? 1 : 0);
        });
    }),

    'a foreign approver': ours(async ({ target, attempt }) => {
      const body = { id: 'foreign' };
      const reply = over(target, 'troupe.as.alice.call.guarded.tally', { body, timeout: 30_000 });
      const { id } = await askAbout(target, 'foreign');
      for (const tree of ['troupe.as.bob', 'troupe', 'troupe.as.ALICE', 'troupe.as.=61lice', 'troupe.as._'])
        for (const action of ['accept', 'decline'])
          await attempt(`${tree}: ${action}`, async () => {
            const { code } = await over(target, `${tree}.answer.${id}`, { body: { action } });
            expect([400, 404, 503]).toContain(code);
          });
      const alice = await rawHost(`${target.http}/mcp`, { headers: { authorization: `Bearer ${ALICE}` } });
      await attempt('a tool of the same server', async () => {
        await alice.ask('tools/call', { name: 'guarded__who', arguments: {} });
        expect(runs('foreign')).toEqual([]);
      });
      await alice.close();
      await attempt('nothing has run, and her own word counts', async () => {
        expect(runs('foreign')).toEqual([]);
        await over(target, `troupe.as.alice.answer.${id}`, { body: { action: 'accept' } });
        expect([(await reply).code, runs('foreign').length]).toEqual([undefined, 1]);
      });
    }),

    'a caller that left': ours(async ({ target, attempt }) => {
      const params = (id: string) => ({ name: 'guarded__tally', arguments: { id } });
      const leaves: Record<string, (id: string) => Promise<() => Promise<unknown>>> = {
        async 'an HTTP connection'(id) {
          const host = await rawHost(`${target.http}/mcp`);
          const stream = await host.begin(1, 'tools/call', params(id));
          void (async () => {
            for await (const _ of stream.events);
          })().catch(() => {}); // it leaves
          return async () => {
            stream.leave();
            await (await host.send('DELETE')).body.dump();
            await host.close();
          };
        },
        async 'a WebSocket'(id) {
          const host = await hostAt('websocket', target);
          await host.send(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: params(id) }));
          return async () => host[Symbol.asyncDispose]();
        },
        async 'the shim'(id) {
          const host = await hostAt('stdio', target);
          await host.send(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: params(id) }));
          return async () => host[Symbol.asyncDispose]();
        },
        async 'a session on the bus'(id) {
          const host = await hostAt('nats', target);
          await host.send(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: params(id) }));
          return async () => host[Symbol.asyncDispose]();
        },
        // A plain request that is given up without a word is known only by the time that its caller named.
        async 'a connection to the bus'(id) {
          const { port, token } = target.nats;
          const own = await connect({ servers: `127.0.0.1:${port}`, ...(token && { token }) });
          const reply = createInbox();
          own.subscribe(reply);
          const all = headers();
          all.set('Troupe-Timeout', '2000');
          own.publish('troupe.call.guarded.tally', JSON.stringify({ id }), { reply, headers: all });
          await own.flush();
          return () => own.close();
        },
      };
      for (const [who, arrive] of Object.entries(leaves))
        await attempt(who, async () => {
          const id = `left-${who.replaceAll(' ', '-')}`;
          const leave = await arrive(id);
          const ask = await askAbout(target, id);
          await leave();
          await eventually(async () => (await inbox(target)).every((each) => each.id !== ask.id), 10_000).catch(
            () => {},
          );
          await decide(target, ask.id, 'accept');
          await over(target, 'troupe.call.guarded.who'); // what was sent before has arrived
          expect(runs(id)).toEqual([]);
        });
    }),
  },
  async () => {
    const guarded = fixture('tallies', { approve: { tally: 'always', '*': 'never' } });
    guarded.args.push(file);
    return { servers: { guarded }, troupe: { http: { tokens: { alice: ALICE } }, profiles: PROFILES } };
  },
);

const BOTH = 'application/json, text/event-stream';
const PROFILES = { small: { servers: ['guarded'] } };
