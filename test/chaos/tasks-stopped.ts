// The owner of tasks is stopped (SIGSTOP), another daemon takes them for orphans, and the first one comes back (SIGCONT) with
// everything still in its memory: calls it was about to make, answers it was about to record. It must do and record nothing.

import { join } from 'node:path';
import { expect } from 'vitest';
import { type Beside, beside } from '../support/beside.ts';
import { daemon, fixture } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { stopBetweenWrites } from '../support/stopped.ts';
import { executions, taskLine, watchEnded } from '../support/task-line.ts';

/** Servers answer while their daemon is stopped. */
const ANSWER_MS = 1_000;
/** What is promised are 5 s until a task is adopted; a machine under load gets more. */
const SLACK_MS = 60_000;
const READY = 'The database is ready.';

/** In turn, so that whoever came back is the next to adopt. Returns how long each adoption took. */
export async function stoppedRounds(rounds: number): Promise<number[]> {
  await using d = await daemon();
  const tallies = join(d.dir, 'tallies');
  const database = join(d.state, 'database/troupe.db');
  const server = (troupe: object) => {
    const each = fixture('tallies', troupe);
    each.args.push(tallies);
    return each;
  };
  await d.write({ narrow: server({ maxInFlight: 1 }), again: server({ rerun: true }) });
  for (const name of ['narrow', 'again']) await d.until(name, 'ready');
  const lateWrites = watchEnded(d.state);
  await using a = await beside(d, 'a');
  await using b = await beside(d, 'b');
  expect(await d.down()).toBe(0);

  const times: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const [owner, other] = round % 2 === 0 ? [a, b] : [b, a];
    let tookMs: number | undefined;
    for (let go = 0; tookMs === undefined; go++)
      tookMs = await stopAndGo({ owner, other, tallies, database, name: `round${round}-${go}` });
    times.push(tookMs);
    expect(lateWrites()).toEqual([]);
  }
  return times;
}

type Round = {
  readonly owner: Beside;
  readonly other: Beside;
  readonly tallies: string;
  readonly database: string;
  readonly name: string;
};

/** Nothing when the machine was so slow that the calls had ended before the signal came: then it is to be done again. */
async function stopAndGo({ owner, other, tallies, database, name }: Round): Promise<number | undefined> {
  const ids = { sent: `${name}-sent`, queued: `${name}-queued`, again: `${name}-again` };
  await using mine = await taskLine(owner.socket);
  await using theirs = await taskLine(other.socket);
  const sent = await mine.create('narrow', 'tally', { id: ids.sent, ms: ANSWER_MS });
  const queued = await mine.create('narrow', 'tally', { id: ids.queued });
  const again = await mine.create('again', 'tally', { id: ids.again, ms: ANSWER_MS });
  // Both calls are made; their servers answer while the owner cannot listen.
  await eventually(() => expect([ids.sent, ids.again].map((id) => executions(tallies, id))).toEqual([1, 1]), 15_000);
  await stopBetweenWrites(owner.signal, database);
  const since = performance.now();
  if ((await Promise.all([sent, again].map(({ taskId }) => theirs.get(taskId)))).some(({ phase }) => phase === 'ended'))
    return void owner.signal('SIGCONT');
  const ends = () => Promise.all([sent, queued, again].map(({ taskId }) => theirs.end(taskId)));
  const awaited = ends();
  await eventually(async () => {
    const tasks = await Promise.all([sent, queued, again].map(({ taskId }) => theirs.get(taskId)));
    const { store } = await other.status();
    expect([store.message, ...tasks.map(({ phase }) => phase)]).toEqual([READY, 'ended', 'ended', 'ended']);
  }, SLACK_MS);
  const first = await awaited;
  const tookMs = performance.now() - since;
  const expected = [{ code: 'lost', delivery: 'outcome unknown' }, { text: ids.queued }, { text: ids.again }];
  expect(first).toEqual(expected);

  owner.signal('SIGCONT');
  // It is itself again: a task of its own goes through, and nothing of what it had in memory is left.
  await mine.result((await mine.create('narrow', 'tally', { id: `${name}-after` })).taskId);
  await eventually(async () => {
    const { servers } = await owner.status();
    expect(servers.map(({ inFlight, queued: waiting }) => inFlight + waiting)).toEqual(servers.map(() => 0));
  }, 30_000);
  expect(await Promise.all([sent, queued, again].map(({ taskId }) => mine.end(taskId)))).toEqual(expected);
  expect(await ends()).toEqual(expected);
  expect(Object.values(ids).map((id) => executions(tallies, id))).toEqual([1, 1, 2]);
  expect(await theirs.get(again.taskId)).toMatchObject({ status: 'completed', attempt: 2 });
  return Math.round(tookMs);
}
