// `logs` reads the file, daemon or no daemon: the last lines, by server and level, and on across a rotation.

import { appendFileSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openTail } from '../../src/cli/daemon/logs.ts';
import { type Workplace, workplace } from '../support/cli.ts';
import { eventually } from '../support/eventually.ts';

const line = (msg: string, more: object = {}): string =>
  `${JSON.stringify({ level: 30, time: 1_700_000_000_000, msg, ...more })}\n`;

function logIn({ directory }: Workplace): string {
  mkdirSync(join(directory, 'logs'), { recursive: true });
  return join(directory, 'logs', 'troupe.log');
}

test('it shows the last lines, the rotated file first', async () => {
  await using place = workplace({ TZ: 'UTC' });
  const log = logIn(place);
  writeFileSync(`${log}.1`, line('one') + line('two'));
  writeFileSync(
    log,
    line('three', { server: 'demo', source: 'stderr' }) + line('four', { level: 50, err: { message: 'why' } }),
  );
  expect((await place.run('logs')).stdout.split('\n')).toEqual([
    '22:13:20 info  troupe one',
    '22:13:20 info  troupe two',
    '22:13:20 info  demo stderr three',
    '22:13:20 error troupe four: why',
    '',
  ]);
  expect((await place.run('logs', '-n', '1', '--json')).stdout).toBe(
    line('four', { level: 50, err: { message: 'why' } }),
  );
});

test('it filters by server and by level', async () => {
  await using place = workplace({ TZ: 'UTC' });
  writeFileSync(
    logIn(place),
    line('a', { server: 'demo' }) + line('b', { server: 'other' }) + line('c', { server: 'demo', level: 40 }),
  );
  expect((await place.run('logs', 'demo')).stdout).toMatch(/demo a\n.*demo c\n$/);
  expect((await place.run('logs', '--level', 'warning')).stdout).toBe('22:13:20 warn  demo c\n');
  expect(await place.run('logs', '--level', 'loud')).toMatchObject({ code: 2 });
});

test('lines that are no JSON are shown as they are, without control characters', async () => {
  await using place = workplace();
  writeFileSync(logIn(place), `half a line {\x1b[2J\n${line('text \x1b]0;x\x07')}`);
  const { stdout } = await place.run('logs');
  expect(stdout).toMatch(/^half a line \{\\u001b\[2J\n/);
  expect(stdout).not.toContain('\x1b');
});

test('how long a call took is told in a unit for people, and in microseconds for programs', async () => {
  await using place = workplace({ TZ: 'UTC' });
  const micros = [850, 1_240, 31_400, 2_500_000];
  writeFileSync(logIn(place), micros.map((each) => line('call', { server: 'demo', micros: each })).join(''));
  expect((await place.run('logs')).stdout.match(/took=\S+/g)).toEqual([
    'took=850µs',
    'took=1.2ms',
    'took=31ms',
    'took=2.5s',
  ]);
  expect((await place.run('logs', '--json')).stdout).toContain('"micros":1240');
});

test('the lines of a server are also those of its further processes', async () => {
  await using place = workplace({ TZ: 'UTC' });
  writeFileSync(
    logIn(place),
    line('a', { server: 'demo' }) + line('b', { server: 'demo@alice' }) + line('c', { server: 'demos' }),
  );
  expect((await place.run('logs', 'demo')).stdout).toBe('22:13:20 info  demo a\n22:13:20 info  demo@alice b\n');
});

test('without a log it says so and is no error', async () => {
  await using place = workplace();
  const { code, stderr } = await place.run('logs');
  expect({ code, stderr }).toMatchObject({ code: 0, stderr: expect.stringContaining('there is no log yet') });
});

test('-f goes on across a rotation and loses nothing', async () => {
  await using place = workplace();
  const log = logIn(place);
  writeFileSync(log, line('before'));
  const running = place.start('logs', '-f', '--json');
  await eventually(() => running.stdout().includes('before'));
  appendFileSync(log, line('last of the old'));
  renameSync(log, `${log}.1`);
  appendFileSync(`${log}.1`, line('written after the rename'));
  writeFileSync(log, line('first of the new'));
  await eventually(() => running.stdout().includes('first of the new'));
  expect(running.stdout()).toBe(
    ['before', 'last of the old', 'written after the rename', 'first of the new'].map((each) => line(each)).join(''),
  );
  running.child.kill('SIGINT');
  await running.done;
});

test('a line is given when it is whole, also when its characters come in pieces', async () => {
  await using place = workplace();
  const log = logIn(place);
  const tail = openTail(log);
  const seen: string[] = [];
  const read = () => tail.read((each) => seen.push(each));
  read();
  const bytes = Buffer.from('grüße\nmore');
  for (const byte of bytes) {
    appendFileSync(log, Buffer.from([byte]));
    read();
  }
  expect(seen).toEqual(['grüße']);
});
