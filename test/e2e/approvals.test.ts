// Tools that must not run unseen, with the real daemon: their calls wait in the inbox until somebody lets them pass, over
// whichever door they came, and what was approved once is still approved after a restart.

import { access, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { AskView } from '../../src/asks/ask.ts';
import { askControl } from '../support/control.ts';
import { type Daemon, daemon, fixture, ROOT } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { rawHost } from '../support/host.ts';

let d: Daemon;
const SERVERS = (note = '') => ({
  danger: fixture('destructive', { approve: 'destructive' }),
  hasty: fixture('destructive', { approve: 'destructive', timeoutMs: '1s' }),
  plain: fixture('destructive'),
  never: fixture('destructive', { approve: { wipe: 'never', '*': 'always' } }),
  always: fixture('destructive', { approve: { 'loo*': 'always' } }),
  once: fixture('destructive', { approve: 'once' }, { NOTE: note }),
  silent: fixture('destructive', { drainMs: '100ms', approve: 'destructive' }, { SILENT: '1' }),
  blind: fixture('destructive', { drainMs: '100ms' }, { SILENT: '1' }),
});
beforeAll(async () => {
  d = await daemon({ servers: SERVERS(), troupe: { http: { address: '127.0.0.1:0' } } });
}, 60_000);
afterAll(async () => d[Symbol.asyncDispose]());

const inbox = async () => (await askControl<{ asks: AskView[] }>(join(d.state, 'control.sock'), 'inbox')).asks;
/** The one question about a tool of that server. */
const waiting = (server: string) =>
  eventually(async () => {
    const asks = (await inbox()).filter((ask) => ask.server === server);
    expect(asks).toHaveLength(1);
    return asks[0] as AskView;
  });
const call = (server: string, tool: string, path = 'a') => d.request(`troupe.call.${server}.${tool}`, { path });
const answer = (id: string, action: string) => askControl(join(d.state, 'control.sock'), 'answer', { id, action });
const textOf = ({ data, error }: { data: any; error: string | undefined }) => data?.content?.[0]?.text ?? error;

test('a destructive tool waits with its arguments shown, and runs when `troupe answer --accept` lets it', async () => {
  const reply = call('danger', 'wipe', '/tmp/x');
  const ask = await waiting('danger');
  expect(ask).toMatchObject({
    ...{ kind: 'approval', server: 'danger', tool: 'wipe', principal: '_', arguments: { path: '/tmp/x' } },
    message: 'wipe of danger wants to run',
  });
  expect((await d.server('danger')).calls).toBe(0);
  const shown = JSON.parse((await d.cli('inbox', '--json')).stdout);
  expect(shown.map(({ id }: AskView) => id)).toEqual([ask.id]);
  const { exitCode, stdout, stderr } = await d.cli('answer', ask.id, '--accept');
  expect([exitCode, stdout, stderr]).toEqual([0, 'the call to danger goes on, if its caller is still there', '']);
  expect(textOf(await reply)).toBe('wiped /tmp/x, call 1');
  expect(await inbox()).toEqual([]);
});

test('a tool that was declined is not called, and its caller is told who declined', async () => {
  const reply = call('danger', 'wipe');
  const { id } = await waiting('danger');
  await d.cli('answer', id, '--decline');
  const { code, error } = await reply;
  expect([code, error]).toEqual([
    403,
    'tool wipe of danger was not approved (declined by troupe answer); it was not called',
  ]);
  expect(textOf(await call('danger', 'look'))).toBe('looked at a, call 2');
});

test('a destructive tool that no rule names, and one marked `never`, run at once; a rule asks about any', async () => {
  expect(textOf(await call('plain', 'wipe'))).toBe('wiped a, call 1');
  expect(textOf(await call('never', 'wipe'))).toBe('wiped a, call 1');
  const looked = call('always', 'look');
  await answer((await waiting('always')).id, 'accept');
  expect(textOf(await looked)).toBe('looked at a, call 1');
  expect(await inbox()).toEqual([]);
});

test('the time-out of a call does not run while somebody is asked, and `troupe call` waits for the word too', async () => {
  const reply = d.cli('call', 'hasty', 'wipe', 'path=b');
  const { id } = await waiting('hasty');
  const openedAt = performance.now();
  await eventually(() => performance.now() - openedAt > 1_300);
  await answer(id, 'accept');
  expect((await reply).stdout).toContain('wiped b');
});

test('a caller that leaves takes its question along', async () => {
  const shell = d.cli('call', 'danger', 'wipe', 'path=c');
  await waiting('danger');
  shell.kill('SIGINT');
  await shell;
  await eventually(async () => expect(await inbox()).toEqual([]));
  const reply = d.request('troupe.call.danger.wipe', {}, { headers: { 'Troupe-Request-Id': 'mine' } });
  await waiting('danger');
  await d.request('troupe.cancel.mine');
  expect((await reply).code).toBe(499);
  expect(await inbox()).toEqual([]);
});

test('a host with forms is asked itself, and its word counts', async () => {
  const host = await rawHost(`${await d.http()}/mcp/danger`, { capabilities: { elicitation: {} } });
  const stream = await host.begin(7, 'tools/call', { name: 'wipe', arguments: { path: 'host' } });
  let result: any;
  for await (const { message } of stream.events) {
    if (message.method === 'elicitation/create') {
      expect(message.params.message).toMatch(/wipe.*danger.*"path":"host"/s);
      await (await host.send('POST', { id: message.id, result: { action: 'accept', content: {} } })).body.dump();
    } else if (message.id === 7) {
      result = message.result;
      break;
    }
  }
  expect(result.content[0].text).toMatch(/^wiped host/);
  expect(await inbox()).toEqual([]);
  host.close();
});

test('a server that never says what it offers escapes no rule by that, and waits for nobody where there is none', async () => {
  const [looked, blind] = [call('silent', 'look'), call('blind', 'wipe')];
  await answer((await waiting('silent')).id, 'accept');
  expect(textOf(await looked)).toBe('looked at a, call 1');
  expect(textOf(await blind)).toBe('wiped a, call 1');
  const wiped = call('silent', 'wipe');
  await answer((await waiting('silent')).id, 'decline');
  expect((await wiped).code).toBe(403);
  expect(await inbox()).toEqual([]);
}, 30_000);

test('what was approved once stays approved over a restart, until its definition is another', async () => {
  const first = call('once', 'wipe');
  const second = call('once', 'wipe');
  await eventually(async () => expect(await inbox()).toHaveLength(2));
  await answer((await inbox())[0]?.id as string, 'accept');
  expect([textOf(await first), textOf(await second)].sort()).toEqual(['wiped a, call 1', 'wiped a, call 2']);
  expect(textOf(await call('once', 'wipe'))).toBe('wiped a, call 3');
  await d.kill();
  await d.start();
  expect(textOf(await call('once', 'wipe'))).toBe('wiped a, call 1');
  const { pid } = await d.server('once');
  await d.write(SERVERS('It does something else now.'));
  await eventually(async () => {
    const { pid: next, state } = await d.server('once');
    expect([next === pid, state]).toEqual([false, 'ready']);
  }, 10_000);
  const changed = call('once', 'wipe');
  await answer((await waiting('once')).id, 'decline');
  expect((await changed).code).toBe(403);
}, 60_000);

test('the file server is asked about before it writes', async () => {
  const entry = join(ROOT, 'node_modules/@modelcontextprotocol/server-filesystem/dist/index.js');
  const rules = { approve: 'destructive' };
  await d.write({ files: { command: process.execPath, args: [entry, d.dir], 'x-troupe': rules } });
  await d.until('files', 'ready');
  const path = join(d.dir, 'note.txt');
  const reply = d.request('troupe.call.files.write_file', { path, content: 'hello' });
  const { id, tool } = await waiting('files');
  await expect(access(path)).rejects.toThrow();
  await answer(id, 'accept');
  await reply;
  expect([tool, await readFile(path, 'utf8')]).toEqual(['write_file', 'hello']);
}, 30_000);

test('a server that is removed takes the calls along that wait for it, and so does the end of the daemon', async () => {
  await d.write({ danger: fixture('destructive', { approve: 'always' }) });
  await d.until('danger', 'ready');
  const removed = call('danger', 'wipe');
  await waiting('danger');
  await d.write({ other: fixture('destructive', { approve: 'always' }) });
  expect(await removed).toMatchObject({ code: 503, error: expect.stringContaining('it was removed') });
  await d.until('other', 'ready');
  const host = await rawHost(`${await d.http()}/mcp/other`);
  const answer = host.ask('tools/call', { name: 'wipe', arguments: {} });
  await waiting('other');
  const ended = call('other', 'wipe');
  await eventually(async () => expect(await inbox()).toHaveLength(2));
  const [{ code }, { error }] = await Promise.all([ended, answer, d.down()]);
  expect([code, error.code]).toEqual([503, -32010]);
  host.close();
}, 30_000);
