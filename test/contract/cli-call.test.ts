// `call` and its siblings against the control socket: the bytes that go out, the bytes that come back, the exit codes.

import { expect, test } from 'vitest';
import { type Asked, type Reply, workplace } from '../support/cli.ts';
import { eventually } from '../support/eventually.ts';

const TOOLS = JSON.stringify({
  items: [
    {
      server: 'demo',
      item: { name: 'add', inputSchema: { properties: { a: { type: 'number' }, s: { type: 'string' } } } },
    },
  ],
  missing: [],
});
const answering =
  (result: string) =>
  ({ method }: Asked): Reply => ({ result: method === 'list' ? TOOLS : result });
const text = (words: string): string => JSON.stringify({ content: [{ type: 'text', text: words }] });

test('a call prints the text and passes numbers with every digit', async () => {
  await using place = workplace();
  const asked = await place.control(answering(text('done')));
  const { code, stdout, stderr } = await place.run('call', 'demo', 'add', 'a=9007199254740993', 's=5', 'raw:=[1.0]');
  expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: 'done\n', stderr: '' });
  expect(asked.at(-1)?.line).toContain(
    '"params":{"name":"add","arguments":{"a":9007199254740993,"s":"5","raw":[1.0]}}',
  );
  expect(asked.at(-1)?.params).toMatchObject({ server: 'demo', method: 'tools/call' });
});

test('--json prints the result byte for byte', async () => {
  await using place = workplace();
  const result = '{"z":9007199254740993, "content":[],"structuredContent":{"b":1.0,"a":"é"},"unknown":null}';
  await place.control(answering(result));
  const { code, stdout } = await place.run('call', 'demo', 'add', '--args', '{"a":1}', '--json');
  expect({ code, stdout }).toEqual({ code: 0, stdout: `${result}\n` });
});

test('--args alone asks for no schema and leaves in the words of the user', async () => {
  await using place = workplace();
  const asked = await place.control(answering(text('ok')));
  await place.run('call', 'demo', 'add', '--args', '{"b":2.50,  "a":9007199254740993}', '--timeout', '1.5s');
  expect(asked.map(({ method }) => method)).toEqual(['call']);
  expect(asked[0]?.line).toContain('"arguments":{"b":2.50,  "a":9007199254740993}');
  expect(asked[0]?.params.timeoutMs).toBe(1500);
});

test('what is not text is named in one line; structured content stands in for missing text', async () => {
  await using place = workplace();
  const image = { type: 'image', mimeType: 'image/png', data: Buffer.alloc(3000).toString('base64') };
  const link = { type: 'resource_link', uri: 'file:///a', name: 'a' };
  await place.control(
    answering(`{"content":${JSON.stringify([image, link])},"structuredContent":{"n":9007199254740993}}`),
  );
  const { stdout } = await place.run('call', 'demo', 'add');
  expect(stdout.split('\n')).toEqual([
    '{"n":9007199254740993}',
    '[image image/png, 2.9 kB]',
    '[resource_link a, file:///a]',
    '',
  ]);
});

test('a tool that returned an error ends with 5, and its words are data', async () => {
  await using place = workplace();
  await place.control(answering('{"content":[{"type":"text","text":"no such file"}],"isError":true}'));
  const plain = await place.run('call', 'demo', 'add');
  expect(plain).toMatchObject({ code: 5, stdout: 'no such file\n' });
  expect(await place.run('call', 'demo', 'add', '--json')).toMatchObject({ code: 5, stderr: '' });
});

test.each([
  ['unavailable', 4],
  ['unauthorized', 3],
  ['unknownServer', 1],
  ['timeout', 1],
  ['invalid', 2],
])('a failure %s ends with %d and says its sentence', async (failure, code) => {
  await using place = workplace();
  const data = { troupe: { code: failure, delivery: 'not sent', server: 'demo', state: 'waiting' } };
  await place.control(() => ({ error: { code: -32010, message: 'demo is waiting.', data } }));
  expect(await place.run('read', 'demo', 'a://b')).toEqual({ code, stdout: '', stderr: 'troupe: demo is waiting.\n' });
  const { stderr, ...rest } = await place.run('read', 'demo', 'a://b', '--json');
  expect(rest).toEqual({ code, stdout: '' });
  expect(JSON.parse(stderr)).toEqual({
    error: { code: failure, message: 'demo is waiting.', delivery: 'not sent', server: 'demo', state: 'waiting' },
  });
});

test("a server's own error is told as its own", async () => {
  await using place = workplace();
  await place.control(() => ({ error: { code: -32602, message: 'bad uri' } }));
  const { code, stderr } = await place.run('read', 'demo', 'a://b');
  expect({ code, stderr }).toEqual({ code: 1, stderr: 'troupe: the server refused: bad uri (-32602)\n' });
});

test('a daemon that goes away leaves the outcome unknown, and says so', async () => {
  await using place = workplace();
  await place.control((_, socket) => void socket.destroy() as undefined);
  const { code, stderr } = await place.run('call', 'demo', 'add');
  expect(code).toBe(1);
  expect(stderr).toMatch(/outcome is unknown/);
});

test('Ctrl-C cancels upstream, waits for the outcome and ends with 130', async () => {
  await using place = workplace();
  const asked = await place.control(({ method, params }, socket) => {
    const error = { code: -32014, message: 'cancelled' };
    if (method === 'cancel') socket.write(`{"jsonrpc":"2.0","id":${params.id},"error":${JSON.stringify(error)}}\n`);
    return undefined;
  });
  const running = place.start('call', 'demo', 'slow');
  await eventually(() => asked.length === 1);
  running.child.kill('SIGINT');
  expect((await running.done).code).toBe(130);
  expect(asked.at(-1)).toMatchObject({ method: 'cancel', params: { id: asked[0]?.id } });
});

test('a second Ctrl-C leaves at once, whether or not the daemon answers', async () => {
  await using place = workplace();
  const asked = await place.control(() => undefined);
  const running = place.start('call', 'demo', 'slow');
  await eventually(() => asked.length === 1);
  running.child.kill('SIGINT');
  await eventually(() => asked.length === 2);
  running.child.kill('SIGINT');
  expect((await running.done).code).toBe(130);
});

test('read prints text, prompt prints its messages, complete prints its values', async () => {
  await using place = workplace();
  const results: Record<string, string> = {
    'resources/read': '{"contents":[{"uri":"a://b","text":"hello"},{"uri":"a://c","blob":"AAAA"}]}',
    'prompts/get': '{"messages":[{"role":"user","content":{"type":"text","text":"Say it"}}]}',
    'completion/complete': '{"completion":{"values":["paris","parma"],"hasMore":false}}',
  };
  const asked = await place.control(({ params }) => ({ result: results[params.method] ?? '{}' }));
  expect((await place.run('read', 'demo', 'a://b')).stdout).toBe('hello\n[blob 3 B, a://c]\n');
  expect((await place.run('prompt', 'demo', 'greet', 'name=5')).stdout).toBe('user:\nSay it\n');
  expect(asked.at(-1)?.params.params).toEqual({ name: 'greet', arguments: { name: '5' } });
  expect((await place.run('complete', 'demo', 'greet', 'city=par', 'land=fr')).stdout).toBe('paris\nparma\n');
  expect(asked.at(-1)?.params.params).toEqual({
    ref: { type: 'ref/prompt', name: 'greet' },
    argument: { name: 'city', value: 'par' },
    context: { arguments: { land: 'fr' } },
  });
  await place.run('complete', 'demo', 'file:///{path}', 'path=a');
  expect(asked.at(-1)?.params.params.ref).toEqual({ type: 'ref/resource', uri: 'file:///{path}' });
});
