import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { KINDS } from '../../src/catalog/kinds.ts';
import { createView } from '../../src/catalog/view.ts';
import { catalog, entriesOf, pagesOf, viewOf } from '../support/catalog.ts';

const named = (...names: string[]) =>
  entriesOf(
    'tools',
    names.map((name) => ({ name })),
  );
const namesIn = (view: Parameters<typeof pagesOf>[0]) =>
  pagesOf(view, 'tools')
    .flat()
    .map(({ name }) => name);

describe('behind one endpoint', () => {
  test('a name that two servers share stays two names, and each leads to its server', async () => {
    await using it = await catalog();
    it.set('a', 'tools', await named('echo', 'b__c'));
    it.set('a__b', 'tools', await named('c', 'echo'));
    const view = viewOf(it, ['a', 'a__b']);
    const names = namesIn(view);
    expect(new Set(names).size).toBe(4);
    expect(names.map((name) => view.find('tools', name))).toEqual([
      { server: 'a', name: 'echo' },
      { server: 'a', name: 'b__c' },
      { server: 'a__b', name: 'c' },
      { server: 'a__b', name: 'echo' },
    ]);
  });

  test('names stay the same when servers come, go or change places', async () => {
    await using it = await catalog();
    for (const server of ['a', 'a_', 'a__b']) it.set(server, 'tools', await named('x', '_x', 'b__x', 'x.y', 'x/y'));
    const servers = ['a', 'a_', 'a__b'];
    const view = viewOf(it, servers);
    const all = namesIn(view);
    expect(new Set(all).size).toBe(15);
    servers.reverse();
    expect(new Set(namesIn(view))).toEqual(new Set(all));
    servers.length = 1;
    expect(namesIn(view)).toEqual(all.slice(10));
    expect(view.find('tools', all[0])).toBeUndefined();
    expect(view.find('tools', all[4])).toBeUndefined();
  });

  test('every byte of a definition but its name is the one the server sent', async () => {
    await using it = await catalog();
    const definition = fc
      .dictionary(fc.string(), fc.jsonValue())
      .filter((each) => !Object.keys(each).some((key) => /^name$/i.test(key)));
    const space = fc.stringMatching(/^[ \t\n]{0,3}$/);
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(fc.string(), definition, space), { maxLength: 8 }), async (given) => {
        const rest = given.map(([, object]) => JSON.stringify(object).slice(1, -1));
        const texts = given.map(([, , gap], index) => {
          const middle = rest[index] ? `,${gap}${rest[index]}` : '';
          return (as: string) => `{${gap}"name"${gap}:${gap}${as}${middle}${gap}}`;
        });
        const names = given.map(([name]) => JSON.stringify(name));
        it.set(
          's',
          'tools',
          await entriesOf(
            'tools',
            texts.map((text, index) => text(names[index] ?? '')),
          ),
        );
        const page = viewOf(it, ['s']).page('tools', undefined, 1_000_000).toString();
        const shown = JSON.parse(page).tools.map(({ name }: { name: string }) => name);
        const first = [...new Set(names)].map((name) => texts[names.indexOf(name)]);
        expect(page).toBe(`{"tools":[${first.map((text, index) => text?.(`"${shown[index]}"`)).join(',')}]}`);
      }),
      { numRuns: 200 },
    );
  });

  test.each([
    ['named twice', '{"name":"a","name":"b"}'],
    ['named twice, once in disguise', '{"name":"a","n\\u0061me":"b"}'],
    ['named a second time for readers that ignore the case', '{"name":"a","Name":"other__b"}'],
    ['named by no text', '{"name":["a"]}'],
    ['without a name', '{"title":"a"}'],
    ['that is none', '"a"'],
  ])('a definition %s is left out', async (_what, definition) => {
    await using it = await catalog();
    it.set('s', 'tools', await entriesOf('tools', [definition, { name: 'good' }]));
    expect(namesIn(viewOf(it, ['s']))).toEqual(['s__good']);
  });

  const strange = [
    '',
    'a\u0000b',
    '__proto__',
    'constructor',
    '😀',
    '\ud800',
    '"',
    '\\',
    'x'.repeat(10_000),
    'a".name":"b',
  ];
  test.each(strange.map((name) => [JSON.stringify(name).slice(0, 20), name]))(
    'a tool called %s is shown under a name that hosts take, and is found by it',
    async (_title, name) => {
      await using it = await catalog();
      it.set('s', 'tools', await named(name, 'other'));
      const view = viewOf(it, ['s']);
      const [shown] = namesIn(view);
      expect(shown).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
      expect(view.find('tools', shown)).toEqual({ server: 's', name });
    },
  );

  test('an escaped name is replaced whole', async () => {
    await using it = await catalog();
    it.set('s', 'prompts', await entriesOf('prompts', ['{"n\\u0061me" : "\\u0061\\/b", "x":1e0}']));
    const view = viewOf(it, ['s']);
    expect(view.page('prompts', undefined, 1000).toString()).toMatch(
      /^\{"prompts":\[\{"n\\u0061me" : "s__a_b_[0-9a-f]{12}", "x":1e0\}\]\}$/,
    );
  });

  test('a tool can be called before the list is there, but not one that the list does not have', async () => {
    await using it = await catalog();
    it.set('known', 'tools', await named('a'));
    const view = viewOf(it, ['known', 'new', 'new_']);
    expect(view.find('tools', 'new__a__b')).toEqual({ server: 'new', name: 'a__b' });
    expect(view.find('tools', 'known__b')).toBeUndefined();
    expect(view.find('tools', 'strange__a')).toBeUndefined();
    it.set('new', 'tools', []);
    expect(view.find('tools', 'new__a__b')).toBeUndefined();
  });

  test('what a profile hides is neither shown nor found', async () => {
    await using it = await catalog();
    it.set('a', 'tools', await named('get', 'delete', 'get.all'));
    it.set('a', 'prompts', await entriesOf('prompts', [{ name: 'delete' }]));
    const view = viewOf(it, ['a', 'b'], { tools: { allow: ['a__*'], deny: ['*delete*'] } });
    const [get, all, ...others] = namesIn(view);
    expect([get, others]).toEqual(['a__get', []]);
    expect(view.find('tools', all)).toEqual({ server: 'a', name: 'get.all' });
    expect(view.find('tools', 'a__delete')).toBeUndefined();
    expect(view.find('tools', 'b__get')).toBeUndefined();
    expect(view.find('prompts', 'a__delete')).toEqual({ server: 'a', name: 'delete' });
  });
});

describe('at the endpoint of one server', () => {
  test('everything is byte for byte what the server sent', async () => {
    await using it = await catalog();
    const odd = ['{ "name":"x.y" }', '{"name":"x.y","Name":1}', '{"uri":"u","name":"\\u0061"}'];
    for (const kind of ['tools', 'resources'] as const) {
      it.set('s@me', kind, await entriesOf(kind, odd));
      const view = createView(it, () => [{ server: 's', key: 's@me' }], { isSingle: true });
      const expected = kind === 'tools' ? odd : odd.slice(2);
      expect(view.page(kind, undefined, 1000).toString()).toBe(`{"${KINDS[kind].member}":[${expected}]}`);
    }
  });

  test('names and URIs are the server’s own, also those that are in no list', async () => {
    await using it = await catalog();
    const view = viewOf(it, ['s'], { isSingle: true });
    expect(view.find('tools', 'x__y')).toEqual({ server: 's', name: 'x__y' });
    expect(view.findUri('troupe+a:b')).toEqual({ server: 's', name: 'troupe+a:b' });
    expect(view.uriOf('s', 'troupe+a:b')).toBe('troupe+a:b');
    expect(viewOf(it, [], { isSingle: true }).find('tools', 'x')).toBeUndefined();
  });
});
