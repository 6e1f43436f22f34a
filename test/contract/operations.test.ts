// The table of operations against what is documented: each subject that callers may publish on, each verb of the CLI.

import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { buildProgram } from '../../src/cli/program.ts';
import { OPERATIONS, type Operation } from '../../src/operations/operations.ts';

const rows = Object.entries(OPERATIONS) as [string, Operation<unknown, unknown, unknown>][];
const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

test('every request that docs/SUBJECTS.md names has a row, and every row that is offered on NATS is named there', () => {
  // Sessions, and what daemons say to each other, are no operations.
  const others = /^(rpc|sess|peers|ask|ev|hb|plugin)\b/;
  const documented = [...read('docs/SUBJECTS.md').matchAll(/^\| `troupe\.([^`]+)`/gm)]
    .map(([, subject = '']) => subject)
    .filter((subject) => !/^(as|node)\./.test(subject) && !others.test(subject));
  const offered = new Set(rows.flatMap(([, { subjects = [] }]) => subjects));
  expect([...offered].sort()).toEqual([...new Set(documented)].sort());
});

test('every verb of a row is one of the CLI, and every row of the control socket has one', () => {
  const verbs = buildProgram('0.0.0', async () => {}).commands.map((command) => command.name());
  for (const [name, { socket, verbs: named = [] }] of rows) {
    expect(verbs, name).toEqual(expect.arrayContaining([...named]));
    expect(named.length > 0, name).toBe(socket !== undefined);
  }
});

test('what is offered on NATS is for callers, and all else for the owner alone', () => {
  for (const [name, { may, subjects, socket, read: reads }] of rows) {
    expect(may, name).toBe(subjects ? 'caller' : 'owner');
    expect(reads !== undefined, name).toBe(socket !== undefined);
  }
});

test('docs/ARCHITECTURE.md names the operations of the control socket', () => {
  const [, text = ''] = /\*\*control socket\*\*:([\s\S]*?)\n\n/.exec(read('docs/ARCHITECTURE.md')) ?? [];
  const named = new Set([...text.matchAll(/`(\w+)`/g)].map(([, name]) => name));
  for (const [name, { socket }] of rows) if (socket) expect(named, name).toContain(name);
});
