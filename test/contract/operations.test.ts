// The table of operations against what is documented: each subject that callers may publish on, each verb of the CLI.

import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { buildProgram } from '../../src/cli/program.ts';
import { OPERATIONS, type Operation } from '../../src/operations/operations.ts';
import { givenOf } from '../../src/operations/parameters.ts';

const rows = Object.entries(OPERATIONS) as [string, Operation<unknown, unknown, unknown>][];
const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

test('every request that docs/SUBJECTS.md names has a row, and every row that is offered on NATS is named there', () => {
  // Sessions, and what daemons say to each other, are no operations.
  const others = /^(rpc|sess|peers|ask|ev|hb|plugin)\b/;
  const documented = [...read('docs/SUBJECTS.md').matchAll(/^\| `troupe\.([^`]+)`/gm)]
    .map(([, subject = '']) => subject)
    .filter((subject) => !/^(as|node)\./.test(subject) && !others.test(subject));
  const offered = new Set(rows.flatMap(([, { subjects }]) => subjects));
  expect([...offered].sort()).toEqual([...new Set(documented)].sort());
});

test('every verb of a row is one of the CLI, and every row of the control socket has one', () => {
  const known = buildProgram('0.0.0', async () => {}).commands.map((command) => command.name());
  for (const [name, { read: reads, verbs }] of rows) {
    expect(known, name).toEqual(expect.arrayContaining([...verbs]));
    expect(verbs.length > 0, name).toBe(reads !== undefined);
  }
});

test('what is offered on NATS is for callers, and all else for the owner alone', () => {
  for (const [name, { may, subjects }] of rows) expect(may, name).toBe(subjects.length > 0 ? 'caller' : 'owner');
});

test('a call names what it is about: an empty name is refused before anything waits for it', () => {
  const wanted = (method: string, params: object) =>
    OPERATIONS.call.read?.(givenOf(Buffer.from(JSON.stringify({ server: 'alpha', method, params }))));
  for (const params of [{ name: '' }, {}, { name: 7 }])
    expect(() => wanted('tools/call', params)).toThrow('tools/call wants a name that is not empty');
  expect(() => wanted('prompts/get', { name: '' })).toThrow(/a name/);
  expect(() => wanted('resources/read', { uri: '' })).toThrow(/a uri/);
  expect(wanted('tools/call', { name: 'x' })).toMatchObject({ name: 'x' });
  expect(wanted('completion/complete', {})).toMatchObject({ name: '' });
});

test('docs/ARCHITECTURE.md names the operations of the control socket', () => {
  const [, text = ''] = /\*\*control socket\*\*:([\s\S]*?)\n\n/.exec(read('docs/ARCHITECTURE.md')) ?? [];
  const named = new Set([...text.matchAll(/`(\w+)`/g)].map(([, name]) => name));
  for (const [name, { read: reads }] of rows) if (reads) expect(named, name).toContain(name);
});
