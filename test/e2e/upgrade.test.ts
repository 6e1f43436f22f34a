// An upgrade finds everything again: today's daemon on a state directory that 0.4.0 wrote before it was killed. What had ended
// is there, what was under way ends as documented, and nothing is done twice.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { askControl } from '../support/control.ts';
import { type Daemon, daemon, fixture, ROOT } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { rawHost } from '../support/host.ts';
import { type Scratch, scratch } from '../support/scratch.ts';
import { noted, type TaskLine, taskLine } from '../support/task-line.ts';

const WRITTEN = join(ROOT, 'test/fixtures/state-0.4.0');
const facts = JSON.parse(readFileSync(join(WRITTEN, 'facts.json'), 'utf8'));
const MINUTE_MS = 60_000;

let dir: Scratch;
let d: Daemon;
let line: TaskLine;
let tallies: string;

beforeAll(async () => {
  dir = await scratch();
  tallies = join(dir.path, 'tallies');
  const tally = (troupe: object) => {
    const each = fixture('tallies', troupe);
    return { ...each, args: [...each.args, tallies] };
  };
  // It is a minute after it was written, whenever this runs: streams, sessions and audit rows are not kept for ever.
  const clock = join(dir.path, 'clock');
  writeFileSync(clock, String(facts.writtenAt + MINUTE_MS - Date.now()));
  d = await daemon({
    from: join(WRITTEN, 'state'),
    servers: {
      wide: tally({}),
      narrow: tally({ maxInFlight: 1 }),
      again: tally({ rerun: true }),
      asks: fixture('asks-tags'),
      danger: fixture('destructive', { approve: 'once' }),
    },
    troupe: { http: { address: '127.0.0.1:0' } },
    env: { TROUPE_TEST_CLOCK: clock, NODE_OPTIONS: `--import ${join(ROOT, 'test/support/shifted-clock.mjs')}` },
  });
  line = await taskLine(join(d.state, 'control.sock'));
}, 90_000);
afterAll(async () => {
  await line?.[Symbol.asyncDispose]();
  await d?.[Symbol.asyncDispose]();
  await dir[Symbol.asyncDispose]();
});

test('tasks that had ended are there with their outcome, each for its principal alone', async () => {
  expect(await line.end(facts.completed)).toEqual({ text: 'done' });
  expect(await line.get(facts.failed)).toMatchObject({ status: 'failed', server: 'wide', tool: 'refuse' });
  expect(await line.get(facts.cancelled)).toMatchObject({ status: 'cancelled', attempt: 1 });
  const ofAlice = await d.request(`troupe.as.alice.task.result.${facts.alice}`);
  expect(ofAlice.data.content[0].text).toBe('of alice');
  expect((await d.request(`troupe.as.bob.task.get.${facts.alice}`)).code).toBe(404);
});

test('an idempotency key still names its task, and the tool is not called again', async () => {
  const { taskId } = await line.create('wide', 'tally', { id: 'done' }, { key: 'the key of done' });
  expect(taskId).toBe(facts.completed);
});

test('what was under way ends as documented: lost, sent for the first time, or sent again where a rule allows it', async () => {
  const lost = { code: 'lost', delivery: 'outcome unknown' };
  expect(await line.end(facts.working)).toEqual(lost);
  expect(await line.end(facts.inputRequired)).toEqual(lost);
  expect(await line.end(facts.queued)).toEqual({ text: 'queued' });
  expect(await line.end(facts.again)).toEqual({ text: 'again' });
  expect(await line.get(facts.again)).toMatchObject({ status: 'completed', attempt: 2 });
  expect(noted(tallies).sort()).toEqual(['again', 'queued']);
  const { stdout } = await d.cli('tasks', '--json');
  const known = JSON.parse(stdout).map(({ taskId }: { taskId: string }) => taskId);
  expect(known).toEqual(
    expect.arrayContaining([facts.completed, facts.working, facts.queued, facts.again, facts.alice]),
  );
});

test('questions that nobody waits for any more are over, and say so', async () => {
  expect((await askControl<{ asks: object[] }>(join(d.state, 'control.sock'), 'inbox')).asks).toEqual([]);
  for (const id of facts.asks) {
    const { exitCode, stderr } = await d.cli('answer', id, '--accept', '{"said":"x"}');
    expect([exitCode, stderr]).toEqual([1, expect.stringMatching(/is over: troupe was restarted/)]);
  }
});

test('what was approved once is approved', async () => {
  const { data } = await d.request('troupe.call.danger.wipe', { path: 'b' });
  expect(data.content[0].text).toBe('wiped b, call 1');
});

test("a host's session goes on, and the answer that it had not fetched is in its stream", async () => {
  const host = await rawHost(`${await d.http()}/mcp/wide`, { session: facts.session });
  const { status, events } = await host.get(facts.lastEvent);
  const { value } = await events.next();
  const unfetched = { id: 7, result: { content: [{ text: 'unfetched' }] } };
  expect([status, value?.message]).toMatchObject([200, unfetched]);
  const { result } = await host.ask('tools/call', { name: 'tally', arguments: { id: 'after' } }, 8);
  expect(result.content[0].text).toBe('after');
  host.close();
});

test('audit rows are kept, and new ones follow', async () => {
  await d.request('troupe.call.wide.tally', { id: 'for the audit' });
  const db = new Sqlite(join(d.state, 'database/troupe.db'), { readonly: true });
  const rows = () => db.prepare("SELECT id FROM audit WHERE daemon = 'host'").all();
  const count = () => db.prepare('SELECT count(*) FROM audit').pluck().get();
  expect(rows()).toHaveLength(facts.audit);
  await eventually(() => expect(count()).toBeGreaterThan(facts.audit), 15_000);
  db.close();
});
