// A disk without room: new tasks are refused with a sentence, none that was acknowledged is lost, and those that ran meanwhile
// end when there is room again, with what they came to.

import { readdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { execa } from 'execa';
import { expect, test } from 'vitest';
import type { TaskView } from '../../src/calls/call.ts';
import { type Daemon, daemon, fixture } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { scratch } from '../support/scratch.ts';
import { executions, type Refused, type TaskLine, taskLine } from '../support/task-line.ts';

const MANY = 5;
/** More than a full disk takes, fewer than a principal may have. */
const MOST = 900;

async function patient(d: Daemon): Promise<{ tallies: string; signal: string }> {
  const [tallies, signal] = [join(d.dir, 'tallies'), join(d.dir, 'go')];
  const server = fixture('until');
  server.args.push(tallies);
  await d.write({ patient: server });
  await d.until('patient', 'ready');
  return { tallies, signal };
}

/** Some that run until the signal, some that are done and kept. */
async function prepare(line: TaskLine, signal: string): Promise<{ running: TaskView[]; kept: TaskView[] }> {
  const each = <Value>(make: (index: number) => Promise<Value>) =>
    Promise.all(Array.from({ length: MANY }, (_, index) => make(index)));
  const running = await each((index) => line.create('patient', 'until', { id: `running ${index}`, file: signal }));
  const kept = await each((index) => line.create('patient', 'tally', { id: `kept ${index}` }));
  for (const { taskId } of kept) await line.result(taskId);
  return { running, kept };
}

/** Creates until it is refused; whatever was acknowledged meanwhile must be there in the end. What waits keeps its room. */
async function untilRefused(line: TaskLine, signal: string, acknowledged: Map<string, string>): Promise<Refused> {
  const padding = 'x'.repeat(100_000);
  for (let made = 0; made < MOST; made++) {
    const id = `made ${made}`;
    try {
      const { taskId } = await line.create('patient', 'until', { id, file: signal, padding });
      acknowledged.set(taskId, id);
    } catch (error) {
      return error as Refused;
    }
  }
  throw new Error('it is never full');
}

async function checkAfterwards(
  line: TaskLine,
  before: Awaited<ReturnType<typeof prepare>>,
  acknowledged: Map<string, string>,
) {
  for (const [index, { taskId }] of before.running.entries())
    expect(await line.result(taskId)).toBe(`running ${index}`);
  for (const [index, { taskId }] of before.kept.entries()) expect(await line.result(taskId)).toBe(`kept ${index}`);
  for (const [taskId, id] of acknowledged) expect(await line.result(taskId)).toBe(id);
}

test.runIf(process.platform === 'linux')(
  'files that may not grow any more (a quota): refused, nothing lost, and on it goes when they may',
  async () => {
    await using d = await daemon();
    const { tallies, signal } = await patient(d);
    const { pid } = (await d.status()).daemon;
    const limit = (bytes: string) => execa('prlimit', ['--pid', String(pid), `--fsize=${bytes}:`]);
    await using line = await taskLine(join(d.state, 'control.sock'));
    const acknowledged = new Map<string, string>();
    const before = await prepare(line, signal);
    await limit('1000000');
    const refused = await untilRefused(line, signal, acknowledged);
    expect(refused).toMatchObject({ code: 'unavailable', delivery: 'not sent' });
    expect(refused.message).toMatch(/\b(disk|full|room)\b/);
    writeFileSync(signal, ''); // they end while nothing can be recorded
    await eventually(async () => expect((await d.status()).servers).toMatchObject([{ inFlight: 0 }]), 20_000);
    for (const { taskId } of before.running) expect((await line.get(taskId)).status).toBe('working');
    await limit('unlimited');
    await checkAfterwards(line, before, acknowledged);
    const { taskId } = await eventually(() => line.create('patient', 'tally', { id: 'afterwards' }), 20_000);
    expect(await line.result(taskId)).toBe('afterwards');
    for (const id of [...acknowledged.values(), 'running 0', 'kept 0']) expect(executions(tallies, id)).toBe(1);
    expect(executions(tallies, `made ${acknowledged.size}`)).toBe(0);
  },
  180_000,
);

test.runIf(await canMount())(
  'a full disk (a small one of our own, where we may mount): the same, also when the daemon is killed on it',
  async () => {
    await using d = await daemon();
    const { tallies, signal } = await patient(d);
    await d.down();
    await execa('mount', ['-t', 'tmpfs', '-o', 'size=24m,mode=700', 'troupe-test', d.state]);
    try {
      await d.start();
      await d.until('patient', 'ready');
      await using line = await taskLine(join(d.state, 'control.sock'));
      const acknowledged = new Map<string, string>();
      const before = await prepare(line, signal);
      fill(d);
      const refused = await untilRefused(line, signal, acknowledged);
      expect(refused).toMatchObject({ code: 'unavailable', delivery: 'not sent' });
      expect(refused.message).toMatch(/\b(disk|full|room)\b/);
      writeFileSync(signal, '');
      await eventually(async () => expect((await d.status()).servers).toMatchObject([{ inFlight: 0 }]), 20_000);
      await d.kill(); // what was not on the disk is lost, and that is said
      empty(d);
      await d.start();
      await d.until('patient', 'ready');
      await using after = await taskLine(join(d.state, 'control.sock'));
      for (const [index, { taskId }] of before.kept.entries()) expect(await after.result(taskId)).toBe(`kept ${index}`);
      for (const { taskId } of before.running)
        expect(await after.end(taskId)).toEqual({ code: 'lost', delivery: 'outcome unknown' });
      for (const [taskId, id] of acknowledged) {
        const end = await after.end(taskId);
        expect([{ text: id }, { code: 'lost', delivery: 'outcome unknown' }]).toContainEqual(end);
        expect(executions(tallies, id)).toBeLessThan(2);
      }
      expect(await after.result((await after.create('patient', 'tally', { id: 'afterwards' })).taskId)).toBe(
        'afterwards',
      );
    } finally {
      empty(d);
      await d.down();
      await execa('umount', [d.state]);
    }
  },
  180_000,
);

/** Takes all the room there is. */
function fill({ state }: Daemon): void {
  for (let part = 0; ; part++) {
    const { bavail, bsize } = statfsSync(state);
    if (bavail === 0) return;
    try {
      writeFileSync(join(state, `filler-${part}`), Buffer.alloc(bavail * bsize, 1));
    } catch {} // somebody else took some of it; what is left is seen in the next round
  }
}

function empty({ state }: Daemon): void {
  for (const name of readdirSync(state).filter((each) => each.startsWith('filler-')))
    rmSync(join(state, name), { force: true });
}

async function canMount(): Promise<boolean> {
  if (process.platform !== 'linux') return false;
  await using dir = await scratch();
  const { failed } = await execa('mount', ['-t', 'tmpfs', 'troupe-test', dir.path], { reject: false });
  if (!failed) await execa('umount', [dir.path]);
  return !failed;
}
