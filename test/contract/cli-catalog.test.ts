// One tool, resource, template or prompt in full: every word of its server, and its schemas as lists that can be read.

import { expect, test } from 'vitest';
import { type Asked, type Reply, workplace } from '../support/cli.ts';

const LONG = `Books a table. ${'It takes its time, and says so. '.repeat(12)}The end.`;
const BOOK = {
  name: 'book',
  title: 'Book a table',
  description: LONG,
  annotations: { readOnlyHint: false, destructiveHint: true, openWorldHint: true },
  inputSchema: {
    type: 'object',
    properties: {
      guests: { type: 'integer', minimum: 1, maximum: 12, description: 'How many come' },
      where: { type: 'string', enum: ['inside', 'outside'], default: 'inside' },
      host: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
      dishes: { type: 'array', items: { type: 'object', properties: { dish: { type: 'string' } } } },
      note: { anyOf: [{ type: 'string' }, { type: 'null' }] },
    },
    required: ['guests', 'host'],
  },
  outputSchema: {
    type: 'object',
    properties: { id: { type: 'string', description: 'To cancel it' } },
    required: ['id'],
  },
};
const ITEMS: Record<string, readonly object[]> = {
  tools: [BOOK, { name: 'bare', inputSchema: { type: 'object' } }, { name: 'odd', inputSchema: { $ref: '#/x' } }],
  prompts: [
    { name: 'greet', description: 'Greets', arguments: [{ name: 'who', required: true, description: 'Whom' }] },
  ],
  resources: [{ uri: 'demo://a b', name: 'A', mimeType: 'text/plain', size: 12, description: 'The first' }],
  templates: [{ uriTemplate: 'demo://{id}', name: 'by id', description: 'Any' }],
};
const listing = ({ params }: Asked): Reply => ({
  result: JSON.stringify({ items: (ITEMS[params.kind] ?? []).map((item) => ({ server: 'demo', item })), missing: [] }),
});

test('a tool is shown with its title, its whole description, what its server says of it, and both schemas', async () => {
  await using place = workplace();
  await place.control(listing);
  const { code, stdout, stderr } = await place.run('tools', 'demo', 'book');
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const lines = stdout.trimEnd().split('\n');
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(80);
  expect(lines[0]).toBe('book of demo: Book a table');
  expect(stdout.replaceAll(/\s+/g, ' ')).toContain(LONG);
  expect(stdout.slice(stdout.indexOf('the server says')).trimEnd().split('\n')).toEqual([
    'the server says: it may change something; it may destroy something; it deals',
    '    with the world outside',
    '',
    'arguments',
    '  guests (integer, required, at least 1, at most 12): How many come',
    '  where (string, one of "inside" "outside", default "inside")',
    '  host (object, required)',
    '    name (string, required)',
    '  dishes (list of object)',
    '    dish (string)',
    '  note (string or null)',
    '',
    'result',
    '  id (string, required): To cancel it',
    '',
    'troupe call demo book guests=… host=…',
  ]);
});

test('--json gives the definition as its server wrote it', async () => {
  await using place = workplace();
  await place.control(() => ({
    result: '{"items":[{"server":"d","item":{ "name":"t", "n":9007199254740993 }}],"missing":[]}',
  }));
  expect((await place.run('tools', 'd', 't', '--json')).stdout).toBe('{ "name":"t", "n":9007199254740993 }\n');
});

test('so are prompts, resources and templates, by their name or address', async () => {
  await using place = workplace();
  await place.control(listing);
  const shown = async (...words: string[]) => (await place.run(...words)).stdout.trimEnd();
  expect(await shown('tools', 'demo', 'bare')).toBe('bare of demo\n\ntroupe call demo bare');
  expect(await shown('tools', 'demo', 'odd')).toBe(
    'odd of demo\n\narguments\n  {"$ref":"#/x"}\n\ntroupe call demo odd',
  );
  expect(await shown('prompts', 'demo', 'greet')).toBe(
    'greet of demo\n\nGreets\n\narguments\n  who (required): Whom\n\ntroupe prompt demo greet who=…',
  );
  const resource =
    "A of demo\n\nThe first\n\naddress: demo://a b\ntype: text/plain\nsize: 12 bytes\n\ntroupe read demo 'demo://a b'";
  expect(await shown('resources', 'demo', 'A')).toBe(resource);
  expect(await shown('resources', 'demo', 'demo://a b')).toBe(resource);
  expect(await shown('templates', 'demo', 'demo://{id}')).toBe('by id of demo\n\nAny\n\naddress: demo://{id}');
});

test('a name that is not there is an error with a hint', async () => {
  await using place = workplace();
  await place.control(listing);
  expect(await place.run('tools', 'demo', 'Boo')).toMatchObject({
    code: 1,
    stderr: 'troupe: demo has no tool Boo; did you mean book?\n',
  });
  expect((await place.run('prompts', 'demo', 'x')).stderr).toBe(
    'troupe: demo has no prompt x; `troupe prompts demo` lists them\n',
  );
});
