// Addresses, approvals, a model's words and the inbox at a real terminal of 80 columns, in front of a daemon that is played
// from a script on the control socket.

import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { ask, asking, ID, outcome, refusal } from '../support/asking.ts';
import { eventually } from '../support/eventually.ts';
import { talk } from '../support/terminal.ts';

/** Programs that open browsers, which note what they would have opened. */
function browser(directory: string, then = '') {
  const [bin, opened] = [join(directory, 'bin'), join(directory, 'opened')];
  mkdirSync(bin);
  for (const name of ['xdg-open', 'open']) {
    writeFileSync(join(bin, name), `#!/bin/sh\nprintf %s "$1" > "${opened}"\n${then}\n`);
    chmodSync(join(bin, name), 0o755);
  }
  return { opened, env: { PATH: `${bin}:${process.env.PATH}`, NO_COLOR: '' } };
}

const CONSENT = 'Open it in your browser? [y/N/d(ecline)] ';

test('an address is shown whole with its host in bold, and opened only after a yes', async () => {
  const url = 'http://bank.example@xn--pple-43d.com/pay?to=me';
  const first = ask({ mode: 'url', url, message: 'Pay' });
  await using all = await asking([first], () => {
    const isAgreed = all.said.length === 1;
    all.change(isAgreed ? [{ ...first, stage: 'done' }] : []);
    return outcome(isAgreed ? 'open' : 'completed');
  });
  const { opened, env } = browser(all.directory);
  const doubtful = all.troupe(['answer', 'ab12'], env);
  await talk(doubtful, [`\n  ${url}\n`], ['It leads to xn--pple-43d.com.'], ['Warning: It is not https']);
  await talk(doubtful, [/letters may\s+imitate/], [CONSENT, ''], ['Nothing was opened or sent']);
  expect(await doubtful.code).toBe(0);
  expect(doubtful.raw()).toContain('http://bank.example@\x1b[1mxn--pple-43d.com\x1b[0m/pay?to=me');
  expect([all.said, existsSync(opened)]).toEqual([[], false]);
  const willing = all.troupe(['answer', 'ab12'], env);
  await talk(willing, [CONSENT, 'y'], ['Is it done? [y/N] ', 'y'], ['everything can go on']);
  const accept = { id: ID, action: 'accept' };
  expect(all.said).toEqual([
    { ...accept, stage: 'answer' },
    { ...accept, stage: 'done' },
  ]);
  await eventually(() => expect(readFileSync(opened, 'utf8')).toBe(url));
});

test('an address that is declined is not opened; what the server says is done needs no word', async () => {
  const url = 'https://example.com/';
  await using all = await asking([ask({ mode: 'url', url })], () => outcome('declined'));
  const { opened, env } = browser(all.directory);
  await talk(all.troupe(['answer', 'ab12'], env), [CONSENT, 'd'], ['everything is told that you declined']);
  expect([all.said, existsSync(opened)]).toEqual([[{ id: ID, action: 'decline', stage: 'answer' }], false]);
  all.change([ask({ mode: 'url', url, stage: 'done' })]);
  const waiting = all.troupe(['answer', 'ab12'], env);
  await talk(waiting, ['The call waits until you are done there.'], ['Is it done? [y/N] ']);
  all.change([]);
  await waiting.sees('everything no longer waits for it');
  expect(await waiting.code).toBe(0);
});

test('where no browser can be started it says to open the address oneself, and how to come back', async () => {
  const first = ask({ mode: 'url', url: 'https://example.com/' });
  await using all = await asking([first], () => {
    all.change([{ ...first, stage: 'done' }]);
    return outcome('open');
  });
  const { opened, env } = browser(all.directory, 'exit 3');
  const screen = all.troupe(['answer', 'ab12'], env);
  await talk(screen, [CONSENT, 'y'], ['no browser could be started here; open the address yourself']);
  await talk(screen, ['Is it done? [y/N] ', ''], ['still waits; say `troupe answer ab12cd34` again when it is done']);
  expect([await screen.code, existsSync(opened)]).toEqual([0, true]);
});

test('an approval shows what would be called with; somebody who was quicker is named', async () => {
  const given = { path: '/\x1b[2J', text: 'x'.repeat(5000) };
  await using all = await asking([ask({ kind: 'approval', mode: undefined, arguments: given })], () =>
    refusal('answered', 'already answered by the host'),
  );
  const screen = all.troupe(['answer', 'ab12']);
  await talk(screen, ['alice wants to call greet of everything with'], ['"path": "/\\u001b[2J"']);
  await talk(screen, ['(5,000 characters in all)'], ['[a]pprove, [d]ecline: ', ''], ['Please type a, d']);
  await talk(screen, ['[a]pprove, [d]ecline: ', 'a'], ['troupe: already answered by the host']);
  expect(await screen.code).toBe(1);
  expect(all.said).toEqual([{ id: ID, action: 'accept', stage: 'answer' }]);
});

test.each([
  ['answered', 'question ab12cd34 was already answered by the host'],
  ['unknownName', `no open question begins with ${ID}; \`troupe inbox\` lists them`],
])('of a whole id that is no longer open it says what the daemon knows (%s)', async (code, sentence) => {
  await using all = await asking([], () => refusal(code, 'question ab12cd34 was already answered by the host'));
  const screen = all.troupe(['answer', ID]);
  await screen.sees(`troupe: ${sentence}`);
  expect(await screen.code).toBe(1);
});

test('an answer that stands is told so, though the question is gone before the daemon says so', async () => {
  await using all = await asking([ask({ kind: 'approval', mode: undefined, arguments: {} })], async () => {
    all.change([]);
    await setTimeout(100); // a daemon that takes its time
    return outcome('denied');
  });
  const screen = all.troupe(['answer', 'ab12']);
  await talk(screen, ['[a]pprove, [d]ecline: ', 'd'], ['the call to everything is not made']);
  expect(await screen.code).toBe(0);
});

test("a model's request is edited in the person's own editor, looked at again, and leaves no file", async () => {
  const messages = [
    { role: 'user', content: { type: 'text', text: 'Say red' } },
    { role: 'user', content: { type: 'image', mimeType: 'image/png', data: Buffer.alloc(12_000).toString('base64') } },
  ];
  const request = { systemPrompt: 'Be brief', maxTokens: 9, messages, tools: [{ name: 'look', description: 'Looks' }] };
  const review = ask({ kind: 'sampling', mode: undefined, stage: 'request', request });
  const result = { role: 'assistant', model: 'm', content: { type: 'text', text: 'Blue it is' } };
  await using all = await asking([review], ({ stage }) => {
    all.change([{ ...review, stage: 'answer', waitsOn: 'model' }]);
    return outcome(stage === 'request' ? 'open' : 'answered');
  });
  const editor = join(all.directory, 'my editor');
  writeFileSync(editor, `#!/bin/sh\nls -ld "$(dirname "$2")" "$2"\nsed -i.old "s/red/$1/" "$2"\n`);
  chmodSync(editor, 0o755);
  const screen = all.troupe(['answer', 'ab12'], { VISUAL: `'${editor}' blue` });
  await talk(screen, [/system prompt:\n {2}│ Be brief/], [/as the user:\n {2}│ Say red/], ['[image image/png 12 kB]']);
  await talk(screen, ['look  Looks'], ['[d]ecline: ', 'e'], [/drwx------.*\n-rw------- /], [/user:\n {2}│ Say blue/]);
  await talk(screen, ['[d]ecline: ', 'a'], ['The model is asked']);
  all.change([{ ...review, stage: 'result', waitsOn: 'inbox', result }]);
  await talk(screen, [/does not know yet:\nassistant:\n {2}│ Blue it is/], ['[d]ecline: ', 'a'], ['has your answer']);
  expect(all.said.map(({ stage }) => stage)).toEqual(['request', 'result']);
  expect(all.said[0].content.messages[0].content.text).toBe('Say blue');
  expect(readdirSync(all.directory).filter((name) => name.startsWith('troupe-edit'))).toEqual([]);
});

test('a person may speak for a model that fails after its request was approved', async () => {
  const review = ask({ kind: 'sampling', mode: undefined, stage: 'request', request: { messages: [] } });
  await using all = await asking([review], ({ stage }) => {
    all.change([{ ...review, stage: 'answer', waitsOn: 'inbox' }]);
    return outcome(stage === 'request' ? 'open' : 'rejected');
  });
  const screen = all.troupe(['answer', 'ab12']);
  await talk(screen, ['[d]ecline: ', 'a'], ['The model did not answer; `troupe logs` says why.']);
  await talk(screen, ['[a]nswer in the place of a model, [d]ecline: ', 'd'], ['is told that you declined']);
  expect(all.said.map(({ action, stage }) => [action, stage])).toEqual([
    ['accept', 'request'],
    ['decline', 'answer'],
  ]);
});

test('an edit that is no JSON goes back to the editor or is given up', async () => {
  const result = { role: 'assistant', model: 'm', content: { type: 'text', text: 'Hello' } };
  await using all = await asking([ask({ kind: 'sampling', mode: undefined, stage: 'result', result })]);
  const screen = all.troupe(['answer', 'ab12'], { EDITOR: 'echo x >>' });
  await talk(
    screen,
    [/has answered, and everything does not know yet:\nassistant:\n {2}│ Hello/],
    ['[d]ecline: ', 'e'],
  );
  await talk(screen, ['That is no JSON'], ['[l]eave it as it was: ', 'l'], ['│ Hello'], ['[d]ecline: ', 'a']);
  await screen.sees('has your answer');
  expect(all.said).toEqual([{ id: ID, action: 'accept', stage: 'result' }]);
});

test('a person answers in the place of a model, in as many lines as they like', async () => {
  await using all = await asking([ask({ kind: 'sampling', mode: undefined, request: { messages: [] } })]);
  const screen = all.troupe(['answer', 'ab12']);
  await talk(
    screen,
    ['[a]nswer in the place of a model, [d]ecline: ', 'a'],
    ['> ', 'one'],
    ['> ', '  two'],
    ['> ', '.'],
  );
  await talk(screen, ['[s]end, [w]rite again, [d]ecline: ', 's'], ['has your answer']);
  const content = { type: 'text', text: 'one\n  two' };
  expect(all.said[0].content).toEqual({ role: 'assistant', model: 'human', content, stopReason: 'endTurn' });
});

test('a review is not sent for what somebody else has moved on meanwhile', async () => {
  const review = ask({ kind: 'sampling', mode: undefined, stage: 'request', request: { messages: [] } });
  await using all = await asking([review]);
  const screen = all.troupe(['answer', 'ab12']);
  await talk(screen, ['[d]ecline: ']);
  all.change([{ ...review, stage: 'result' }]);
  await screen.sees('troupe: the question of everything has moved on; look at it again');
  expect([await screen.code, all.said]).toEqual([1, []]);
});

test('inbox -f draws the list again where it stands, and Ctrl-C ends it with 0', async () => {
  await using all = await asking([ask({})]);
  const screen = all.troupe(['inbox', '-f']);
  await talk(screen, [/ab12cd34 .* form +everything +greet\n +everything asks: Who are you\?/]);
  all.change([]);
  await screen.sees('no questions are waiting');
  expect(screen.raw()).toContain('\x1b[3A\rno questions are waiting');
  screen.type('\x03');
  expect(await screen.code).toBe(0);
});
