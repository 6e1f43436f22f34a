// Every way in which a file can be wrong, with every complaint it must get and the place it must point at.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { formatComplaint } from '../../src/config/complaints.ts';
import { loadConfig } from '../../src/config/load.ts';
import { scratch } from '../support/scratch.ts';

type Case = [sin: string, text: string, complaints: string[]];

const server = (definition: string) => `{"mcpServers": {\n"a": ${definition}\n}}`;

const CASES: Case[] = [
  ['an empty file', '', ['1:1 the file is empty; write { "mcpServers": {} }']],
  ['a file of comments', '// nothing yet\n', ['2:1 the file is empty; write { "mcpServers": {} }']],
  ['a list at the root', '[]', ['1:1 the file must hold an object such as { "mcpServers": {} }']],
  ['a missing comma', '{"mcpServers": {}\n"x-troupe": {}}', ['2:1 a comma is missing here']],
  [
    'a missing value and a missing brace',
    '{"x-troupe": ,\n"mcpServers": {\n}',
    ['1:14 a value is expected here', '3:2 a closing brace } is missing here'],
  ],
  [
    'single quotes',
    "{'mcpServers': {}}",
    ['1:2 this is not a JSON value; texts need double quotes', '1:17 a value is expected here'],
  ],
  ['text after the end', '{}\n{}', ['2:1 the configuration ended before this; remove the rest']],
  [
    'a text that never ends',
    server('{"command": "x}'),
    ['2:18 this text is not closed; add a double quote', '3:3 a closing brace } is missing here'],
  ],
  [
    'bad syntax and bad types',
    '{"mcpServers": {\n"A": {"command": 1}\n"b": {"command": tru}}}',
    [
      '2:1 server "A": its name must match [a-z0-9_-]{1,63}; call it "a"',
      '2:18 server "A": command must be a text, not a number; write it in double quotes',
      '3:1 a comma is missing here',
      '3:18 this is not a JSON value; texts need double quotes',
    ],
  ],
  ['servers in a list', '{"mcpServers": []}', ['1:16 mcpServers must be an object of servers by name']],
  ['a server that is a text', server('"npx"'), ['2:6 server "a": its definition must be an object, not a text']],
  ['a server without command', server('{}'), ['2:1 server "a": command is missing']],
  ['an empty command', server('{"command": ""}'), ['2:18 server "a": command must not be empty']],
  [
    'arguments in one text',
    server('{"command": "x", "args": "-y"}'),
    ['2:31 server "a": args must be a list, not a text'],
  ],
  [
    'a number among arguments',
    server('{"command": "x", "args": ["-p", 80]}'),
    ['2:38 server "a": args[1] must be a text, not a number; write it in double quotes'],
  ],
  [
    'variables that are no texts',
    server('{"command": "x", "env": {\n"A": 1,\n"B": true,\n"C": null,\n"D=": ""}}'),
    [
      '3:6 server "a": env.A must be a text, not a number; write it in double quotes',
      '4:6 server "a": env.B must be a text, not a boolean; write it in double quotes',
      '5:6 server "a": env.C must be a text, not null',
      '6:1 server "a": env["D="] is not a name that a variable can have',
    ],
  ],
  [
    'a NUL in an argument',
    server('{"command": "x", "args": ["\\u0000"]}'),
    ['2:32 server "a": args[0] must not contain a NUL character'],
  ],
  ['an unknown transport', server('{"command": "x", "type": "stdoi"}'), ['2:31 server "a": type must be "stdio"']],
  [
    'disabled as a text',
    server('{"command": "x", "disabled": "no"}'),
    ['2:35 server "a": disabled must be a boolean, not a text'],
  ],
  [
    'a folder that does not exist',
    server('{"command": "x", "cwd": "./nowhere"}'),
    ['2:30 server "a": cwd "./nowhere" is not a directory; create it or correct the path'],
  ],
  [
    'a folder that no system can have',
    server('{"command": "x", "cwd": "\\u0000"}'),
    [
      '2:30 server "a": cwd must not contain a NUL character',
      '2:30 server "a": cwd "\\u0000" is not a directory; create it or correct the path',
    ],
  ],
  [
    'a folder with a tilde',
    server('{"command": "x", "cwd": "~/code"}'),
    [`2:30 server "a": cwd "~/code" is not a directory; write \${HOME} instead of ~`],
  ],
  [
    'names that are no names',
    '{"mcpServers": {\n"My Files!": {"command": "x"},\n"": {"command": "x"},\n"__proto__": {"command": "x"}}}',
    [
      '2:1 server "My Files!": its name must match [a-z0-9_-]{1,63}; call it "my-files"',
      '3:1 server "": its name must match [a-z0-9_-]{1,63}; call it "server"',
      '4:1 server "__proto__": its name must match [a-z0-9_-]{1,63}; call it "proto"',
    ],
  ],
  [
    'a server defined twice',
    '{"mcpServers": {\n"a": {"command": "x"},\n"a": {"command": "y"}}}',
    ['3:1 "a" is defined twice in the same object; remove one of them'],
  ],
];

test.each(CASES)('%s', async (_, text, expected) => {
  await using dir = await scratch();
  expect(complaintsOf(join(dir.path, 'troupe.json'), text)).toEqual(expected);
});

test('a file that does not exist, a folder and a file nested too deeply are complaints too', async () => {
  await using dir = await scratch();
  const missing = loadConfig(join(dir.path, 'none.json'), {});
  expect(missing).toMatchObject({ ok: false, complaints: [{ line: 1, column: 1, message: /does not exist/ as any }] });
  expect(loadConfig(dir.path, {})).toMatchObject({
    ok: false,
    complaints: [{ message: 'this is a directory; name a file' }],
  });
  const deep = `{"a":${'['.repeat(50_000)}${']'.repeat(50_000)}}`;
  expect(complaintsOf(join(dir.path, 'deep.json'), deep)).toEqual(['1:1 the file is nested too deeply']);
});

test('however a file is broken, reading it neither throws nor shows a secret', async () => {
  await using dir = await scratch();
  const path = join(dir.path, 'troupe.json');
  const whole =
    '{"mcpServers": {"a": {"command": "x", "args": ["--key=hunter2"], ' +
    `"env": {"K": "hunter2", "V": "\${V}", "N": "\${NO}"}}}}`;
  const cut = fc.tuple(fc.nat(whole.length), fc.nat(12), fc.stringMatching(/^[{}[\]",:a0/*\\]{0,3}$/));
  fc.assert(
    fc.property(cut, ([at, length, inserted]) => {
      writeFileSync(path, whole.slice(0, at) + inserted + whole.slice(at + length));
      const loaded = loadConfig(path, { V: 'hunter2' });
      const said = (loaded.ok ? loaded.warnings : loaded.complaints).map(formatComplaint).join('\n');
      expect(said).not.toContain('hunter2');
    }),
    { numRuns: 500 },
  );
});

function complaintsOf(path: string, text: string): string[] {
  writeFileSync(path, text);
  const loaded = loadConfig(path, {});
  return loaded.ok ? [] : loaded.complaints.map(({ line, column, message }) => `${line}:${column} ${message}`);
}
