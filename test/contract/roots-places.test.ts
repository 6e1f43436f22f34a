// Where a root is: what a URI names on this machine, and that no link and no spelling leads out of what is allowed.

import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createLook, isWithin, onDisk, pathOf, realName } from '../../src/roots/judge.ts';
import { fitName, readOffers } from '../../src/roots/offers.ts';
import { realWorld } from '../../src/world/world.ts';
import { scratch } from '../support/scratch.ts';

const problem = (uri: string) => (pathOf(uri) as { problem?: string }).problem ?? 'none';

describe('a file URI', () => {
  it.each([
    ['file:///home/ann', '/home/ann'],
    ['FILE:///home/ann', '/home/ann'],
    ['file://localhost/home/ann', '/home/ann'],
    ['file://LocalHost/home/ann', '/home/ann'],
    ['file:///home/ann/', '/home/ann/'],
    ['file:///home/./ann/../ben', '/home/ben'],
    ['file:///home/%2e%2E/ann', '/ann'],
    ['file:///../../../etc', '/etc'],
    ['file:///%252e%252e/x', '/%2e%2e/x'],
    ['file:///a%20b%23c%3Fd%25', '/a b#c?d%'],
    ['file:///h%C3%A9', '/hé'],
    ['file:///hé/a b', '/hé/a b'],
    ['file:///a%5Cb', '/a\\b'],
    ['file:///C:/Users/ann', '/C:/Users/ann'],
    ['file:///', '/'],
  ])('%s names %s', (uri, path) => {
    expect(pathOf(uri)).toEqual({ path });
  });

  it.each([
    ['http://localhost/etc', 'no file:// URI'],
    ['/home/ann', 'no file:// URI'],
    ['file:/home/ann', 'no file:// URI'],
    ['file:ann', 'no file:// URI'],
    ['', 'no file:// URI'],
    ['file:\\\\\\C:\\Users', 'no file:// URI'],
    [' file:///home', 'no file:// URI'],
    ['file:///home\\ann', 'characters that no URI has'],
    ['file:///home\n/ann', 'characters that no URI has'],
    ['file:///home/\u0000', 'characters that no URI has'],
    ['file:///home/%00', 'does not exist'],
    ['file://server/share', 'is at server'],
    ['file://127.0.0.1/home', 'is at 127.0.0.1'],
    ['file:///home?x', 'a query or a fragment'],
    ['file:///home#x', 'a query or a fragment'],
    ['file:///home%2Fann', 'percent-encoding'],
    ['file:///%ff', 'percent-encoding'],
    ['file:///%zz', 'percent-encoding'],
    ['file://[/x', 'percent-encoding'],
    [`file:///${'x'.repeat(4_096)}`, 'longer than 4096 bytes'],
  ])('%j is refused', (uri, why) => {
    expect(problem(uri)).toContain(why);
  });

  it('comes back from every path that it is made of', () => {
    const name = fc
      .string({ unit: 'grapheme', minLength: 1, maxLength: 20 })
      .filter((each) => !/[/\0]|^\.\.?$/.test(each));
    fc.assert(
      fc.property(fc.array(name, { minLength: 1, maxLength: 5 }), (names) => {
        const path = `/${names.join('/')}`;
        expect(pathOf(pathToFileURL(path).href)).toEqual({ path });
      }),
    );
  });

  it('is never more than a path or a sentence, whatever is written', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (text) => {
        for (const uri of [text, `file://${text}`, `file:///${text}`]) {
          const found = pathOf(uri);
          if ('path' in found) expect(found.path.startsWith('/') && !found.path.includes('\0')).toBe(true);
          else expect(found.problem.length).toBeGreaterThan(10);
        }
      }),
    );
  });
});

describe('a place', () => {
  it('is known by its real path, through whatever link it is reached', async () => {
    await using dir = await scratch();
    mkdirSync(join(dir.path, 'a/b'), { recursive: true });
    writeFileSync(join(dir.path, 'a/file'), '');
    symlinkSync(join(dir.path, 'a'), join(dir.path, 'link'));
    symlinkSync('itself', join(dir.path, 'itself'));
    const at = (name: string) => onDisk(join(dir.path, name));
    expect(at('link/b/')).toEqual({ path: join(dir.path, 'a/b'), isDirectory: true });
    expect(at('link/file')).toEqual({ path: join(dir.path, 'a/file'), isDirectory: false });
    expect(at('link/nothing')).toMatchObject({ problem: expect.stringContaining('does not exist') });
    expect(at('a/file/x')).toMatchObject({ problem: expect.stringContaining('does not exist') });
    expect(at('itself')).toMatchObject({ problem: expect.stringContaining('leads to itself') });
    expect(at('x'.repeat(5_000))).toMatchObject({ problem: expect.stringContaining('does not exist') });
    expect(realName(join(dir.path, 'link/gone/deeper'))).toBe(join(dir.path, 'a/gone/deeper'));
  });

  it('lies within a directory, not beside one whose name begins the same', () => {
    expect(isWithin('/home/ann', '/home/ann')).toBe(true);
    expect(isWithin('/home/ann/x', '/home/ann')).toBe(true);
    expect(isWithin('/home/anna', '/home/ann')).toBe(false);
    expect(isWithin('/home', '/home/ann')).toBe(false);
    expect(isWithin('/etc', '/')).toBe(true);
  });

  it('is looked at once, however often it is asked for within a moment', async () => {
    await using dir = await scratch();
    const look = createLook(realWorld);
    const path = join(dir.path, 'late');
    expect(look(path)).toMatchObject({ problem: expect.anything() });
    mkdirSync(path);
    expect(look(path)).toMatchObject({ problem: expect.anything() });
    expect(createLook(realWorld)(path)).toEqual({ path, isDirectory: true });
  });
});

describe('what a host offers', () => {
  const read = (value: unknown) => readOffers(Buffer.from(JSON.stringify(value)));

  it('is its list, without what is no root', () => {
    const roots = [
      { uri: 'file:///a', name: 'A', _meta: {} },
      { uri: 7 },
      'x',
      null,
      { name: 'only' },
      { uri: 'b:', name: 7 },
    ];
    expect(read({ roots })).toEqual({ roots: [{ uri: 'file:///a', name: 'A' }, { uri: 'b:' }], isCut: false });
    expect(read({ roots: [] })).toEqual({ roots: [], isCut: false });
  });

  it.each([{}, { roots: {} }, { roots: 'x' }, [], 7, null])('%j is no answer', (value) => {
    expect(read(value)).toBeUndefined();
  });

  it('is cut at a hundred, and at what is reasonable to keep', () => {
    const many = (count: number, uri: string) => ({
      roots: Array.from({ length: count }, (_, n) => ({ uri: `${uri}${n}` })),
    });
    expect(read(many(100, 'file:///'))).toMatchObject({ isCut: false });
    const cut = read(many(101, 'file:///'));
    expect([cut?.roots.length, cut?.isCut]).toEqual([100, true]);
    const large = read(many(100, `file:///${'x'.repeat(4_000)}`));
    expect([large?.roots.length, large?.isCut]).toEqual([16, true]);
    expect(read({ roots: [{ uri: 'x'.repeat(100_000) }] })?.roots[0]?.uri).toHaveLength(4_097);
  });

  it('has names of one line and of some length', () => {
    expect(fitName('a\nb\u001b[31m')).toBe('a b\ufffd[31m');
    expect(fitName('x'.repeat(300))).toHaveLength(200);
    expect(fitName(`${'x'.repeat(199)}😀`).isWellFormed()).toBe(true);
  });
});
