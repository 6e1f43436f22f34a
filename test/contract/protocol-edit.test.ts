// One member of JSON bytes is set or taken away, and nothing else of them changes: not a big number, not an escape, not
// the order, not the spaces.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { withMember, withMeta, withoutMember, withoutMeta } from '../../src/protocol/edit.ts';
import { readFrame } from '../../src/protocol/frame.ts';
import { members } from '../../src/protocol/json.ts';

const key = fc.oneof(fc.constantFrom('_meta', 'task', 'a', '__proto__', ''), fc.string({ unit: 'binary' }));
const value = fc.oneof(
  fc.jsonValue({ maxDepth: 3 }).map((each) => JSON.stringify(each)),
  fc.constantFrom('12345678901234567890', '1.0', '-0', '1e400', '"\\u0061\\/é"', '{"a":1,"a":2}', '{ "k" : [ ] }'),
);
const space = fc.constantFrom('', ' ', '\n\t', '  ');
const named = fc.tuple(key, value, space);
/** Objects as nobody would print them: names twice, or escaped, and spaces where they may be. */
const messy = fc.tuple(fc.array(named, { maxLength: 8 }), space).map(([members, gap]) => {
  const text = members.map(([name, json, pad]) => `${pad}${escaped(name, pad !== '')}${pad}:${pad}${json}${pad}`);
  return `${gap}{${gap}${text.join(',')}${gap}}${gap}`;
});

const escaped = (name: string, isOdd: boolean): string =>
  isOdd && /^[\x20-\x7e]+$/.test(name)
    ? `"${[...name].map((each) => `\\u00${each.charCodeAt(0).toString(16)}`).join('')}"`
    : JSON.stringify(name);
const parsed = (bytes: Buffer) => JSON.parse(bytes.toString());
/** As `JSON.parse` would make it: `__proto__` is a name like any other. */
const entries = (bytes: Buffer): Map<string, unknown> => new Map(Object.entries(parsed(bytes)));
/** The very bytes of all members but those of one name, in their order. */
const others = (bytes: Buffer, name: string) =>
  [...members(bytes)].flatMap(([each, json]) => (each === name ? [] : [`${each}: ${json}`]));
const isFrame = (bytes: Buffer) =>
  readFrame(Buffer.concat([Buffer.from('{"jsonrpc":"2.0","id":1,"result":'), bytes, Buffer.from('}')])).kind ===
  'result';

describe('withMember', () => {
  it('gives an object that reads as the same one with that member', () => {
    fc.assert(
      fc.property(messy, key, value, (text, name, json) => {
        const made = withMember(Buffer.from(text), name, json);
        const wanted = entries(Buffer.from(text)).set(name, JSON.parse(json));
        expect(new Map([...entries(made)].sort(byName))).toEqual(new Map([...wanted].sort(byName)));
        expect(isFrame(made)).toBe(true);
        expect(others(made, name)).toEqual(others(Buffer.from(text), name));
      }),
      { numRuns: 300 },
    );
  });

  it('changes a value in its place and leaves all bytes around it', () => {
    expect(
      withMember(Buffer.from('{ "b":1 , "a" : 12345678901234567890 , "c":"\\u0041"} '), 'a', '[0]').toString(),
    ).toBe('{ "b":1 , "a" : [0] , "c":"\\u0041"} ');
    expect(withMember(Buffer.from('{"\\u0061":1,"b":1.0}'), 'a', '2').toString()).toBe('{"\\u0061":2,"b":1.0}');
  });

  it('adds a new one as the last', () => {
    expect(withMember(Buffer.from('{}'), 'é"', 'null').toString()).toBe('{"é\\"":null}');
    expect(withMember(Buffer.from(' { "z":1e9 }'), 'a', Buffer.from('1')).toString()).toBe(' { "z":1e9,"a":1 }');
  });

  it('leaves one of a name that was there twice', () => {
    expect(withMember(Buffer.from('{"a":1,"b":2,"\\u0061":3}'), 'a', '4').toString()).toBe('{"b":2,"a":4}');
  });

  it('leaves alone what is no object', () => {
    for (const text of ['[]', '1', '"{}"', 'null', '', '{"a"', '{"a":1', '{"a":1]', '{,}'])
      for (const make of [(bytes: Buffer) => withMember(bytes, 'a', '1'), (bytes: Buffer) => withMeta(bytes, 'a', '1')])
        expect(make(Buffer.from(text)).toString()).toBe(text);
  });
});

describe('withoutMember', () => {
  it('gives an object that reads as the same one without that member', () => {
    fc.assert(
      fc.property(messy, key, (text, name) => {
        const made = withoutMember(Buffer.from(text), name);
        const wanted = entries(Buffer.from(text));
        wanted.delete(name);
        expect(new Map([...entries(made)].sort(byName))).toEqual(new Map([...wanted].sort(byName)));
        expect(isFrame(made)).toBe(true);
        expect(others(made, name)).toEqual(others(Buffer.from(text), name));
      }),
      { numRuns: 300 },
    );
  });

  it('undoes withMember to the byte where the member was new', () => {
    fc.assert(
      fc.property(messy, value, (text, json) => {
        expect(withoutMember(withMember(Buffer.from(text), 'task', json), 'task').toString()).toBe(
          withoutMember(Buffer.from(text), 'task').toString(),
        );
      }),
    );
  });

  it('takes the first, the last, the only and all of a name, and keeps the spaces of the rest', () => {
    const without = (text: string) => withoutMember(Buffer.from(text), 'task').toString();
    expect(without('{"task":{}, "a":1 , "b": 2}')).toBe('{"a":1 , "b": 2}');
    expect(without('{ "a":1 , "b": 2,"task":{} }')).toBe('{ "a":1 , "b": 2 }');
    expect(without('{ "task" : {"task":1} }')).toBe('{  }');
    expect(without('{"a":{"task":1},"task":1,"b":1.0,"\\u0074ask":2}')).toBe('{"a":{"task":1},"b":1.0}');
  });

  it('gives the very same bytes where there is nothing to take', () => {
    const bytes = Buffer.from('{"a":1}');
    expect(withoutMember(bytes, 'task')).toBe(bytes);
  });
});

describe('withMeta', () => {
  it('sets one key of _meta and keeps the others', () => {
    expect(withMeta(Buffer.from('{"content":[],"_meta":{"x": 1.0}}'), 'k', '{"taskId":"t"}').toString()).toBe(
      '{"content":[],"_meta":{"x": 1.0,"k":{"taskId":"t"}}}',
    );
    expect(withMeta(Buffer.from('{"_meta" : { "k":"theirs" } ,"a":1}'), 'k', '"ours"').toString()).toBe(
      '{"_meta" : { "k":"ours" } ,"a":1}',
    );
  });

  it('makes a _meta where there is none, and in place of what is none', () => {
    const set = (text: string) => withMeta(Buffer.from(text), 'k', '1').toString();
    expect(set('{"a":1}')).toBe('{"a":1,"_meta":{"k":1}}');
    for (const bad of ['null', '[]', '"{}"', '7'])
      expect(set(`{"_meta":${bad},"a":1}`)).toBe('{"_meta":{"k":1},"a":1}');
    expect(set('{"_meta":{"k":2},"a":1,"_meta":{"k":3}}')).toBe('{"a":1,"_meta":{"k":1}}');
    expect(set('{"_meta":{"k":2,"x":1,"\\u006b":3}}')).toBe('{"_meta":{"x":1,"k":1}}');
  });

  it('takes a key away again, and a _meta that had nothing else', () => {
    const without = (text: string) => withoutMeta(Buffer.from(text), 'k').toString();
    expect(without('{"a":1.0,"_meta":{"k":1, "x":2}}')).toBe('{"a":1.0,"_meta":{"x":2}}');
    expect(without('{"_meta":{"k":1}, "a":1}')).toBe('{"a":1}');
    for (const text of ['{"_meta":{}}', '{"_meta":[]}', '{"a":{"_meta":{"k":1}}}', '7'])
      expect(without(text)).toBe(text);
  });

  it('reads as the same object with that key, whatever it was', () => {
    fc.assert(
      fc.property(messy, value, (text, json) => {
        const made = parsed(withMeta(Buffer.from(text), 'k', json));
        expect(made._meta.k).toEqual(JSON.parse(json));
        const rest = entries(Buffer.from(text));
        rest.delete('_meta');
        expect(
          new Map(
            Object.entries(made)
              .filter(([name]) => name !== '_meta')
              .sort(byName),
          ),
        ).toEqual(new Map([...rest].sort(byName)));
      }),
    );
  });
});

const byName = ([one]: [string, unknown], [another]: [string, unknown]): number => (one < another ? -1 : 1);
