// Edits of the file: the one server changes, and no other byte does.

import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { addServer, removeServer } from '../../src/config/file/edit.ts';
import { loadConfig } from '../../src/config/load.ts';
import { scratch } from '../support/scratch.ts';

const COMMENTED = `{
  // top
  "mcpServers": {
    "a": { "command": "x" }, // about a
    /* b */ "b": {"command":"y"}, // about b
    // before c
    "c":   { "command": "z" } // about c
    // end
  },
  "x-troupe": { /* keep */ },
}
`;

const INDENTED = '"n": {\n      "command": "node",\n      "args": [\n        "s.js"\n      ]\n    }';

test('a server is added last, in the style of the file, and every other byte stays', async () => {
  const after = await edited(COMMENTED, (path) => addServer(path, 'n', { command: 'node', args: ['s.js'] }));
  const expected = COMMENTED.replace('"z" } //', '"z" }, //').replace('// end\n', `// end\n    ${INDENTED}\n`);
  expect(after).toBe(expected);
});

test.each([
  ['a', '    "a": { "command": "x" }, // about a\n', ''],
  ['b', ' "b": {"command":"y"}, // about b', ' // about b'],
  ['c', /, \/\/ about b\n {4}\/\/ before c\n.*\n/, ' // about b\n    // before c\n'],
])('server %s is removed with its comma, and every other byte stays', async (name, from, to) => {
  expect(await edited(COMMENTED, (path) => removeServer(path, name))).toBe(COMMENTED.replace(from, to));
});

test.each([
  ['{}', '{\n  "mcpServers": {\n    "n": {\n      "command": "x"\n    }\n  }\n}'],
  ['{"mcpServers":{"a":{"command":"y"}}}', '{"mcpServers":{"a":{"command":"y"}, "n": {"command":"x"}}}'],
  ['{"mcpServers":{"a":{"command":"y"},}}', '{"mcpServers":{"a":{"command":"y"}, "n": {"command":"x"},}}'],
  ['{\n\t"mcpServers": {}\n}\n', '{\n\t"mcpServers": {\n\t\t"n": {\n\t\t\t"command": "x"\n\t\t}\n\t}\n}\n'],
  [
    '{\r\n  "mcpServers": {\r\n  }\r\n}',
    '{\r\n  "mcpServers": {\r\n    "n": {\r\n      "command": "x"\r\n    }\r\n  }\r\n}',
  ],
  [
    '{\n  "mcpServers": {\n    "a": {"command": "y"},\n  },\n}',
    '{\n  "mcpServers": {\n    "a": {"command": "y"},\n    "n": {\n      "command": "x"\n    },\n  },\n}',
  ],
  [
    '{\n  "theme": 1 // dark\n}',
    '{\n  "theme": 1, // dark\n  "mcpServers": {\n    "n": {\n      "command": "x"\n    }\n  }\n}',
  ],
])('adding to %j keeps its style, and removing leaves no trace of the server', async (before, expected) => {
  expect(await edited(before, (path) => addServer(path, 'n', { command: 'x' }))).toBe(expected);
  const back = await edited(expected, (path) => removeServer(path, 'n'));
  expect(back).not.toContain('"n"');
});

test('a file that does not exist is created for its owner only, with its folder', async () => {
  await using dir = await scratch();
  const path = join(dir.path, 'deep', 'er', 'troupe.json');
  addServer(path, 'n', { command: 'x' });
  expect(readFileSync(path, 'utf8')).toBe('{\n  "mcpServers": {\n    "n": {\n      "command": "x"\n    }\n  }\n}\n');
  const modes = ['deep', 'deep/er', 'deep/er/troupe.json'].map((name) => statSync(join(dir.path, name)).mode & 0o777);
  expect(modes).toEqual([0o700, 0o700, 0o600]);
});

test('a link stays a link, a file keeps its permissions, and nothing is left beside it', async () => {
  await using dir = await scratch();
  const [path, real] = [join(dir.path, 'troupe.json'), join(dir.path, 'dotfiles', 'mine.json')];
  mkdirSync(join(dir.path, 'dotfiles'));
  writeFileSync(real, '{}', { mode: 0o640 });
  symlinkSync('dotfiles/mine.json', path);
  addServer(path, 'n', { command: 'x' });
  expect(lstatSync(path).isSymbolicLink()).toBe(true);
  expect(loadConfig(path, {})).toMatchObject({ ok: true, config: { servers: [{ name: 'n' }] } });
  expect(statSync(real).mode & 0o777).toBe(0o640);
  expect(readdirSync(join(dir.path, 'dotfiles'))).toEqual(['mine.json']);
});

test('what cannot be done is refused with a sentence, and the file stays as it is', async () => {
  await using dir = await scratch();
  const path = join(dir.path, 'troupe.json');
  expect(() => removeServer(path, 'a')).toThrow(`There is no server "a" in ${path}; nothing was removed.`);
  expect(existsSync(path)).toBe(false);
  writeFileSync(path, COMMENTED);
  expect(() => addServer(path, 'a', { command: 'x' })).toThrow(`Server "a" is already in ${path}; remove it first`);
  expect(() => addServer(path, 'A B', { command: 'x' })).toThrow('call it "a-b"');
  expect(() => addServer(path, 'n', { command: '' })).toThrow('Server "n" cannot be added: command must not be empty.');
  expect(() => removeServer(path, 'z')).toThrow('There is no server "z"');
  expect(readFileSync(path, 'utf8')).toBe(COMMENTED);
  writeFileSync(path, '{"mcpServers": {,}}');
  expect(() => addServer(path, 'n', { command: 'x' })).toThrow(/cannot be edited until it is correct: .*:1:17: /);
  writeFileSync(path, '{"mcpServers": []}');
  expect(() => addServer(path, 'n', { command: 'x' })).toThrow('mcpServers is not an object; correct it first.');
});

test('a server between two comments on one line is removed alone', async () => {
  const text = '{"mcpServers": {\n  "a": {"command": "a"}, /* k */ "b": {"command": "b"} /* k */\n}}';
  expect(await edited(text, (path) => removeServer(path, 'a'))).toBe(
    '{"mcpServers": {\n  /* k */ "b": {"command": "b"} /* k */\n}}',
  );
});

test('whatever the layout, adding and removing gives a correct file with the same other servers and comments', async () => {
  await using dir = await scratch();
  const path = join(dir.path, 'troupe.json');
  const gap = fc.constantFrom('', ' ', '\n', '\n  ', '\r\n\t', ' /* k */ ', ' // k\n', '\n // k\n  ');
  const layout = fc.array(gap, { minLength: 11, maxLength: 11 });
  fc.assert(
    fc.property(layout, fc.boolean(), fc.constantFrom('a', 'b', 'c'), ([...gaps], trailing, victim) => {
      const next = () => gaps.pop() ?? '';
      const one = (name: string) => `${next()}"${name}"${next()}:${next()}{"command": "${name}"}`;
      const text = `{"mcpServers": {${one('a')},${one('b')},${one('c')}${next()}${trailing ? ',' : ''}${next()}}}`;
      writeFileSync(path, text);
      addServer(path, 'n', { command: 'n' });
      const added = readFileSync(path, 'utf8');
      expect(namesIn(path)).toEqual(['a', 'b', 'c', 'n']);
      expect(added.match(/\bk\b/g)).toEqual(text.match(/\bk\b/g));
      removeServer(path, victim);
      expect(namesIn(path)).toEqual(['a', 'b', 'c', 'n'].filter((name) => name !== victim));
      if (!trailing) expect(readFileSync(path, 'utf8')).not.toMatch(/,\s*(\/\/.*\s*|\/\*.*\*\/\s*)*\}/);
    }),
    { numRuns: 100 },
  );
});

async function edited(text: string, edit: (path: string) => void): Promise<string> {
  await using dir = await scratch();
  const path = join(dir.path, 'troupe.json');
  writeFileSync(path, text);
  edit(path);
  return readFileSync(path, 'utf8');
}

function namesIn(path: string): string[] {
  const loaded = loadConfig(path, {});
  if (!loaded.ok) throw new Error(`${readFileSync(path, 'utf8')}\n${JSON.stringify(loaded.complaints)}`);
  return loaded.config.servers.map(({ name }) => name);
}
