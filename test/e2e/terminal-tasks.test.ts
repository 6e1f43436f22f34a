// `troupe tasks -f` at a real terminal: what a person sees of the table while it changes, grows and is resized, and what is left
// of it when it ends. Also the bar of `task wait`.

import { execa } from 'execa';
import { expect, test } from 'vitest';
import type { TaskView } from '../../src/calls/call.ts';
import { eventually } from '../support/eventually.ts';
import { type Seen, screenOf } from '../support/screen.ts';
import { taskDaemon, taskOf } from '../support/task-daemon.ts';

const ended = { status: 'completed', phase: 'ended' } as const;
const progressing = (start: string, progress: number, message = ''): TaskView =>
  taskOf(start, { progress: { progress, total: 100, message } });
const PATIENT = 20_000;

test('the table stays where it is: bars move, rows come and go, nothing wraps, and Ctrl-C leaves it there with 0', async () => {
  const long = 'with so many words that no line of this terminal could ever hold them all together';
  await using daemon = await taskDaemon([progressing('b0', 10, long), taskOf('a0', { phase: 'queued' })]);
  const screen = daemon.troupe(['tasks', '-f'], { rows: 12 });
  const seen = (): Seen => screenOf(screen.raw(), 80, 12);
  await eventually(
    () => expect(seen().lines[2]).toMatch(/^b0000000 +demo +add +working +1m +░{8} 10 % with.*…$/),
    PATIENT,
  );
  expect(seen().lines[0]).toMatch(/^ID +SERVER +TOOL +STATUS +AGE +PROGRESS$/);
  expect(seen().lines[1]).toMatch(/^a0000000 +demo +add +queued/);
  expect(seen().isCursorShown).toBe(false);
  daemon.change([
    taskOf('c0', { status: 'input_required' }),
    progressing('b0', 75, '\x1b[2J\x1b[H日本語'),
    taskOf('a0'),
  ]);
  await eventually(() => expect(seen().lines[2]).toMatch(/ ██████░░ 75 % \\u001b\[2J\\u001b\[H日…$/), PATIENT);
  expect(seen().lines).toHaveLength(5); // the last one has the cursor
  expect(seen().lines[3]).toMatch(/^c0000000 .* input_required .* needs an answer; see troupe inbox$/);
  daemon.change([taskOf('b0', ended)]);
  await eventually(
    () => expect(seen().lines).toEqual([expect.anything(), expect.stringMatching(/^b0.* completed +1m$/), '']),
    PATIENT,
  );
  screen.type('\x03');
  expect(await screen.code).toBe(0);
  expect(seen()).toMatchObject({ isCursorShown: true, isWrapping: true, wraps: 0 });
  expect(seen().lines[1]).toMatch(/^b0000000/);
  expect(screen.raw()).not.toContain('\x1b[2J'); // it is written over, never wiped
});

test('of more tasks than the window is high those that go on are shown, and the newest of the others', async () => {
  const many = Array.from({ length: 50 }, (_, index) => taskOf(`1${String(index).padStart(2, '0')}`, ended));
  await using daemon = await taskDaemon([...many, progressing('a0', 1)]);
  const screen = daemon.troupe(['tasks', '-f'], { rows: 8 });
  const seen = () => screenOf(screen.raw(), 80, 8).lines;
  await eventually(() => expect(seen()).toHaveLength(8), PATIENT);
  expect(seen()[1]).toMatch(/^a0000000 .* working/);
  expect(
    seen()
      .slice(2, 6)
      .map((line) => line.slice(0, 3)),
  ).toEqual(['103', '102', '101', '100']);
  expect(seen()[6]).toBe('… 46 more; `troupe tasks` lists them');
  daemon.change([taskOf('b0'), ...many, progressing('a0', 2)]);
  await eventually(() => expect(seen()[6]).toBe('… 47 more; `troupe tasks` lists them'), PATIENT);
  expect(seen()[0]).toMatch(/^ID /);
  expect(seen().filter((line) => line.includes(' working '))).toHaveLength(2);
});

test.each([60, 45, 40, 28])(
  'a terminal of %d columns has a table that fits, and it is drawn anew when that changes',
  async (columns) => {
    const tool = 'a-tool-with-quite-a-long-name';
    const tasks = [taskOf('b0', { status: 'input_required' }), { ...progressing('a0', 50, 'on and on and on'), tool }];
    await using daemon = await taskDaemon(tasks);
    const screen = daemon.troupe(['tasks', '-f'], { columns, rows: 10 });
    const narrow = () => screenOf(screen.raw(), columns, 10);
    await eventually(() => expect(narrow().lines[2]).toMatch(/^b\S+ +input/), PATIENT);
    expect(narrow().lines[1]).toMatch(/^a\S+ +worki/);
    expect(narrow()).toMatchObject({ wraps: 0, lines: { length: 4 } });
    const before = screen.raw().length;
    await screen.resize(90, 10);
    // The window is cleared first, so that what comes after is all there is to see.
    await eventually(() => expect(screen.raw().slice(before)).toContain('\x1b[H\x1b[2J'), PATIENT);
    const after = screen.raw().indexOf('\x1b[H\x1b[2J');
    const wide = () => screenOf(screen.raw().slice(after), 90, 10).lines;
    await eventually(() => expect(wide()[1]).toMatch(/^a0000000 +demo +a-tool.* working +1m +████░░░░ 50 %/), PATIENT);
    await eventually(() => expect(wide()).toHaveLength(4), PATIENT); // the rest of the table may come in another chunk
    daemon.change([taskOf('b0', ended)]);
    await eventually(() => expect(wide()).toHaveLength(3), PATIENT);
  },
);

test('the cursor comes back when the process is told to end, and when the daemon goes', async () => {
  await using daemon = await taskDaemon([taskOf('a0')]);
  const gone = daemon.troupe(['tasks', '-f']);
  await eventually(() => expect(gone.raw()).toContain('a0000000'), PATIENT);
  daemon.hangUp();
  await eventually(() => expect(gone.raw()).toContain('troupe has stopped'), PATIENT);
  expect([await gone.code, screenOf(gone.raw(), 80, 40).isCursorShown]).toEqual([4, true]);
  const ended = daemon.troupe(['tasks', '-f']);
  await eventually(() => expect(ended.raw()).toContain('a0000000'), PATIENT);
  process.kill(ended.pids()[0], 'SIGTERM');
  expect([await ended.code, screenOf(ended.raw(), 80, 40).isCursorShown]).toEqual([143, true]);
});

test('Ctrl-Z gives the terminal back, with its cursor; after it the table is there again', async () => {
  await using daemon = await taskDaemon([taskOf('a0')]);
  const screen = daemon.troupe(['tasks', '-f']);
  await eventually(() => expect(screen.raw()).toContain('a0000000'), PATIENT);
  const before = screen.raw().length;
  const [troupe, script] = screen.pids();
  process.kill(troupe, 'SIGTSTP');
  await eventually(
    async () => expect((await execa('ps', ['-o', 'stat=', '-p', `${troupe}`])).stdout).toMatch(/^T/),
    PATIENT,
  );
  await eventually(() => {
    for (const pid of [script, troupe]) process.kill(pid, 'SIGCONT'); // `script` stops with what it runs
    expect(screen.raw().slice(before)).toMatch(/\[\?25h[\s\S]*\[\?25l.*ID[\s\S]*a0000000/);
  }, PATIENT);
  screen.type('\x03');
  expect(await screen.code).toBe(0);
});

test('wait draws the bar of its task, and says how it ended when that is gone', async () => {
  let finish = (): void => {};
  await using daemon = await taskDaemon([progressing('ab12', 0)], {
    taskResult: (_, { id }) => {
      finish = () => daemon.send(`{"jsonrpc":"2.0","id":${id},"result":{"content":[]}}\n`);
      return undefined;
    },
  });
  const screen = daemon.troupe(['task', 'wait', 'ab12']);
  await eventually(() => expect(screen.raw()).toMatch(/░ +0 %/), PATIENT);
  daemon.change([progressing('ab12', 50, 'half\x1b[2J')]);
  await eventually(() => expect(screen.raw()).toMatch(/█{12}░{12} {2}50 % half/), PATIENT);
  daemon.change([taskOf('ab12', ended)]);
  finish();
  expect(await screen.code).toBe(0);
  expect(screen.screen()).toBe('completed\n');
  expect(screen.raw()).not.toContain('\x1b[2J');
});
