// Forms at a real terminal of 80 columns, key by key. The daemon is played from a script on the control socket, but for the
// last test, where all parts are real.

import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ask, asking, ID, outcome, refusal } from '../support/asking.ts';
import { daemon, MAIN, ROOT } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { talk, terminal } from '../support/terminal.ts';

const FORM = {
  type: 'object',
  properties: {
    name: { type: 'string', title: 'Your name', description: 'As people call you', minLength: 3 },
    size: { type: 'integer', title: 'Size', minimum: 1, maximum: 10, default: 3 },
    color: {
      ...{ type: 'string', title: 'Color' },
      oneOf: [
        { const: '#f00', title: 'Red' },
        { const: '#00f', title: 'Blue' },
      ],
    },
    pets: {
      ...{ type: 'array', title: 'Pets', items: { type: 'string', enum: ['cat', 'dog'] } },
      ...{ default: ['cat'], maxItems: 1 },
    },
    mail: { type: 'string', title: 'Mail', format: 'email' },
    news: { type: 'boolean', title: 'News', default: true },
  },
  required: ['name', 'color'],
};
const SEND = '[s]end, [e]dit a field, [d]ecline, [c]ancel: ';

test('a form takes defaults, choices and corrections, is reviewed and edited, and then sent', async () => {
  await using all = await asking([ask({ schema: FORM })]);
  const screen = all.troupe(['answer', 'ab12']);
  await talk(
    screen,
    ['everything asks, while it runs greet for alice:\n  │ Who are\n  │ you?'],
    ['│ Your name (As people call you)', 'Al'],
    [/It must NOT have fewer than 3 characters.*\n.*: /, 'Ada'],
    ['│ Size 1 to 10 [3]: ', '11'],
    [/It must be <= 10\.\n.*\[3\]: /, ''],
    [/│ +1 {2}Red \(#f00\)\n│ +2 {2}Blue \(#00f\)\n {2}a number: /, '3'],
    [/"3" is none of them.*\n {2}a number: /, '2'],
    [/│ +2 {2}dog\n.*\[cat\]: /, '1,2'],
    [/It must NOT have more than 1 items\.\n.*\[cat\]: /, '-'],
    ['│ Mail an e-mail address [leave out]: ', 'ada'],
    [/It must be an e-mail address\.\n.*: /, 'ada@example.com'],
    ['│ News y or n [yes]: ', ''],
    [
      /would get:\n +1 {2}Your name {2}Ada\n +2 {2}Size {7}3\n +3 {2}Color {6}Blue \(#00f\)\n +4 {2}Pets {7}\(left out\)/,
    ],
    [SEND, 'e'],
    ['Which one (1-6)? ', 'size'],
    ['│ Size 1 to 10 [3]: ', '7'],
    [/Size {7}7[\s\S]*ancel: /, 'e 2'],
    ['│ Size 1 to 10 [7]: ', ''],
    [/Size {7}7[\s\S]*ancel: /, 's'],
    ['everything has your answer'],
  );
  expect(await screen.code).toBe(0);
  const content = { name: 'Ada', size: 7, color: '#00f', mail: 'ada@example.com', news: true };
  expect(all.said).toEqual([{ id: ID, action: 'accept', stage: 'answer', content }]);
  const widest = Math.max(
    ...screen
      .screen()
      .split('\n')
      .map((line) => line.length),
  );
  expect(widest).toBeLessThanOrEqual(80);
  expect(screen.raw()).not.toContain('\x1b[1m');
});

test('an answer that the daemon refuses comes back to its field', async () => {
  const schema = { type: 'object', properties: { name: { type: 'string' }, age: { type: 'integer', default: 7 } } };
  await using all = await asking([ask({ schema })], ({ content }) =>
    content.age === 7 ? refusal('invalid', 'age: must not be 7') : outcome('accepted'),
  );
  const screen = all.troupe(['answer', 'ab12']);
  await talk(screen, ['│ name [leave out]: ', ''], ['│ age [7]: ', ''], [SEND, 's']);
  await talk(screen, [/age: must not be 7\n│ age \[7\]: /, '8'], [SEND, 's'], ['has your answer']);
  expect(all.said.map(({ content }) => content)).toEqual([{ age: 7 }, { age: 8 }]);
});

test('Ctrl-C in a form sends nothing, ends with 130 and says that the question is still open', async () => {
  await using all = await asking([ask({ schema: FORM })]);
  const screen = all.troupe(['answer', 'ab12']);
  await talk(screen, ['Your name', 'Ada'], ['Size', '\x03']);
  await screen.sees('nothing was sent; the question is still open: troupe answer ab12cd34');
  expect(await screen.code).toBe(130);
  expect(all.said).toEqual([]);
});

test('a form can be declined after it was looked at, by a word that was meant', async () => {
  await using all = await asking([ask({ schema: { type: 'object', properties: {} } })], () => outcome('declined'));
  const screen = all.troupe(['answer', 'ab12']);
  const send = '[s]end, [d]ecline, [c]ancel: ';
  await talk(screen, ['wants no more than your consent'], [send, ''], ['Please type s, d, c'], [send, 'decline']);
  await screen.sees('everything is told that you declined');
  expect(all.said).toEqual([{ id: ID, action: 'decline', stage: 'answer' }]);
});

test('lines that were pasted into a field fill the next ones, but decide nothing', async () => {
  const schema = { type: 'object', properties: { a: { type: 'string' }, b: { type: 'string' } } };
  await using all = await asking([ask({ schema })]);
  const screen = all.troupe(['answer', 'ab12']);
  await talk(screen, ['│ a [leave out]: ', 'one\rtwo\rs\rs'], [/1 {2}a {2}one\n +2 {2}b {2}two/], [SEND]);
  expect(all.said).toEqual([]);
  await talk(screen, ['', 'cancel'], ['has your answer']);
  expect(all.said).toEqual([{ id: ID, action: 'cancel', stage: 'answer' }]);
});

test("a server's endless pattern holds nobody up", async () => {
  const schema = { type: 'object', properties: { word: { type: 'string', pattern: '^(a+)+$' } } };
  await using all = await asking([ask({ schema })]);
  const screen = all.troupe(['answer', 'ab12']);
  await talk(screen, ['│ word [leave out]: ', `${'a'.repeat(40)}!`], ['took too long to check']);
  await talk(screen, ['│ word [leave out]: ', 'aaa'], [SEND, 's'], ['has your answer']);
  expect(all.said[0].content).toEqual({ word: 'aaa' });
});

test.each([
  ['unknownName', 'the question of everything is no longer open'],
  ['answered', 'question ab12cd34 was already answered by the host'],
])(
  'whoever types is told when the question is gone meanwhile, and by whom if that is known (%s)',
  async (code, why) => {
    await using all = await asking([ask({ schema: FORM })], () => refusal(code, why));
    const screen = all.troupe(['answer', 'ab12']);
    await talk(screen, ['Your name', 'Ada'], ['Size']);
    all.change([]);
    await screen.sees(`\ntroupe: ${why}; nothing was sent`);
    expect(await screen.code).toBe(1);
    // It asks how the question ended by a word to a stage that no question has, which answers none.
    expect(all.said).toEqual([{ id: ID, action: 'cancel', stage: 'over' }]);
  },
);

test('whoever types is told at once that the daemon is gone, between words and on a line of its own', async () => {
  await using all = await asking([ask({ schema: FORM })]);
  const screen = all.troupe(['answer', 'ab12']);
  await talk(screen, ['Your name', 'Ada'], ['Size']);
  all.hangUp();
  await screen.sees('\ntroupe: troupe went away; nothing was sent\n');
  expect(await screen.code).toBe(4);
});

test('a long reason is broken between words', async () => {
  const why = `question ab12cd34 was already answered by ${'somebody '.repeat(8)}else`;
  await using all = await asking([ask({ schema: FORM })], () => refusal('answered', why));
  const screen = all.troupe(['answer', 'ab12']);
  await talk(screen, ['Your name']);
  all.change([]);
  await screen.sees(/\ntroupe: question .* somebody\nsomebody [\s\S]*nothing was sent/);
  expect(await screen.code).toBe(1);
});

const EVERYTHING = join(ROOT, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js');

test('a call waits, its question is in the inbox, and the form at the terminal lets it go on', async () => {
  await using d = await daemon({
    servers: { everything: { command: process.execPath, args: [EVERYTHING, 'stdio'] } },
  });
  await d.until('everything', 'ready');
  const call = d.cli('call', 'everything', 'trigger-elicitation-request');
  let told = '';
  call.stderr?.on('data', (chunk: Buffer) => (told += chunk.toString()));
  const id = await eventually(() => {
    const [, found] = /^everything asks a question; answer it with: troupe answer (\w{8})\n/.exec(told) ?? [];
    if (!found) throw new Error(`it said ${JSON.stringify(told)}`);
    return found;
  }, 20_000);
  expect((await d.cli('status')).stdout).toMatch(/^asks +1 open; see `troupe inbox`$/m);
  const [view] = JSON.parse((await d.cli('inbox', '--json')).stdout);
  expect(view).toMatchObject({
    ...{ kind: 'elicitation', server: 'everything', tool: 'trigger-elicitation-request', principal: '_' },
    ...{ id: expect.stringMatching(new RegExp(`^${id}`)), schema: { type: 'object' } },
  });
  await using screen = terminal([process.execPath, MAIN, 'answer', id], { env: d.env });
  await talk(screen, ['everything asks, while it runs trigger-elicitation-request for you:']);
  await talk(screen, ['│ String (Your full, legal name): ', 'Ada'], ['│ Boolean', 'y'], ['stormy night.]: ', '']);
  for (const next of ['│ String with email', '│ String with uri', '│ String with date', '│ Integer', '│ Number'])
    await talk(screen, [next], [/: $/, '']);
  for (const next of ['[Monica]: ', '[Guitar]: ', '[Superman (hero-1)]: ', '[Tuna (fish-1)]: ', '[Cats (pet-1)]: '])
    await talk(screen, [next, next === '[Superman (hero-1)]: ' ? '3' : '']);
  await talk(screen, [SEND, 's'], ['everything has your answer']);
  const { exitCode, stdout } = await call;
  expect(exitCode).toBe(0);
  expect(stdout).toContain('- Name: Ada');
  expect(stdout).toMatch(/"titledSingleSelectEnum": "hero-3"/);
  expect((await d.cli('inbox', '--json')).stdout).toBe('[]');
});
