import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Address } from '../../src/bus/subjects.ts';
import { decodeName, encodeName, nameMatches, requestedName, subjects } from '../../src/bus/subjects.ts';

const TERM = /^[\x21-\x7e]+$/;
const legal = (subject: string) =>
  subject.split('.').every((token) => TERM.test(token) && !token.includes('*') && !token.includes('>'));

const anyName = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 80 }),
  fc.string({ unit: fc.constantFrom('.', '*', '>', '=', ' ', '_', '-', 'a', 'é', '🎭', '\n', 'h'), maxLength: 40 }),
  fc.string({ maxLength: 400 }),
);
const server = fc.stringMatching(/^[a-z0-9_-]{1,63}$/);
const caller = fc.string({ unit: 'binary', minLength: 1, maxLength: 30 }).filter((name) => name !== '_');
const address: fc.Arbitrary<Address> = fc.oneof(
  fc.constant({}),
  fc.record({ caller }),
  fc.record({ node: fc.string({ minLength: 1, maxLength: 20 }) }),
);

describe('names', () => {
  test.each([
    ['echo', 'echo'],
    ['admin.tools.list', 'admin.tools.list'],
    ['get weather', 'get=20weather'],
    ['a/b', 'a=2Fb'],
    ['é', '=C3=A9'],
    ['a=b', 'a=3Db'],
    ['*', '=2A'],
    ['a.>', 'a.=3E'],
    ['', '='],
    ['a..b.', 'a.=.b.='],
  ])('%j is spelled %s', (name, tail) => {
    expect(encodeName(name)).toBe(tail);
    expect(decodeName(tail)).toBe(name);
  });

  test('every name becomes legal subject tokens and comes back as it was', () => {
    fc.assert(
      fc.property(anyName, (name) => {
        const tail = encodeName(name);
        expect(legal(tail)).toBe(true);
        expect(nameMatches(tail, name)).toBe(true);
        expect(requestedName(tail, name === '' ? undefined : base64(name))).toBe(name);
        expect(decodeName(tail)).toBe(tail.startsWith('=h.') ? undefined : name);
      }),
      { numRuns: 2000 },
    );
  });

  test('no two names share a subject, and no name has two', () => {
    fc.assert(fc.property(anyName, anyName, (a, b) => (encodeName(a) === encodeName(b)) === (a === b)));
    const tail = fc.string({ unit: fc.constantFrom('=', '.', '2', 'E', 'e', 'A', '4', '1', 'h'), maxLength: 12 });
    fc.assert(
      fc.property(tail, (text) => {
        const name = decodeName(text);
        expect(name === undefined || encodeName(name) === text).toBe(true);
      }),
      { numRuns: 5000 },
    );
    expect(decodeName('=61dmin.drop')).toBeUndefined(); // would slip past a denied `admin.>`
    expect(decodeName('a=2fb')).toBeUndefined();
    expect(decodeName('é')).toBeUndefined();
  });

  test('a name that is too long is a hash, and its header must agree', () => {
    const name = 'x'.repeat(201);
    const tail = encodeName(name);
    expect(tail).toMatch(/^=h\.[A-Z2-7]{52}$/);
    expect(decodeName(tail)).toBeUndefined();
    expect(requestedName(tail, name)).toBe(name);
    expect(requestedName(tail, `${name}y`)).toBeUndefined();
    expect(requestedName('echo', 'admin')).toBeUndefined();
    expect(decodeName(name)).toBeUndefined();
  });
});

describe('requests', () => {
  const { parse, ...build } = subjects('troupe');

  test('every request that can be built is parsed into what it was built from', () => {
    fc.assert(
      fc.property(server, anyName, address, (name, tool, to) => {
        const who =
          'node' in to ? { caller: '_', node: to.node } : { caller: to.caller === undefined ? '_' : to.caller };
        expect(parse(build.call(name, tool, to))).toEqual({
          ...who,
          verb: 'call',
          server: name,
          tail: encodeName(tool),
        });
        expect(parse(build.prompt(name, tool, to))).toMatchObject({ ...who, verb: 'prompt', tail: encodeName(tool) });
        expect(parse(build.list(name, 'tools', to))).toEqual({ ...who, verb: 'list', server: name, tail: 'tools' });
        for (const verb of ['read', 'complete', 'subscribe', 'unsubscribe'] as const)
          expect(parse(build[verb](name, to))).toEqual({ ...who, verb, server: name, tail: '' });
        expect(parse(build.cancel('r-1_A', to))).toEqual({ ...who, verb: 'cancel', server: '', tail: 'r-1_A' });
      }),
      { numRuns: 500 },
    );
  });

  test.each([
    'other.call.a.b',
    'troupe',
    'troupe.call',
    'troupe.call.a',
    'troupe.list.a',
    'troupe.list.a.tools.x',
    'troupe.read.a.b',
    'troupe.dance.a.b',
    'troupe.as.alice',
    'troupe.as._.call.a.b',
    'troupe.as.=5F.call.a.b',
    'troupe.as.alice.as.bob.call.a.b',
    'troupe.cancel.a.b',
    'troupe.cancel.a=20b',
    'troupe.ev.a.log.info',
    'troupe.hb.host',
  ])('%s is no request', (subject) => expect(parse(subject)).toBeUndefined());

  test('each request is matched by exactly one of the patterns a door subscribes to', () => {
    fc.assert(
      fc.property(server, anyName, address, fc.boolean(), (name, tool, to, isPrompt) => {
        const daemon = 'node' in to ? to.node : 'host-1';
        const subject = isPrompt ? build.prompt(name, tool, to) : build.call(name, tool, to);
        const all = [...build.patterns(name, daemon), ...build.cancelPatterns(daemon)];
        const hits = all.filter((pattern) => matches(pattern.subject, subject));
        expect(hits.map(({ tree, verb }) => [tree, verb])).toEqual([
          ['node' in to ? 'node' : to.caller === undefined ? 'bare' : 'as', isPrompt ? 'prompt' : 'call'],
        ]);
        expect(hits[0]?.queue).toBe('troupe');
      }),
    );
  });

  test('where a session is opened is parsed into what it was built from, and matched by one pattern', () => {
    const scope = fc.oneof(
      fc.constant(''),
      server,
      server.map((name) => `@${name}`),
    );
    fc.assert(
      fc.property(scope, scope, address, (mine, other, to) => {
        const { caller = '_', node } = { caller: '_', ...to } as { caller?: string; node?: string };
        const subject = build.rpc(mine, to);
        expect(build.parseRpc(subject)).toEqual({ caller, ...(node !== undefined && { node }), scope: mine });
        expect(parse(subject)).toBeUndefined();
        const patterns = [...new Set([mine, other])].flatMap((each) => build.rpcPatterns(each, node ?? 'host-1'));
        const hits = patterns.filter((pattern) => matches(pattern.subject, subject));
        expect(hits).toMatchObject([{ queue: 'troupe' }]);
      }),
    );
  });

  test.each(['troupe.rpc.a.b', 'troupe.rpc.=61', 'troupe.rpc.=', 'troupe.as._.rpc', 'troupe.sess.d.t', 'other.rpc'])(
    'no session is opened on %s',
    (subject) => expect(build.parseRpc(subject)).toBeUndefined(),
  );

  test('another root is another tree', () => {
    const mine = subjects('acme.mcp');
    expect(mine.call('gh', 'search')).toBe('acme.mcp.call.gh.search');
    expect(mine.parse('acme.mcp.call.gh.search')?.server).toBe('gh');
    expect(mine.parse('troupe.call.gh.search')).toBeUndefined();
  });
});

test('a resource is named by the first 26 characters of the base32 SHA-256 of its URI', () => {
  const hash = subjects('troupe').resourceUpdated('s', 'file:///a').split('.').at(-1) ?? '';
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
  const digits = BigInt(`0x${createHash('sha256').update('file:///a').digest('hex')}`) << 4n; // 256 bits to 52 × 5
  const expected = Array.from({ length: 26 }, (_, i) => alphabet[Number((digits >> BigInt(5 * (51 - i))) & 31n)]);
  expect(hash).toBe(expected.join(''));
});

test('docs/SUBJECTS.md lists exactly the subjects that can be made', () => {
  const { parse: _, parseRpc: __, parseAsk: ___, parseTask: ____, ...all } = subjects('troupe');
  const { patterns, cancelPatterns, rpcPatterns, askPatterns, taskPatterns, ...build } = all;
  const trees: Address[] = [{}, { caller: 'CALLER' }, { node: 'DAEMON' }];
  const callers = [undefined, 'CALLER'];
  const made: Record<keyof typeof build, string[]> = {
    call: trees.map((to) => build.call('SERVER', 'TOOL', to)),
    list: trees.map((to) => build.list('SERVER', 'KIND' as 'tools', to)),
    read: trees.map((to) => build.read('SERVER', to)),
    prompt: trees.map((to) => build.prompt('SERVER', 'PROMPT', to)),
    complete: trees.map((to) => build.complete('SERVER', to)),
    subscribe: trees.map((to) => build.subscribe('SERVER', to)),
    unsubscribe: trees.map((to) => build.unsubscribe('SERVER', to)),
    cancel: trees.map((to) => build.cancel('REQUESTID', to)),
    listChanged: callers.map((caller) => build.listChanged('SERVER', 'KIND' as 'tools', caller)),
    resourceUpdated: callers.map((caller) => build.resourceUpdated('SERVER', 'x', caller).replace(/[^.]+$/, 'URIHASH')),
    log: callers.map((caller) => build.log('SERVER', 'LEVEL', caller)),
    state: callers.map((caller) => build.state('SERVER', 'STATE', caller)),
    progress: callers.map((caller) => build.progress('REQUESTID', caller)),
    rpc: [...trees, ...trees].map((to, index) => build.rpc(index < trees.length ? '' : 'SERVER', to)),
    session: callers.map((caller) => build.session('DAEMON', 'TOKEN', caller)),
    peers: [build.peers('FAMILY')],
    askPeers: [build.askPeers('FAMILY')],
    taskPeers: [build.taskPeers('FAMILY')],
    heartbeat: [build.heartbeat('DAEMON')],
    ask: [build.ask('CALLER', 'KIND', 'SERVER')],
    answer: trees.map((to) => build.answer('ID', to)),
    inbox: trees.map((to) => build.inbox(to)),
    askOpened: callers.map((caller) => build.askOpened('SERVER', caller)),
    askClosed: callers.map((caller) => build.askClosed('SERVER', caller)),
    task: (['get', 'result', 'cancel'] as const).flatMap((verb) => trees.map((to) => build.task(verb, 'ID', to))),
    taskList: trees.map((to) => build.taskList(to)),
    taskStatus: callers.map((caller) => build.taskStatus('ID', 'STATUS', caller)),
  };
  expect(Object.keys(made).sort()).toEqual(Object.keys(build).sort());
  const table = readFileSync(new URL('../../docs/SUBJECTS.md', import.meta.url), 'utf8');
  const listed = [...table.matchAll(/^\| `(troupe\.[^`]+)`/gm)].map(([, subject]) => subject);
  expect(listed.sort()).toEqual(Object.values(made).flat().map(spelledInDocs).sort());
  expect(patterns('s', 'd')).toHaveLength(7 * 3);
  expect(cancelPatterns('d')).toHaveLength(3);
  expect(rpcPatterns('', 'd')).toHaveLength(3);
  expect(askPatterns('d', 'f')).toHaveLength(2 * 3);
  expect(taskPatterns('d', 'f')).toHaveLength(4 * 3);
});

const spelledInDocs = (subject: string): string =>
  subject
    .replace(/\b(TOOL|PROMPT)\b/, (word) => `<${word.toLowerCase()}…>`)
    .replace(
      /\b(SERVER|CALLER|DAEMON|KIND|LEVEL|STATE|STATUS|URIHASH|TOKEN|FAMILY|ID)\b/g,
      (word) => `<${word.toLowerCase()}>`,
    )
    .replace('REQUESTID', '<requestId>');

const base64 = (name: string): string => `=?base64?${Buffer.from(name).toString('base64')}?=`;

function matches(pattern: string, subject: string): boolean {
  const [want, have] = [pattern.split('.'), subject.split('.')];
  if (want.at(-1) === '>')
    return have.length >= want.length && want.slice(0, -1).every((t, i) => t === '*' || t === have[i]);
  return want.length === have.length && want.every((token, i) => token === '*' || token === have[i]);
}
