// Roots through a real daemon: a host names its directories, the servers that work for it hear of them, and nobody else does.

import { mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Daemon, daemon, fixture } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { type RawHost, rawHost } from '../support/host.ts';
import { type Scratch, scratch } from '../support/scratch.ts';
import { call, INITIALIZE, startShim } from '../support/shim.ts';

const TOKENS = { ann: 'a-long-token-of-ann' };
let d: Daemon;
let outside: Scratch;

beforeAll(async () => {
  outside = await scratch();
  d = await daemon({
    servers: {
      rooted: fixture('rooted'),
      everyone: fixture('rooted', { share: 'all' }),
      lazy: fixture('rooted', {}, { LAZY: '1' }),
    },
    // What hosts may offer lies within the home directory unless the configuration says otherwise.
    troupe: { http: { address: '127.0.0.1:0', tokens: TOKENS }, roots: { list: ['configured'] } },
  });
});
afterAll(async () => {
  await d?.[Symbol.asyncDispose]();
  await outside?.[Symbol.asyncDispose]();
});

type Known = { readonly last: { readonly roots: { uri: string; name?: string }[] }; readonly told: number };
const url = (path: string) => pathToFileURL(path).href;

function directory(name: string, at = d.dir): string {
  mkdirSync(join(at, name), { recursive: true });
  return join(at, name);
}

/** What the owner's process of that server has last been given. */
async function known(server = 'rooted'): Promise<Known> {
  return (await d.request(`troupe.call.${server}.known`)).data.structuredContent.value;
}
const uris = ({ last }: Known) => last?.roots.map(({ uri }) => uri);

type Host = {
  readonly host: RawHost;
  readonly questions: string[];
  call(name: string): Promise<any>;
  answers(roots: object[]): void;
};

/** A host over HTTP that answers with its roots whenever it is asked. */
async function rooted(path: string, roots: object[], headers: Record<string, string> = {}): Promise<Host> {
  const host = await rawHost(`${await d.http()}${path}`, { capabilities: { roots: { listChanged: true } }, headers });
  const questions: string[] = [];
  let offered = roots;
  let sequence = 0;
  return {
    ...{ host, questions },
    answers: (next) => {
      offered = next;
    },
    async call(name) {
      const id = ++sequence;
      const response = await host.send('POST', { id, method: 'tools/call', params: { name, arguments: {} } });
      if (!String(response.headers['content-type']).includes('event-stream'))
        return ((await response.body.json()) as any).result;
      let result: any;
      for (const data of (await response.body.text()).matchAll(/^data: ?(\{.*)$/gm)) {
        const message = JSON.parse(data[1] ?? '');
        if (message.method !== 'roots/list') result = message.id === id ? message.result : result;
        else {
          questions.push(message.id);
          await (await host.send('POST', { id: message.id, result: { roots: offered } })).body.dump();
        }
      }
      return result;
    },
  };
}

it('a host over HTTP is asked on the line of its first request, and again when its roots have changed', async () => {
  const [first, second] = [directory('first dir'), directory('second')];
  const { host, questions, call, answers } = await rooted('/mcp/rooted', [{ uri: url(first), name: 'First' }]);
  const standing = await host.get();
  const heard: any[] = [];
  void (async () => {
    for await (const { message } of standing.events) heard.push(message);
  })().catch(() => {}); // it ends with the host
  expect(questions).toEqual([]);
  const { told } = await known();
  await call('known');
  expect(questions).toHaveLength(1);
  await eventually(async () => expect((await known()).last.roots).toEqual([{ uri: url(first), name: 'First' }]));
  expect((await known()).told).toBe(told + 1);
  await call('known');
  expect(questions).toHaveLength(1);

  answers([{ uri: url(second) }, { uri: `${url(second)}/../second/` }]);
  await eventually(async () => {
    await host.notify('notifications/roots/list_changed', {});
    await call('known');
    expect(questions.length).toBeGreaterThan(1);
  });
  await eventually(async () => expect((await known()).last.roots).toEqual([{ uri: url(second) }]));
  expect(uris(await known('everyone'))).toEqual([]); // the session came to the endpoint of one server

  await (await host.send('DELETE')).body.dump();
  await eventually(async () => expect(uris(await known())).toEqual([]));
  expect(heard.filter(({ method }) => method === 'roots/list')).toEqual([]);
  await host.close();
});

it("another principal's server, and one that all share, hear nothing of a principal's roots", async () => {
  const [hers, mine] = [directory('hers'), directory('mine')];
  const ann = await rooted('/mcp', [{ uri: url(hers) }], { authorization: `Bearer ${TOKENS.ann}` });
  const own = await rooted('/mcp', [{ uri: url(mine) }]);
  await Promise.all([ann.call('rooted__known'), own.call('rooted__known')]);
  await eventually(async () => {
    expect(uris((await ann.call('rooted__known')).structuredContent.value)).toEqual([url(hers)]);
    expect(uris(await known())).toEqual([url(mine)]);
    expect(uris(await known('everyone'))).toEqual([url(mine)]);
  });
  expect(uris((await ann.call('everyone__known')).structuredContent.value)).toEqual([url(mine)]);
  await Promise.all([ann, own].map(async ({ host }) => (await host.send('DELETE')).body.dump()));
  await eventually(async () => expect(uris(await known())).toEqual([]));
  await Promise.all([ann.host.close(), own.host.close()]);
});

it('what leads out of what is allowed is not given on, and the owner is shown why', async () => {
  const secret = directory('secret', outside.path);
  symlinkSync(secret, join(d.dir, 'escape'));
  const inside = directory('inside');
  symlinkSync(inside, join(outside.path, 'back'));
  const back = join(outside.path, 'back'); // it leads inside, but is not looked at to know that
  const offered = [join(d.dir, 'escape'), secret, back, join(d.dir, 'nowhere'), inside].map((path) => ({
    uri: url(path),
  }));
  const { host, call } = await rooted('/mcp/rooted', [...offered, { uri: 'https://example.com/' }]);
  await call('known');
  await eventually(async () => expect(uris(await known())).toEqual([url(inside)]));
  const { stdout } = await d.cli('roots', '--json');
  for (const part of [secret, 'x-troupe.roots.allow', 'no file:// URI', 'does not exist'])
    expect(stdout).toContain(part);
  await eventually(async () => expect(await d.log()).toContain('lies outside what x-troupe.roots.allow allows'));
  await (await host.send('DELETE')).body.dump();
  await eventually(async () => expect(uris(await known())).toEqual([]));
  await host.close();
});

it('a host over the stdio shim is asked as soon as it is ready, and its roots go with it', async () => {
  const path = directory('of the shim');
  const shim = startShim(d.env, 'rooted');
  const roots = { listChanged: true };
  shim.send({ ...INITIALIZE, params: { ...INITIALIZE.params, capabilities: { roots } } });
  await shim.answer(0);
  expect(shim.lines.filter(({ method }) => method === 'roots/list')).toEqual([]);
  shim.send({ method: 'notifications/initialized' });
  const asked = (count: number) =>
    eventually(() => {
      const questions = shim.lines.filter(({ method }) => method === 'roots/list');
      expect(questions).toHaveLength(count);
      return questions[count - 1].id;
    }, 10_000);
  shim.send({ id: await asked(1), result: { roots: [{ uri: url(path) }] } });
  await eventually(async () => expect(uris(await known())).toEqual([url(path)]));
  shim.send({ method: 'notifications/roots/list_changed' });
  shim.send({ id: await asked(2), result: { roots: [{ uri: url(d.dir), name: 'Home' }] } });
  await eventually(async () => expect((await known()).last.roots).toEqual([{ uri: url(d.dir), name: 'Home' }]));
  shim.send(call(1, 'known'));
  expect(uris((await shim.answer(1)).result.structuredContent.value)).toEqual([url(d.dir)]);
  shim.child.stdin.end();
  await shim.exit;
  await eventually(async () => expect(uris(await known())).toEqual([]));
});

it("the owner's and the configuration's roots are every server's, and one that never asked is told as well", async () => {
  const added = directory('added', outside.path);
  expect((await d.cli('roots', 'add', added, '--name', 'Added')).exitCode).toBe(0);
  await eventually(async () => expect((await known()).last.roots).toEqual([{ uri: url(added), name: 'Added' }]));
  await eventually(async () => expect((await known('lazy')).told).toBeGreaterThan(0));
  expect((await known('lazy')).last).toBeNull();
  expect((await d.request('troupe.call.lazy.ask')).data.structuredContent.value.roots).toHaveLength(1);
  const configured = directory('configured');
  await eventually(async () => expect(uris(await known())).toEqual([url(configured), url(added)]), 15_000);
  rmSync(added, { recursive: true });
  await eventually(async () => expect(uris(await known())).toEqual([url(configured)]), 15_000);
  expect((await d.cli('roots', 'rm', added)).exitCode).toBe(0);
  expect((await d.cli('roots', 'add', added)).stderr).toContain('does not exist');
  rmSync(configured, { recursive: true });
}, 60_000);

it("a session's roots outlive the daemon, and its host is asked again", async () => {
  const path = directory('lasting');
  const { host, questions, call, answers } = await rooted('/mcp/rooted', [{ uri: url(path) }]);
  await call('known');
  await eventually(async () => expect(uris(await known())).toEqual([url(path)]));
  await d.kill();
  await d.start();
  await eventually(async () => expect(uris(await known())).toEqual([url(path)]));
  answers([]);
  const again = await rawHost(`${await d.http()}/mcp/rooted`, { session: host.session });
  const stream = await again.begin('after', 'tools/call', { name: 'known', arguments: {} });
  const first = (await stream.events.next()).value?.message;
  expect([questions.length, first.method]).toEqual([1, 'roots/list']);
  await (await again.send('POST', { id: first.id, result: { roots: [] } })).body.dump();
  await eventually(async () => expect(uris(await known())).toEqual([]));
  stream.leave();
  await Promise.all([host.close(), again.close()]);
}, 60_000);
