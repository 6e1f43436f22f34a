import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createView, type Source } from '../../src/catalog/view.ts';
import { catalog, entriesOf, pagesOf, viewOf } from '../support/catalog.ts';
import { cpuMs } from '../support/effort.ts';

/** Any code unit, also half a character. */
const unit = fc.integer({ min: 0, max: 0xffff }).map((code) => String.fromCharCode(code));

const tools = (count: number, from = 0) =>
  entriesOf(
    'tools',
    Array.from({ length: count }, (_, i) => ({ name: `t${from + i}`, description: 'x'.repeat(i % 50) })),
  );
const cursorOf = (page: Buffer): string => JSON.parse(page.toString()).nextCursor;
const invalid = expect.objectContaining({ code: 'invalid' });

describe('pages', () => {
  test('go through the servers in their order, each tool once, none longer than asked for', async () => {
    await using it = await catalog();
    it.set('b', 'tools', await tools(40));
    it.set('a', 'tools', await tools(25));
    const view = viewOf(it, ['b', 'empty', 'a']);
    const expected = [...Array(40).keys()].map((i) => `b__t${i}`).concat([...Array(25).keys()].map((i) => `a__t${i}`));
    fc.assert(
      fc.property(fc.integer({ min: 300, max: 6_000 }), (maxBytes) => {
        expect(
          pagesOf(view, 'tools', maxBytes)
            .flat()
            .map(({ name }) => name),
        ).toEqual(expected);
        let cursor: string | undefined;
        do {
          const page = view.page('tools', cursor, maxBytes);
          expect(page.length).toBeLessThanOrEqual(maxBytes);
          cursor = cursorOf(page);
        } while (cursor);
      }),
      { numRuns: 50 },
    );
  });

  test('have one definition when that alone is longer than asked for', async () => {
    await using it = await catalog();
    it.set('a', 'tools', await tools(3));
    expect(pagesOf(viewOf(it, ['a']), 'tools', 10).map((page) => page.length)).toEqual([1, 1, 1]);
  });

  test('do not take long to find the next definition that can be given out', async () => {
    await using it = await catalog();
    const hostile = Array.from({ length: 5_000 }, (_, i) => ({ name: `t${i}`, Name: 'x' }));
    it.set('a', 'tools', await entriesOf('tools', [...hostile, { name: 'good' }]));
    const pages = pagesOf(viewOf(it, ['a']), 'tools', 100_000);
    expect(pages.length).toBeGreaterThan(5);
    expect(pages.flat()).toEqual([{ name: 'a__good' }]);
  });

  test('of a list that changed in between are refused', async () => {
    await using it = await catalog();
    it.set('a', 'tools', await tools(10));
    const view = viewOf(it, ['a']);
    const cursor = cursorOf(view.page('tools', undefined, 300));
    expect(view.page('tools', cursor, 300).length).toBeGreaterThan(20);
    it.set('a', 'tools', await tools(10, 1));
    expect(() => view.page('tools', cursor, 300)).toThrow(invalid);
    it.set('a', 'tools', await tools(10));
    expect(view.page('tools', cursor, 300).length).toBeGreaterThan(20);
  });

  test('of another kind or another scope are refused', async () => {
    await using it = await catalog();
    it.set('a', 'tools', await tools(10));
    it.set('a', 'prompts', await tools(10));
    it.set('b', 'tools', await tools(10));
    const cursor = cursorOf(viewOf(it, ['a']).page('tools', undefined, 300));
    expect(() => viewOf(it, ['a']).page('prompts', cursor, 300)).toThrow(invalid);
    expect(() => viewOf(it, ['a', 'b']).page('tools', cursor, 300)).toThrow(invalid);
  });

  test('are refused for a cursor that nobody gave out', async () => {
    await using it = await catalog();
    it.set('a', 'tools', await tools(10));
    const view = viewOf(it, ['a']);
    const cursor = cursorOf(view.page('tools', undefined, 300));
    const [offset, hash] = Buffer.from(cursor, 'base64url').toString().split(':');
    const forged = ['-1', '0', '10', '11', '1e0', ' 1', '01', '', 'NaN', '99999999999999999999', `${offset}.0`].map(
      (each) => Buffer.from(`${each}:${hash}`).toString('base64url'),
    );
    for (const text of [...forged, '', '=', `${cursor}=`, `${cursor}A`, 'x'.repeat(1_000_000)])
      expect(() => view.page('tools', text, 300), text.slice(0, 40)).toThrow(invalid);
    fc.assert(
      fc.property(fc.string({ unit }), (text) => {
        expect(() => view.page('tools', text, 300)).toThrow(invalid);
      }),
    );
  });
});

describe('the hash', () => {
  test('changes when something shown changes, and only then', async () => {
    await using it = await catalog();
    it.set('a', 'tools', await tools(2));
    it.set('b', 'tools', await tools(2));
    const servers = ['a', 'b'];
    const view = viewOf(it, servers, { tools: { deny: ['*__hidden'] } });
    const before = view.hash('tools');

    it.set('a', 'tools', [...(await tools(2)), ...(await entriesOf('tools', [{ name: 'hidden' }]))]);
    expect(view.hash('tools')).toBe(before);
    it.set('a', 'tools', [...(await tools(2)), ...(await entriesOf('tools', [{ name: 'hidden', title: 'x' }]))]);
    expect(view.hash('tools')).toBe(before);
    it.set('a', 'prompts', await tools(1));
    it.expire('a');
    it.set('empty', 'tools', []);
    servers.push('empty', 'unknown');
    expect(view.hash('tools')).toBe(before);
    it.set('a', 'tools', await tools(2));
    expect(view.hash('tools')).toBe(before);

    servers.reverse();
    expect(view.hash('tools')).not.toBe(before);
    servers.reverse();
    it.set('b', 'tools', await tools(3));
    expect(view.hash('tools')).not.toBe(before);
    it.set('b', 'tools', await tools(2));
    expect(view.hash('tools')).toBe(before);
    it.forget('b');
    expect(view.hash('tools')).not.toBe(before);
  });

  test('is the same after a restart and for another key of the same list', async () => {
    await using it = await catalog();
    it.set('a', 'tools', await tools(5));
    it.set('a@me', 'tools', await tools(5));
    const view = viewOf(it, ['a']);
    expect(viewOf(await it.reopened(), ['a']).hash('tools')).toBe(view.hash('tools'));
    const mine = createView(it, () => [{ server: 'a', key: 'a@me' }], { isSingle: false });
    expect(mine.hash('tools')).toBe(view.hash('tools'));
  });
});

test('a list that was read again and is the same stays the same array, so that nothing is made anew', async () => {
  await using it = await catalog();
  it.set('a', 'tools', await tools(3));
  const { entries } = it.get('a', 'tools');
  it.expire('a');
  expect(it.get('a', 'tools')).toMatchObject({ isFresh: false });
  expect(it.set('a', 'tools', await tools(3))).toBe(false);
  expect(it.get('a', 'tools')).toMatchObject({ isFresh: true });
  expect(it.get('a', 'tools').entries).toBe(entries);
});

test('a hundred thousand tools are found, shown and told apart without holding up others', async () => {
  await using it = await catalog();
  const [plain, dotted] = await Promise.all(
    ['tool-', 'tool.'].map((name) =>
      entriesOf(
        'tools',
        Array.from({ length: 100_000 }, (_, i) => ({ name: name + i })),
      ),
    ),
  );
  it.set('plain', 'tools', plain ?? []);
  it.set('dotted', 'tools', dotted ?? []);
  const sources: Source[] = ['plain', 'dotted'].map((server) => ({ server, key: server }));
  const view = createView(it, () => sources, { isSingle: false });
  expect(cpuMs(() => expect(view.find('tools', 'plain__tool-99999')?.name).toBe('tool-99999'))).toBeLessThan(100);
  expect(cpuMs(() => view.page('tools', undefined, 100_000))).toBeLessThan(400);
  expect(cpuMs(() => view.find('tools', 'dotted__tool_1_000000000000'))).toBeLessThan(2_000);
  const finds = cpuMs(() => {
    for (let i = 0; i < 10_000; i++) view.find('tools', 'plain__tool-5');
  });
  expect(finds).toBeLessThan(300);
});
