// All roots together, on real directories and a real store: who is given which, who is told that they are others, and what
// the owner is shown.

import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import type { Config } from '../../src/config/schema.ts';
import { type OperationName, type Ports, perform } from '../../src/operations/operations.ts';
import { answerRoots, createRoots } from '../../src/roots/roots.ts';
import { sessionHolder } from '../../src/servers/instances.ts';
import type { Member } from '../../src/servers/member.ts';
import { openStore } from '../../src/store/store.ts';
import { eventually } from '../support/eventually.ts';
import { scratch } from '../support/scratch.ts';

const url = (path: string) => pathToFileURL(path).href;

/** As the control socket asks for them. */
function methodsOf(roots: Ports['roots']) {
  const ask = async (name: OperationName, params: object = {}) => {
    const owner = { principal: undefined, by: 'a test' };
    const result = await perform({ roots } as Ports, name, Buffer.from(JSON.stringify(params)), owner);
    return JSON.parse(result.toString());
  };
  return {
    roots: () => ask('roots'),
    rootsAdd: (params: object) => ask('rootsAdd', params),
    rootsRemove: (params: object) => ask('rootsRemove', params),
  };
}

async function stage() {
  const dir = await scratch();
  const at = (name: string) => join(dir.path, name);
  for (const name of ['state', 'home/ann', 'home/ben', 'outside', 'configured'])
    mkdirSync(at(name), { recursive: true });
  const store = await openStore(at('state'));
  const settings = { list: [at('configured')], allow: [at('home')] };
  const config = { roots: settings, profiles: { few: { servers: ['files'], tools: {} } } } as unknown as Config;
  const lines: string[] = [];
  const logger = pino({}, { write: (line: string) => void lines.push(JSON.parse(line).msg) });
  const roots = createRoots({ config: () => config, store, logger });
  const session = async (id: string, uris: string[], { principal = '_', scope = '' } = {}) => {
    await store.commit('addSession', [
      id,
      principal,
      'http',
      scope,
      '2025-11-25',
      '{}',
      '{}',
      1,
      Date.now(),
      principal,
      100,
    ]);
    await roots.host(id, { roots: uris.map((uri) => ({ uri })), isCut: false });
  };
  const member = (principal = '_', server = 'files', onBehalfOf = principal) =>
    ({ server, principal, onBehalfOf, state: 'ready', logger }) as Member;
  const given = (...words: Parameters<typeof member>) =>
    roots.for(member(...words)).map(({ uri }) => decodeURI(uri).replace(`file://${dir.path}/`, ''));
  return {
    ...{ dir: dir.path, at, store, settings, lines, roots, session, member, given, methods: methodsOf(roots) },
    async [Symbol.asyncDispose]() {
      roots.close();
      await store.close();
      await dir[Symbol.asyncDispose]();
    },
  };
}

describe('a server is given', () => {
  it('the roots of the configuration, of the owner and of the hosts, in that order and each once', async () => {
    await using s = await stage();
    mkdirSync(s.at('outside/a b#'));
    await s.roots.add(s.at('outside/a b#'), 'Mine');
    await s.session('one', [url(s.at('configured'))]);
    await s.session('two', [url(s.at('home/ben')), url(s.at('home/../home/ann'))]);
    const twice = ['', '/'].map((end, index) => ({
      uri: url(s.at('home/ann')) + end,
      name: ['Mine', 'Later'][index] ?? '',
    }));
    await s.roots.host('one', { roots: twice, isCut: false });
    expect(s.roots.for(s.member())).toEqual([
      { uri: url(s.at('configured')) },
      { uri: url(s.at('outside/a b#')), name: 'Mine' },
      { uri: url(s.at('home/ann')), name: 'Mine' },
      { uri: url(s.at('home/ben')) },
    ]);
    expect(JSON.parse(answerRoots(s.member(), s.roots).toString())).toEqual({ roots: s.roots.for(s.member()) });
  });

  it('nothing of another principal, of another endpoint, or of another session than its only one', async () => {
    await using s = await stage();
    s.settings.list = [];
    for (const name of ['own', 'a', 'b', 'few', 'files', 'other']) mkdirSync(s.at(`home/${name}`));
    await s.session('own', [url(s.at('home/own'))]);
    await s.session('a', [url(s.at('home/a'))], { principal: 'ann' });
    await s.session('b', [url(s.at('home/b'))], { principal: 'ben' });
    expect([s.given('_'), s.given('ann'), s.given('ben'), s.given('eve')]).toEqual([
      ...[['home/own'], ['home/a'], ['home/b'], []],
    ]);
    await s.session('few', [url(s.at('home/few'))], { principal: 'ann', scope: '@few' });
    await s.session('files', [url(s.at('home/files'))], { principal: 'ann', scope: 'files' });
    await s.session('gone', [url(s.at('home/other'))], { principal: 'ann', scope: '@gone' });
    expect(s.given('ann', 'files').sort()).toEqual(['home/a', 'home/few', 'home/files']);
    expect(s.given('ann', 'echo')).toEqual(['home/a']);
    expect(s.given(sessionHolder('few'), 'files', 'ann')).toEqual(['home/few']);
    expect(s.given(sessionHolder('b'), 'files', 'ann')).toEqual([]);
  });

  it('nothing that a host offers outside of what is allowed, by whatever link or spelling', async () => {
    await using s = await stage();
    s.settings.list = [];
    symlinkSync(s.at('outside'), s.at('home/escape'));
    mkdirSync(s.at('homes'));
    const escapes = ['outside', 'home/escape', 'home/../outside', 'homes', 'home/ann/../../outside', ''];
    await s.session('one', [
      ...escapes.map((name) => `file://${s.dir}/${name}`),
      ...['home/%2e%2e/outside', 'home/ann/%2E%2E/%2e./outside'].map((name) => `file://${s.dir}/${name}`),
      ...['file:///', 'file:///etc/passwd', 'file:///proc/self/root/etc', 'https://example.com', 'file://host/x'],
    ]);
    expect(s.given()).toEqual([]);
    symlinkSync(s.at('outside'), s.at('elsewhere'));
    s.settings.allow = [s.at('elsewhere')]; // what is allowed may be a link too
    expect(s.given()).toContain('outside');
    s.settings.allow = [s.at('nowhere')];
    expect(s.given()).toEqual([]);
  });

  it('what the rows say: of sessions that have not ended, whoever serves them', async () => {
    await using s = await stage();
    s.settings.list = [];
    await s.session('one', [url(s.at('home/ann'))]);
    const again = createRoots({
      config: () => ({ roots: s.settings, profiles: {} }) as never,
      store: s.store,
      logger: s.member().logger,
    });
    expect(again.for(s.member()).map(({ uri }) => uri)).toEqual([url(s.at('home/ann'))]);
    again.close();
    await s.store.commit('endSession', [Date.now(), 'one']);
    s.roots.refresh();
    expect(s.given()).toEqual([]);
  });
});

describe('a server is told', () => {
  const open = (s: Awaited<ReturnType<typeof stage>>, member: Member) => {
    const told: string[] = [];
    s.roots.opened(
      member,
      (method) => void told.push(method),
      async () => {},
    );
    return told;
  };
  const CHANGED = 'notifications/roots/list_changed';

  it('when a session comes, changes and goes, and nothing when only others see it', async () => {
    await using s = await stage();
    const [mine, hers] = [open(s, s.member()), open(s, s.member('ann'))];
    await s.session('one', [url(s.at('home/ann'))]);
    await eventually(() => expect(mine).toEqual([CHANGED]));
    await s.roots.host('one', { roots: [{ uri: url(s.at('home/ben')) }], isCut: false });
    await eventually(() => expect(mine).toHaveLength(2));
    await s.roots.host('one', undefined);
    await eventually(() => expect(mine).toHaveLength(3));
    expect(hers).toEqual([]);
  });

  it('not of what it has asked for since', async () => {
    await using s = await stage();
    const [member, other] = [s.member(), s.member()];
    const [told, toldOther] = [open(s, member), open(s, other)];
    await s.session('one', [url(s.at('home/ann'))]);
    answerRoots(member, s.roots);
    await eventually(() => expect(toldOther).toHaveLength(1));
    expect(told).toEqual([]);
    await s.roots.add(s.at('home/ben'));
    await eventually(() => expect(toldOther).toHaveLength(2));
    await eventually(() => expect(told).toEqual([CHANGED]));
  });

  it('of a directory that is gone, and of sessions that another daemon ended, in some seconds', async () => {
    await using s = await stage();
    await s.session('one', [url(s.at('home/ann'))], { principal: 'ann' });
    const [told, hers] = [open(s, s.member()), open(s, s.member('ann', 'echo'))];
    rmSync(s.at('configured'), { recursive: true });
    await eventually(() => expect([told.length, hers.length]).toEqual([1, 1]), 15_000);
    await s.store.commit('endSession', [Date.now(), 'one']);
    await eventually(() => expect([told.length, hers.length]).toEqual([1, 2]), 15_000);
    expect([s.given(), s.given('ann')]).toEqual([[], []]);
  }, 40_000);
});

describe('the owner', () => {
  it('is shown every root, and what is wrong with those that servers do not hear of', async () => {
    await using s = await stage();
    await s.roots.add(s.at('outside'), 'Out');
    writeFileSync(s.at('home/file'), '');
    s.settings.list.push(s.at('home/file'), s.at('nowhere'));
    await s.session('one', [url(s.at('home/file')), url(s.at('outside')), 'file:///x\u001b[31m'], { principal: 'ann' });
    expect(await s.methods.roots()).toEqual({
      roots: [
        { uri: url(s.at('configured')), from: 'config' },
        { uri: url(s.at('home/file')), from: 'config', problem: expect.stringContaining('is no directory') },
        { uri: url(s.at('nowhere')), from: 'config', problem: expect.stringContaining('does not exist; create it') },
        { uri: url(s.at('outside')), name: 'Out', from: 'owner' },
        { uri: url(s.at('home/file')), from: 'host' },
        { uri: url(s.at('outside')), from: 'host', problem: expect.stringContaining('x-troupe.roots.allow') },
        { uri: 'file:///x\u001b[31m', from: 'host', problem: expect.stringContaining('percent-encode') },
      ],
    });
    await s.methods.roots();
    expect(s.lines.filter((line) => line.includes(`${url(s.at('outside'))} (from a host)`))).toHaveLength(1);
    expect(s.lines.filter((line) => line.includes('\u001b'))).toEqual([]);
  });

  it('adds a directory once, by its real name, and takes it back by any', async () => {
    await using s = await stage();
    symlinkSync(s.at('outside'), s.at('link'));
    const { rootsAdd, rootsRemove } = s.methods;
    const real = { uri: url(s.at('outside')) };
    expect(await rootsAdd({ path: s.at('link') })).toEqual(real);
    await expect(rootsAdd({ path: `${s.at('outside')}/` })).rejects.toThrow(
      'is a root already; troupe roots lists them',
    );
    expect(await rootsAdd({ path: real.uri, name: 'Now named' })).toEqual(real);
    expect(s.roots.list()).toContainEqual({ ...real, name: 'Now named', from: 'owner' });
    expect(await rootsRemove({ path: `${s.at('link')}/` })).toEqual({ ...real, wasThere: true });
    expect(await rootsRemove({ path: s.at('link') })).toEqual({ ...real, wasThere: false });
    await rootsAdd({ path: s.at('link') });
    rmSync(s.at('outside'), { recursive: true });
    await eventually(() => expect(s.given()).toEqual(['configured']));
    expect(await rootsRemove({ path: real.uri })).toEqual({ ...real, wasThere: true });
  });

  it('agreed to that very directory, not to a link that takes its place', async () => {
    await using s = await stage();
    s.settings.list = [];
    await s.roots.add(s.at('outside'));
    renameSync(s.at('outside'), s.at('moved'));
    symlinkSync(s.at('home'), s.at('outside'));
    expect(s.given()).toEqual([]);
    expect(s.roots.list()[0]?.problem).toContain(`has become a link to ${s.at('home')}`);
  });

  it.each([
    [{}, 'name a directory'],
    [{ path: 'relative' }, 'relative is no absolute path'],
    [{ path: '/nowhere/at/all' }, '/nowhere/at/all does not exist; create it'],
    [{ path: '/etc/passwd' }, '/etc/passwd is no directory'],
    [{ path: 'file://host/x' }, 'only files of this machine'],
  ])('is told what is wrong with %j', async (params, why) => {
    await using s = await stage();
    await expect(s.methods.rootsAdd(params)).rejects.toThrow(why);
    await expect(s.methods.rootsRemove({ path: s.at('configured') })).rejects.toThrow(
      'take it out of x-troupe.roots.list',
    );
  });
});
