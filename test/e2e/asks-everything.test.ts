// The reference server's own questions, through every way in: hosts on both SDKs, a NATS caller and the command line with the
// inbox, and two hosts at once, of which the bystander sees nothing.

import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AskView } from '../../src/asks/ask.ts';
import { answeringHost } from '../support/answering-host.ts';
import { type Daemon, daemon, ROOT } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';

const EVERYTHING = join(ROOT, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js');
const PAGE = { url: 'https://example.com/login', message: 'Log in there' };

let d: Daemon;
let url = '';
beforeAll(async () => {
  d = await daemon({
    servers: { everything: { command: process.execPath, args: [EVERYTHING, 'stdio'] } },
    troupe: { http: { address: '127.0.0.1:0' } },
  });
  await d.until('everything', 'ready', 30_000);
  url = `${await d.http()}/mcp/everything`;
}, 60_000);
afterAll(() => d?.[Symbol.asyncDispose]());

const textOf = (result: any): string => result.content.map(({ text }: any) => text).join('\n');
const inbox = async (): Promise<AskView[]> => JSON.parse((await d.cli('inbox', '--json')).stdout);
const theAsk = (isIt: (view: AskView) => boolean = () => true): Promise<AskView> =>
  eventually(async () => {
    const found = (await inbox()).find(isIt);
    if (!found) throw new Error('no such question');
    return found;
  }, 15_000);
const answer = async (id: string, ...words: string[]) => {
  const { exitCode, stdout, stderr } = await d.cli('answer', id, ...words);
  expect([exitCode, stderr]).toEqual([0, expect.any(String)]);
  return stdout;
};

describe.each(['v1', 'v2'] as const)('a host on SDK %s', (version) => {
  it('is asked what the server wants to know, and its answers come back', async () => {
    await using host = await answeringHost(version, url, 'Ada');
    expect(textOf(await host.call('trigger-elicitation-request'))).toContain('- Name: Ada');
    expect(textOf(await host.call('trigger-sampling-request', { prompt: 'say hi' }))).toContain('Ada heard:');
    expect(textOf(await host.call('trigger-url-elicitation', PAGE))).toContain('accept');
    expect(host.asked('elicitation/create')).toMatchObject([{ message: expect.any(String) }, { ...PAGE, mode: 'url' }]);
    expect(await inbox()).toEqual([]);
  });

  it('knows itself what to do when an address must be visited first', async () => {
    await using host = await answeringHost(version, url, 'Ada');
    const refused = host.call('trigger-url-elicitation', { ...PAGE, elicitationId: `of ${version}`, errorPath: true });
    await expect(refused).rejects.toMatchObject({ code: -32042 });
    expect(await inbox()).toEqual([]);
  });

  it("has its roots known to the server, and nobody else's", async () => {
    const mine = pathToFileURL(d.dir).href; // within the home of the daemon's owner
    await using host = await answeringHost(version, url, 'Ada', [mine, 'file:///no/such/place']);
    await eventually(async () => expect(textOf(await host.call('get-roots-list'))).toContain(mine), 15_000);
    expect(textOf(await host.call('get-roots-list'))).not.toContain('no/such/place');
    await host.changed([]);
    await eventually(async () => expect(textOf(await host.call('get-roots-list'))).not.toContain(mine), 15_000);
  });
});

describe('two hosts at once', () => {
  it('are each asked their own questions only', async () => {
    await using ada = await answeringHost('v1', url, 'Ada');
    await using bob = await answeringHost('v2', url, 'Bob');
    await using bystander = await answeringHost('v1', url, 'Eve');
    const rounds = Array.from({ length: 5 }, (_, n) => n);
    const calls = rounds.flatMap(() => [
      ada.call('trigger-elicitation-request'),
      bob.call('trigger-elicitation-request'),
    ]);
    const names = (await Promise.all(calls)).map((result) => /- Name: (\w+)/.exec(textOf(result))?.[1]);
    expect(names).toEqual(rounds.flatMap(() => ['Ada', 'Bob']));
    expect([ada, bob, bystander].map((host) => host.asked('elicitation/create').length)).toEqual([5, 5, 0]);
  });
});

describe('a NATS caller and the inbox', () => {
  const request = (tool: string, args: object = {}) =>
    d.request(`troupe.call.everything.${tool}`, args, { timeout: 30_000 });

  it('waits for the answer to a form', async () => {
    const call = request('trigger-elicitation-request');
    const view = await theAsk();
    expect(view).toMatchObject({ kind: 'elicitation', mode: 'form', server: 'everything', principal: '_' });
    const bad = await d.cli('answer', view.id, '--accept', '{"name":"Ada","email":"none"}');
    expect([bad.exitCode, bad.stderr]).toEqual([2, expect.stringMatching(/email/)]);
    await answer(view.id, '--accept', '{"name":"Ada"}');
    expect(textOf((await call).data)).toContain('- Name: Ada');
    const late = await d.cli('answer', view.id, '--decline');
    expect([late.exitCode, late.stderr]).toEqual([1, expect.stringMatching(/already answered by troupe answer/)]);
  });

  it('waits for a message, which a person may write', async () => {
    const call = request('trigger-sampling-request', { prompt: 'say hi' });
    const { id, kind } = await theAsk();
    expect(kind).toBe('sampling');
    await answer(id, '--accept', '{"text":"hello from a person"}');
    expect(textOf((await call).data)).toContain('hello from a person');
  });

  it('waits until an address was visited, and is then made once more', async () => {
    const call = request('trigger-url-elicitation', { ...PAGE, elicitationId: 'of nats', errorPath: true });
    const first = await theAsk(({ url: page }) => page === 'https://modelcontextprotocol.io');
    expect(await answer(first.id, '--accept', '--json')).toContain('"open"');
    expect((await theAsk()).stage).toBe('done');
    expect(await answer(first.id, '--accept', '--json')).toContain('"completed"');
    const second = await theAsk(({ url: page }) => page === PAGE.url); // the retry takes the other path
    await answer(second.id, '--accept');
    expect(textOf((await call).data)).toContain('accept');
  });
});

describe('troupe call and the inbox', () => {
  it('says how to answer, and goes on when somebody has', async () => {
    const call = d.cli('call', 'everything', 'trigger-elicitation-request');
    const { id } = await theAsk();
    await answer(id, '--decline');
    const { exitCode, stdout, stderr } = await call;
    expect([exitCode, stdout]).toEqual([0, expect.stringMatching(/declined/)]);
    expect(stderr).toContain(`troupe answer ${id.slice(0, 8)}`);
  });

  it('goes on when an address was agreed to, and when a person spoke for a model', async () => {
    const visiting = d.cli('call', 'everything', 'trigger-url-elicitation', `url=${PAGE.url}`);
    await answer((await theAsk(({ url: page }) => page === PAGE.url)).id, '--accept');
    expect((await visiting).stdout).toContain('accept');
    const sampling = d.cli('call', 'everything', 'trigger-sampling-request', 'prompt=say hi');
    await answer((await theAsk(({ kind }) => kind === 'sampling')).id, '--accept', '{"text":"hello by hand"}');
    expect((await sampling).stdout).toContain('hello by hand');
  });
});

it('tells the server of the roots that the owner adds, whoever calls', async () => {
  const uri = pathToFileURL(d.dir).href;
  expect((await d.cli('roots', 'add', d.dir)).exitCode).toBe(0);
  const known = async () => [
    textOf((await d.request('troupe.call.everything.get-roots-list')).data),
    (await d.cli('call', 'everything', 'get-roots-list')).stdout,
  ];
  await eventually(async () => expect(await known()).toEqual([1, 2].map(() => expect.stringContaining(uri))), 15_000);
  expect((await d.cli('roots', 'rm', uri)).exitCode).toBe(0);
  await eventually(async () => expect((await known()).join()).not.toContain(uri), 15_000);
});

it('keeps nothing of what was asked and answered in its log and its database', async () => {
  const said = 'the-answer-of-a-person';
  const call = d.request('troupe.call.everything.trigger-elicitation-request', {}, { timeout: 30_000 });
  const { id } = await theAsk();
  await answer(id, '--accept', JSON.stringify({ name: said }));
  expect(textOf((await call).data)).toContain(said);
  expect(await d.filesWith(said)).toEqual([]);
  await eventually(async () => (await d.log()).includes(id.slice(0, 8))); // it is written behind
  expect(await d.log()).not.toContain('Please provide inputs');
});
