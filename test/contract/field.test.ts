// docs/FIELD.md is written by `npm run field`, which nobody runs with every change: it must at least be about the servers and
// clients that are in the lists, in their versions, and the command's own reading of bytes must be right.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { membersOf } from '../field/bytes.mjs';
import { clients } from '../field/clients.mjs';
import { servers } from '../field/servers.mjs';
import { ROOT } from '../support/daemon.ts';

const document = readFileSync(join(ROOT, 'docs/FIELD.md'), 'utf8');

/** The first three cells of each row below a heading: name, package, version. */
function rowsBelow(heading: string): string[][] {
  const [, section = ''] = document.split(`\n## ${heading}\n`);
  const lines = section.split('\n## ')[0]?.split('\n') ?? [];
  const rows = lines.filter((line) => line.startsWith('| ')).map((line) => line.split(' | ').slice(0, 3));
  return rows.slice(2).map(([name = '', id = '', version = '']) => [name.slice(2), id.replaceAll('`', ''), version]);
}

describe('docs/FIELD.md', () => {
  it('has exactly the servers of the list, in their versions', () => {
    expect(servers.length).toBeGreaterThan(20);
    expect(rowsBelow('Servers')).toEqual(servers.map(({ name, package: id, version }) => [name, id, version]));
  });

  it('has exactly the clients of the list', () => {
    const listed = rowsBelow('Clients').map(([name, id, version]) => [name, id, version]);
    expect(listed).toEqual(clients.map(({ name, package: id, version }) => [name, id, version ?? expect.any(String)]));
  });

  it('names every version exactly, and every server and client once', () => {
    const all = [...servers, ...clients];
    expect(all.filter(({ version = '0.0.0' }) => !/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version))).toEqual([]);
    expect(new Set(all.map(({ name }) => name)).size).toBe(all.length);
  });
});

describe('the bytes of a member', () => {
  it('are those that were written', () => {
    const text = ' { "a" : 1.0e2, "b\\u0041":[ "x]\\"" ,{}], "c": {"d":"}\\\\"} } ';
    expect(membersOf(text)).toEqual({ a: '1.0e2', bA: '[ "x]\\"" ,{}]', c: '{"d":"}\\\\"}' });
    expect(Object.values(membersOf('[1, "a,b", [2,3] ,null]'))).toEqual(['1', '"a,b"', '[2,3]', 'null']);
    expect([membersOf('{}'), membersOf(' [ ] ')]).toEqual([{}, {}]);
  });

  it('are those of any object, however it is spaced', () => {
    const value = fc.dictionary(fc.string(), fc.jsonValue(), { noNullPrototype: true });
    fc.assert(
      fc.property(value, fc.constantFrom(undefined, 1, '\t'), (object, space) => {
        const parts = Object.entries(membersOf(JSON.stringify(object, null, space)));
        expect(new Map(parts.map(([name, text]) => [name, JSON.parse(text)]))).toEqual(
          new Map(Object.entries(JSON.parse(JSON.stringify(object)))),
        );
      }),
    );
  });
});
