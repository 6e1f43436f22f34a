import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { exposedName, originOf, originOfUri, qualifierOf } from '../../src/catalog/naming.ts';
import { permission } from '../../src/catalog/patterns.ts';
import { cpuMs } from '../support/effort.ts';

/** Any code unit, also half a character. */
const unit = fc.integer({ min: 0, max: 0xffff }).map((code) => String.fromCharCode(code));

const server = fc.stringMatching(/^[a-z0-9_-]{1,63}$/);
/** Short ones of few characters meet each other; the others are what a server might dare. */
const name = fc.oneof(
  fc.string({ unit: fc.constantFrom('a', 'b', '_', '-', '.'), maxLength: 6 }),
  fc.string({ unit, maxLength: 80 }),
  fc.string({ unit: fc.constantFrom('a', '_', '/', '\u0000', '\ud800', 'é'), maxLength: 200 }),
  fc.stringMatching(/^[a-z]{0,3}_?[0-9a-f]{12}$/),
);
const uri = fc.stringMatching(
  /^(file|https|x-note):\/\/[a-z0-9]{1,9}(\/[A-Za-z0-9._~%-]{0,8}){0,3}(\?[a-z]=[a-z,]{1,3})?(#[a-z]{1,4})?$/,
);
const near = fc.string({ unit: fc.constantFrom('a', 'b', '_', '-'), minLength: 1, maxLength: 4 });
const thing = fc.record({ server: fc.oneof(near, server), name });

describe('an exposed name', () => {
  test('is what every host takes: letters, digits, _ and -, at most 64', () => {
    fc.assert(
      fc.property(thing, (it) => {
        expect(exposedName(it.server, it.name)).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
      }),
      { numRuns: 2_000 },
    );
  });

  test('belongs to one tool of one server, whatever the others are called', () => {
    fc.assert(
      fc.property(fc.uniqueArray(thing, { minLength: 2, maxLength: 40, selector: JSON.stringify }), (things) => {
        const exposed = things.map((it) => exposedName(it.server, it.name));
        expect(new Set(exposed).size).toBe(things.length);
      }),
      { numRuns: 1_000 },
    );
  });

  test('leads back to server and name, or says that it cannot', () => {
    fc.assert(
      fc.property(thing, (it) => {
        const origin = originOf(exposedName(it.server, it.name));
        if (origin) expect(origin).toEqual(it);
        else expect(exposedName(it.server, it.name)).toMatch(/_[0-9a-f]{12}$/);
      }),
      { numRuns: 2_000 },
    );
  });

  // Written down, so that a change of the rule is seen: hosts keep these names in their permissions.
  test.each([
    ['github', 'create_issue', 'github__create_issue'],
    ['github', '_private', 'github___private'],
    ['files', '__proto__', 'files____proto__'],
    ['a', 'b__c', 'a__b__c'],
    ['a__b', 'c', 'a__b__c_DIGEST'],
    ['a_', 'b', 'a___b_DIGEST'],
    ['files', 'read.file', 'files__read_file_DIGEST'],
    ['files', 'read\n\u0000file', 'files__read__file_DIGEST'],
    ['files', 'lire_été', 'files__lire__t__DIGEST'],
    ['files', 'read_file_0123456789ab', 'files__read_file_0123456789ab_DIGEST'],
    ['files', '0123456789ab', 'files__0123456789ab_DIGEST'],
    ['files', '', 'files___DIGEST'],
    ['files', 'x'.repeat(57), `files__${'x'.repeat(57)}`],
    ['files', 'x'.repeat(58), `files__${'x'.repeat(44)}_DIGEST`],
    ['s'.repeat(63), 'read', `${'s'.repeat(45)}__read_DIGEST`],
    ['s'.repeat(63), 't'.repeat(10_000), `${'s'.repeat(24)}__${'t'.repeat(25)}_DIGEST`],
  ])('of %.20s and %.20s is %s', (of, tool, expected) => {
    const exposed = exposedName(of, tool);
    expect(exposed.replace(/_[0-9a-f]{12}$/, expected.endsWith('_DIGEST') ? '_DIGEST' : '$&')).toBe(expected);
  });

  test('has the same digest in every version', () => {
    expect(exposedName('files', 'read.file')).toBe('files__read_file_0de307c87417');
    expect(exposedName('files', '\ud800')).toBe('files____4624893966dd');
  });

  test('names that no host could have been shown lead nowhere', () => {
    for (const text of ['', '__', '__x', 'x', 'x__', 'a__b.c', `a__${'x'.repeat(62)}`])
      expect(originOf(text)).toBeUndefined();
  });
});

describe('a qualified URI', () => {
  test('is a URI that every parser takes, and leads back', () => {
    fc.assert(
      fc.property(server, uri, (of, own) => {
        const qualified = qualifierOf(of) + own;
        expect(new URL(qualified).href).toBe(qualified);
        expect(originOfUri(qualified)).toEqual({ server: of, name: own });
      }),
    );
  });

  test('is known in whatever case a parser gives its scheme', () => {
    expect(originOfUri('TROUPE+My.Files:file:///A')).toEqual({ server: 'my_files', name: 'file:///A' });
    expect(originOfUri('file:///troupe+a:b')).toBeUndefined();
    expect(originOfUri('troupe:a')).toBeUndefined();
  });
});

describe('a permission', () => {
  test.each([
    [{}, 'a', true],
    [{ allow: [] }, 'a', false],
    [{ allow: ['a'] }, 'a', true],
    [{ allow: ['a'] }, 'ab', false],
    [{ allow: ['a*'] }, 'ab', true],
    [{ allow: ['*'], deny: ['*__delete_*'] }, 'files__delete_all', false],
    [{ allow: ['a*b*c'] }, 'a-b-c', true],
    [{ allow: ['a*b*c'] }, 'a-c-b', false],
    [{ allow: ['ab*bc'] }, 'abc', false],
    [{ allow: ['a*'], deny: ['ab'] }, 'ab', false],
    [{ deny: ['.*'] }, 'anything', true],
  ])('%j of %s is %s', (rules, text, expected) => {
    expect(permission(rules)(text)).toBe(expected);
  });

  test('is found out quickly, whatever the pattern', () => {
    const isPermitted = permission({ allow: ['*a'.repeat(5_000)] });
    expect(cpuMs(() => expect(isPermitted('a'.repeat(100_000).concat('b'))).toBe(false))).toBeLessThan(1_000);
  });
});
