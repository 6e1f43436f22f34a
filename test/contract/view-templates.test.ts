import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { matcherOf } from '../../src/catalog/templates.ts';
import { cpuMs } from '../support/effort.ts';

/** Any code unit, also half a character. */
const unit = fc.integer({ min: 0, max: 0xffff }).map((code) => String.fromCharCode(code));

const matches = (template: string, uri: string) => matcherOf(template)?.(uri) ?? false;

// The expansions of RFC 6570 §1.2 and §3.2, with its variables.
describe('a URI can have come from the template it was made of', () => {
  test.each([
    ['{var}', 'value'],
    ['{hello}', 'Hello%20World%21'],
    ['O{empty}X', 'OX'],
    ['map?{x,y}', 'map?1024,768'],
    ['{var:3}', 'val'],
    ['{keys*}', 'semi=%3B,dot=.,comma=%2C'],
    ['{+path}/here', '/foo/bar/here'],
    ['here?ref={+path}', 'here?ref=/foo/bar'],
    ['up{+path}{var}/here', 'up/foo/barvalue/here'],
    ['X{#x,hello}', 'X#1024,Hello%20World!'],
    ['X{#undefined}', 'X'],
    ['X{.var}', 'X.value'],
    ['www{.dom*}', 'www.example.com'],
    ['{/var,x}/here', '/value/1024/here'],
    ['{/list*}', '/red/green/blue'],
    ['{;x,y,empty}', ';x=1024;y=768;empty'],
    ['{?x,y}', '?x=1024&y=768'],
    ['?fixed=yes{&x}', '?fixed=yes&x=1024'],
    ['file:///{path}', 'file:///notes.txt'],
    ['test://template/{id}/data', 'test://template/123/data'],
    ['db://{table}/{id}{?fields}', 'db://users/7?fields=a,b'],
    ['notes://été/{x}', 'notes://%C3%A9t%C3%A9/1'],
    ['notes://{x}/é', 'notes://1/é'],
    ['a://{x}/{y}', 'a://%2F/%2F'],
    ['{+a}/x{b}', 'q/x/y/xz'],
    ['plain://no-expression', 'plain://no-expression'],
  ])('%s: %s', (template, uri) => {
    expect(matches(template, uri)).toBe(true);
  });
});

describe('a URI cannot have come from another template', () => {
  test.each([
    ['file:///{path}', 'file:///a/b'],
    ['file:///{path}', 'file:///a?b'],
    ['file:///{path}', 'http://file:///a'],
    ['db://{table}', 'db://a/1'],
    ['db://{a}/{b}', 'db://a'],
    ['a://x{/p}/end', 'a://x/p?/end'],
    ['a://x{?q}', 'a://x&q=1'],
    ['a://x{?q}', 'a://x?q#f'],
    ['a://x{.e}', 'a://xe'],
    ['a://{x}.txt', 'a://y.txt2'],
    ['a://.*', 'a://xyz'],
    ['a://(b|c)+', 'a://b'],
  ])('%s: %s', (template, uri) => {
    expect(matches(template, uri)).toBe(false);
  });
});

describe('what is no template matches nothing', () => {
  test.each(['a{', 'a}', '{}', '{a', '{{a}}', '{=a}', '{|a}', 'a{b}c}', '{+}'])('%s', (template) => {
    expect(matcherOf(template)).toBeUndefined();
  });

  test('nor does one that is too long or has too many expressions', () => {
    expect(matcherOf(`a${'b'.repeat(3_000)}`)).toBeUndefined();
    expect(matcherOf(Array.from({ length: 30 }, (_, i) => `{v${i}}-`).join(''))).toBeUndefined();
    expect(matches('a:{+b}', `a:${'b'.repeat(3_000)}`)).toBe(false);
    expect(matches('a:{+b}', `a:${'é'.repeat(2_000)}`)).toBe(false);
  });
});

test('an expanded template is known again, whatever it was expanded with', () => {
  const value = fc.string({ unit, maxLength: 12 }).map((text) => encodeURIComponent(text.toWellFormed()));
  fc.assert(
    fc.property(value, value, value, (a, b, c) => {
      expect(matches('x://{a}/y{/b}{?c}', `x://${a}/y/${b}?c=${c}`)).toBe(true);
      expect(matches('x://{+a}-{b}-{c}', `x://${a}-${b}-${c}`)).toBe(true);
      expect(matches('x://{a}{b}{+c}', `x://${a}${b}${c}`)).toBe(true);
    }),
  );
});

test('no pair of template and URI takes long', () => {
  const pieces = fc.constantFrom('{a}', '{+a}', '{/a}', '{?a}', '{#a}', 'a', 'aa', '/', '?');
  const template = fc.array(pieces, { minLength: 10, maxLength: 20 }).map((parts) => parts.join(''));
  fc.assert(
    fc.property(template, fc.constantFrom('a', '/', '?', 'a/', 'aa?'), (text, unit) => {
      const uri = unit.repeat(2_000).slice(0, 2_000);
      expect(cpuMs(() => matches(text, uri))).toBeLessThan(200);
    }),
  );
});
