// What servers and files say is shown on a terminal so that all of it is seen and none of it drives the terminal: whichever
// of the two streams is one, and whichever field the words came in. A program that reads a pipe gets them unchanged.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { printContents, printPrompt, printToolResult } from '../../src/cli/calls/content.ts';
import { definitionText } from '../../src/cli/calls/definition.ts';
import { showProgress } from '../../src/cli/terminal/progress.ts';
import { commandText } from '../../src/cli/terminal/quoting.ts';
import { table, wholeTable } from '../../src/cli/terminal/table.ts';
import { gist, quoted, stated } from '../../src/cli/terminal/words.ts';
import { type Output, outputTo } from '../../src/cli/verb.ts';
import { printable } from '../../src/telemetry/printable.ts';
import { type Asked, type Reply, workplace } from '../support/cli.ts';
import { terminal } from '../support/terminal.ts';

/** What must not be on a terminal but by our own hand. */
const RAW =
  /(?![\n\t])[\p{Cc}\p{Zl}\p{Zp}\u061c\u115f\u1160\u200b-\u200f\u202a-\u202e\u2060\u2066-\u2069\u3164\ufeff\uffa0\u{e0000}-\u{e0fff}]|[\u034f]|[\u17b4\u17b5]|[\u180b-\u180f]|[\ufe00-\ufe0e]/u;
const SAMPLES = [
  ...['\x1b[2J', '\x1b]0;title\x07', '\x9b31m', '\x7f', '\r', '\b\b', '\u0000', '\u202egnp.exe', '\u2066x\u2069'],
  ...['\u200e', '\u200f', '\u061c', 'a\u200bb\u200cc\u200dd', '\u2060', '\ufeff', '\u2028', '\u2029', '\u{e0041}'],
  ...['\u3164', '\u115f', '\uffa0', 'e\u034fvil', 'e\ufe00vil', '\u17b4', '\u180b'],
  ...['\x1b[31m', '<0:31>', 'plain words', 'é日本🎭'],
];
const hostile = fc
  .array(fc.oneof(fc.constantFrom(...SAMPLES), fc.string({ unit: 'binary', maxLength: 20 })), { maxLength: 6 })
  .map((parts) => parts.join(''));

function streams(stdoutIsTTY: boolean, stderrIsTTY: boolean, json = false) {
  const written = { stdout: '', stderr: '' };
  const stream = (name: keyof typeof written, isTTY: boolean) => ({
    isTTY,
    columns: 80,
    write: (text: string | Uint8Array) => {
      written[name] += typeof text === 'string' ? text : Buffer.from(text).toString();
    },
  });
  const output = outputTo(stream('stdout', stdoutIsTTY), stream('stderr', stderrIsTTY), json, { TERM: 'xterm' });
  return { output, written };
}

/** Without the sequences that are ours: colours, and erasing the line of a progress bar. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it is about
const withoutOurs = (text: string): string => text.replace(/\x1b\[(?:0|1|2|31|32|33|36)m|\r\x1b\[2K/g, '');

const json = (value: object): Buffer => Buffer.from(JSON.stringify(value));

/** Every way in which a server's words come to the terminal. */
const SHOWN: Record<string, (output: Output, words: string) => void> = {
  'a tool result': (output, text) => printToolResult(output, json({ content: [{ type: 'text', text }] })),
  'structured content': (output, text) => printToolResult(output, json({ structuredContent: { [text]: text } })),
  'content that is no text': (output, uri) =>
    printToolResult(output, json({ content: [{ type: uri, mimeType: uri, name: uri, uri, resource: { uri } }] })),
  'a resource': (output, text) =>
    printContents(
      output,
      json({
        contents: [
          { uri: text, text },
          { uri: text, mimeType: text },
        ],
      }),
    ),
  'a prompt': (output, text) =>
    printPrompt(output, json({ description: text, messages: [{ role: text, content: { type: 'text', text } }] })),
  'a cell': (output, text) => output.print(table(output, [{ title: 'A', elastic: true }], [[{ text, style: 'red' }]])),
  'a whole cell': (output, text) => output.print(wholeTable(output, [{ title: 'A', elastic: true }], [[text]])),
  'a command line': (output, text) => output.print(commandText([text, text])),
  'a form': (output, text) => output.say(stated(output, text, ` asks:\n${quoted(output, text)}`)),
  'a question in one line': (output, text) =>
    output.say(gist({ kind: 'elicitation', stage: 'answer', server: text, message: text } as never)),
  'progress and a log line': (output, text) => {
    const { onNotice, end } = showProgress(output, { server: text });
    onNotice({ method: 'progress', params: { progress: 1, total: 2, message: text } });
    onNotice({ method: 'log', params: { level: text, data: text } });
    onNotice({ method: 'log', params: { data: { text } } });
    onNotice({ method: 'ask', params: { ask: text, kind: 'approval' } });
    end();
  },
  'a definition': (output, text) => {
    const inputSchema = { properties: { [text]: { type: text, description: text, enum: [text] } }, required: [text] };
    const item = { name: text, title: text, description: text, uri: text, inputSchema, annotations: { [text]: text } };
    for (const kind of ['tools', 'resources'] as const) output.print(definitionText(output, kind, text, item));
  },
  'a painted name': (output, text) => output.say(output.paint('bold', text)),
};

describe.each(Object.keys(SHOWN))('%s', (name) => {
  it('holds nothing raw on the stream that is a terminal, be it the one or the other', () => {
    fc.assert(
      fc.property(hostile, fc.boolean(), fc.boolean(), (words, out, err) => {
        const { output, written } = streams(out, err);
        SHOWN[name]?.(output, words);
        if (out) expect(withoutOurs(written.stdout)).not.toMatch(RAW);
        if (err) expect(withoutOurs(written.stderr)).not.toMatch(RAW);
      }),
      {
        examples: SAMPLES.flatMap((sample) => [[sample, true, false] as const, [sample, false, true] as const]).map(
          (e) => [...e],
        ) as never,
      },
    );
  });
});

it('leaves what a program reads unchanged, and what is printable as it is', () => {
  const { output, written } = streams(false, false);
  printToolResult(output, json({ content: [{ type: 'text', text: 'a\x1b[2J\u202eb' }] }));
  expect(written.stdout).toBe('a\x1b[2J\u202eb\n');
  expect(printable('plain\n\twords: é日本🎭 שלום')).toBe('plain\n\twords: é日本🎭 שלום');
  expect(printable('\u26a0\ufe0f a\ufe0f')).toBe('\u26a0\ufe0f a\\ufe0f');
  expect(printable('a\x1b[2J\u202e\u{e0041}\r\nb')).toBe('a\\u001b[2J\\u202e\\udb40\\udc41\nb');
});

it('prints JSON on a terminal that is the same JSON', () => {
  fc.assert(
    fc.property(hostile, (words) => {
      const { output, written } = streams(true, true, true);
      output.print(json({ words }));
      expect(written.stdout).not.toMatch(RAW);
      expect(JSON.parse(written.stdout)).toEqual({ words: words.toWellFormed() });
    }),
  );
});

it('takes a style of ours from nobody else', () => {
  const { output, written } = streams(true, true);
  const mark = output.paint('red', 'x').split('x')[0] as string;
  output.print(`\x1b[31mred${output.paint('red', 'ours')}`);
  expect(written.stdout).toBe('\\u001b[31mred\x1b[31mours\x1b[0m\n');
  expect(streams(true, true).output.paint('red', 'x')).not.toContain(mark); // another run has other marks
});

it('quotes a command line so that it reads as one thing only', () => {
  expect(commandText(['npx', '-y', '@a/b', ''])).toBe("npx -y @a/b ''");
  expect(commandText(['sh', '-c', 'echo hi; rm -rf ~'])).toBe("sh -c 'echo hi; rm -rf ~'");
  expect(commandText(["it's", 'a b', '$HOME'])).toBe("'it'\\''s' 'a b' '$HOME'");
  expect(commandText(['a\nb', 'x\u202ey', '\\u202e'])).toBe("$'a\\nb' $'x\\u202ey' '\\u202e'");
  fc.assert(
    fc.property(fc.array(hostile, { maxLength: 4 }), fc.array(hostile, { maxLength: 4 }), (one, other) => {
      const isSame = JSON.stringify(one) === JSON.stringify(other);
      expect(commandText(one) === commandText(other)).toBe(isSame);
    }),
  );
});

const MAIN = fileURLToPath(new URL('../../dist/bundle/troupe.cjs', import.meta.url));
const WORDS = 'x\x1b]0;owned\x07\u202egnp\u200b\u{e0041}';

test('every verb on a real terminal, also where only stderr is one', async () => {
  await using place = workplace();
  const { PATH } = process.env;
  const env = { PATH, HOME: place.directory, TROUPE_STATE: place.directory, TROUPE_CONFIG: place.config };
  mkdirSync(join(place.directory, 'logs'), { recursive: true });
  const lines = [
    { server: 's', source: 'stderr', msg: WORDS },
    { server: WORDS, msg: 'x', [WORDS]: WORDS },
  ];
  writeFileSync(
    join(place.directory, 'logs', 'troupe.log'),
    lines.map((each) => `${JSON.stringify({ level: 30, time: 1, ...each })}\n`).join(''),
  );
  const source = join(place.directory, 'other.json');
  writeFileSync(
    source,
    JSON.stringify({ mcpServers: { a: { command: WORDS, args: ['a b'], env: { [WORDS]: WORDS } } } }),
  );
  await place.control(hostileDaemon);
  const shown = async (command: string): Promise<string> => {
    const words = ['/bin/sh', '-c', command.replaceAll('troupe ', `'${process.execPath}' '${MAIN}' `)];
    await using screen = terminal(words, { env });
    await screen.code;
    return screen.raw().replaceAll('\r\n', '\n');
  };
  const verbs = [
    ...[
      'ps',
      'status',
      'tools',
      'tools s',
      'resources',
      'prompts',
      'call s t',
      'call s t --json',
      'call s no',
      'read s u',
    ],
    ...['prompt s p', 'logs', `import ${source} --dry-run`, 'inbox', 'tasks', 'roots', 'start s', 'tools --json'],
  ];
  const commands = [
    ...verbs.map((verb) => `troupe ${verb}`),
    'troupe prompt s p >/dev/null',
    'troupe call s no 2>/dev/null',
  ];
  // Several at once, because each is a process that mostly waits.
  for (let at = 0; at < commands.length; at += 4)
    for (const [index, raw] of (await Promise.all(commands.slice(at, at + 4).map(shown))).entries())
      expect({ command: commands[at + index], found: RAW.exec(withoutOurs(raw))?.[0] }).toEqual({
        command: commands[at + index],
      });
  expect(await shown(`troupe import ${source} --dry-run`)).toContain("'a b'");
  expect(await shown('troupe prompt s p >/dev/null')).toContain(
    'x\\u001b]0;owned\\u0007\\u202egnp\\u200b\\udb40\\udc41',
  );
}, 60_000);

function hostileDaemon({ method, params }: Asked): Reply {
  const server = { name: WORDS, state: WORDS, since: 1, pid: 1, restarts: 0, lastError: WORDS };
  const item = {
    name: WORDS,
    uri: WORDS,
    title: WORDS,
    description: WORDS,
    inputSchema: { properties: { [WORDS]: {} } },
  };
  const block = { type: 'text', text: WORDS };
  const results: Record<string, unknown> = {
    start: server,
    list: { items: [{ server: WORDS, item }], missing: [{ server: WORDS, state: WORDS, why: WORDS }] },
    inbox: {
      version: 1,
      asks: [
        {
          id: 'abcd',
          kind: 'elicitation',
          stage: 'answer',
          server: WORDS,
          message: WORDS,
          tool: WORDS,
          principal: WORDS,
        },
      ],
    },
    tasks: {
      tasks: [
        {
          taskId: 'abcdefgh1',
          server: WORDS,
          tool: WORDS,
          status: WORDS,
          statusMessage: WORDS,
          createdAt: '2025-01-01T00:00:00Z',
          attempt: 1,
        },
      ],
    },
    roots: { roots: [{ uri: WORDS, name: WORDS, from: 'host', problem: WORDS }] },
    status: {
      daemon: {
        pid: 1,
        version: WORDS,
        state: 'running',
        instance: null,
        config: WORDS,
        configError: WORDS,
        logFile: WORDS,
        uptimeMs: 1,
        memoryBytes: 1,
      },
      bus: { state: 'offline', url: WORDS, lastError: WORDS },
      http: { state: 'failed', url: null, error: WORDS },
      store: { state: WORDS, message: WORDS },
      plugins: [{ name: WORDS, state: 'failed', error: WORDS }],
      servers: [server],
    },
  };
  if (method !== 'call') return { result: JSON.stringify(results[method] ?? {}) };
  const { name } = params.params ?? {};
  if (name === 'no') return { error: { code: -32000, message: WORDS } };
  if (params.method === 'prompts/get')
    return { result: JSON.stringify({ description: WORDS, messages: [{ role: WORDS, content: block }] }) };
  if (params.method === 'resources/read')
    return { result: JSON.stringify({ contents: [{ uri: WORDS, text: WORDS }] }) };
  return {
    result: JSON.stringify({ content: [block, { type: 'resource_link', uri: WORDS, name: WORDS }], isError: true }),
  };
}
