// The statements of tasks, one by one on a real database: who may add, who may change, and that what has ended never does.

import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openDatabase } from '../../src/store/database.ts';
import { READS, WRITES } from '../../src/store/statements.ts';
import { scratch } from '../support/scratch.ts';
import { cancel, say, taskStore, WORDS, type Word } from '../support/task-rows.ts';

const WORD_NAMES = Object.keys(WORDS) as Word[];
const mine = { id: 't', owner: 'a', epoch: 1 };

async function stage() {
  const dir = await scratch();
  const store = await taskStore(dir.path);
  return {
    ...{ store, path: dir.path },
    async [Symbol.asyncDispose]() {
      await store.close();
      await dir[Symbol.asyncDispose]();
    },
  };
}

describe('adding', () => {
  it('stops at the principal’s limit of unfinished ones, however many come at once, and not at another’s', async () => {
    await using s = await stage();
    const added = Array.from({ length: 50 }, (_, i) => s.store.add({ id: `t${i}`, maxOpen: 10 }));
    expect((await Promise.all(added)).filter(Boolean)).toHaveLength(10);
    expect(await s.store.add({ id: 'other', principal: 'bob', maxOpen: 10 })).toBe(true);
    await cancel(s.store, 't3');
    expect(await s.store.add({ id: 'next', maxOpen: 10 }), 'one has ended').toBe(true);
    expect(await s.store.add({ id: 'beyond', maxOpen: 10 })).toBe(false);
    expect(s.store.all('tasksOf', ['alice', 1e9, 99])).toHaveLength(11); // and the one that has ended
  });

  it('makes one task of a key for each principal, also of those that come at once from two daemons', async () => {
    await using s = await stage();
    await using beside = await taskStore(s.path);
    const added = Array.from({ length: 40 }, (_, i) =>
      (i % 2 ? s.store : beside).add({ id: `t${i}`, key: 'k', principal: i < 20 ? 'alice' : 'bob' }),
    );
    const won = (await Promise.all(added)).flatMap((isAdded, i) => (isAdded ? [i] : []));
    expect(won.map((i) => (i < 20 ? 'alice' : 'bob')).sort()).toEqual(['alice', 'bob']);
    const found = ['alice', 'bob'].map((principal) => s.store.get<{ id: string }>('taskByKey', [principal, 'k'])?.id);
    expect(found.sort()).toEqual(won.map((i) => `t${i}`).sort());
    await cancel(s.store, found[0] ?? '');
    expect(await s.store.add({ id: 'later', key: 'k' }), 'also when that one has ended').toBe(false);
  });

  it('refuses an id twice, and asks no key of those that have none', async () => {
    await using s = await stage();
    expect([await s.store.add({ id: 'x' }), await s.store.add({ id: 'x' }), await s.store.add({ id: 'y' })]).toEqual([
      true,
      false,
      true,
    ]);
  });
});

describe('the words of an owner', () => {
  it.each(WORD_NAMES)('%s counts from who owns it in this epoch, and from nobody else', async (word) => {
    await using s = await stage();
    await s.store.add({ id: 't' });
    const before = s.store.row('t');
    for (const other of [{ owner: 'b' }, { owner: '' }, { epoch: 0 }, { epoch: 2 }, { id: 'u' }])
      expect(await say(s.store, word, { ...mine, ...other })).toBe(false);
    expect(s.store.row('t')).toEqual(before);
    expect(await say(s.store, word, mine)).toBe(true);
    expect(s.store.row('t')).not.toEqual(before);
  });

  it('dispatch once, and again only after the task was put back', async () => {
    await using s = await stage();
    await s.store.add({ id: 't' });
    const both = [say(s.store, 'dispatchTask', mine), say(s.store, 'dispatchTask', mine)];
    expect(await Promise.all(both)).toEqual([true, false]);
    await say(s.store, 'setTaskUpstream', mine);
    await say(s.store, 'requeueTask', mine);
    expect(s.store.row('t')).toMatchObject({ phase: 'queued', attempt: 1, upstream: null, message: 'again' });
    expect(await say(s.store, 'dispatchTask', mine)).toBe(true);
    expect(s.store.row('t')).toMatchObject({ phase: 'dispatching', attempt: 2 });
    await s.store.add({ id: 'at once', phase: 'dispatching' });
    expect(await say(s.store, 'dispatchTask', { ...mine, id: 'at once' })).toBe(false);
  });

  it('end it with status and result in one step, and forget what was called', async () => {
    await using s = await stage();
    await s.store.add({ id: 't' });
    expect(s.store.get('taskCall', ['t'])).toEqual({ call: Buffer.from('{}') });
    await say(s.store, 'endTask', mine);
    expect(s.store.row('t')).toMatchObject({ phase: 'ended', status: 'completed', outcome: 'result' });
    expect(s.store.get('taskResult', ['t'])).toMatchObject({ result: Buffer.from('{"content":[]}') });
    expect(s.store.get('taskCall', ['t'])).toEqual({ call: null });
  });
});

describe('what has ended', () => {
  it.each(['endTask', 'cancelTask'] as const)('by %s never changes again', async (how) => {
    await using s = await stage();
    await s.store.add({ id: 't' });
    expect(await (how === 'endTask' ? say(s.store, 'endTask', mine) : cancel(s.store, 't'))).toBe(true);
    const [row, result] = [s.store.row('t'), s.store.get('taskResult', ['t'])];
    for (const epoch of [1, 2, 3])
      for (const word of WORD_NAMES) expect(await say(s.store, word, { ...mine, epoch }), word).toBe(false);
    expect(await cancel(s.store, 't')).toBe(false);
    expect(await s.store.commit('adoptTasks', ['b', 'a', 'a', 'boot', Number.MAX_SAFE_INTEGER, '["files"]'])).toBe(
      false,
    );
    expect([s.store.row('t'), s.store.get('taskResult', ['t'])]).toEqual([row, result]);
  });

  it('was cancelled or ended, by whoever was first of many at once', async () => {
    await using s = await stage();
    await using beside = await taskStore(s.path);
    const ids = Array.from({ length: 60 }, (_, i) => `t${i}`);
    await Promise.all(ids.map((id) => s.store.add({ id })));
    const ended = ids.map((id) => say(s.store, 'endTask', { ...mine, id }));
    const cancelled = ids.toReversed().map((id) => cancel(beside, id));
    const [byOwner, byOther] = [await Promise.all(ended), (await Promise.all(cancelled)).toReversed()];
    expect(ids.map((_, i) => Number(byOwner[i]) + Number(byOther[i]))).toEqual(ids.map(() => 1));
    const statuses = ids.map((id) => s.store.row(id)?.status);
    expect(statuses).toEqual(byOwner.map((isFirst) => (isFirst ? 'completed' : 'cancelled')));
  });
});

describe('adopting', () => {
  const adopt = (s: Awaited<ReturnType<typeof stage>>, minBeat: number, boot = 'boot') =>
    s.store.commit('adoptTasks', ['b', 'a', 'a', boot, minBeat, '["files"]']);

  it.each([
    { when: 'its last beat is as old as that', minBeat: 1_000, isTaken: true },
    { when: 'it has beaten since', minBeat: 999, isTaken: false },
    { when: 'its beat was before the machine was started', minBeat: 0, boot: 'another', isTaken: true },
    { when: 'it is not known', minBeat: 0, isKnown: false, isTaken: true },
  ])('is $isTaken when $when', async ({ minBeat, boot, isKnown, isTaken }) => {
    await using s = await stage();
    if (isKnown !== false) await s.store.commit('beat', ['a', 'daemon', 'boot', 1_000]);
    await s.store.add({ id: 't' });
    expect(await adopt(s, minBeat, boot)).toBe(isTaken);
    expect(s.store.row('t')).toMatchObject(isTaken ? { owner: 'b', epoch: 2 } : { owner: 'a', epoch: 1 });
  });

  it('takes all unfinished ones in one step, so that of two adopters one has them all', async () => {
    await using s = await stage();
    await using beside = await taskStore(s.path);
    for (let i = 0; i < 30; i++) await s.store.add({ id: `t${i}` });
    const both = ['b', 'c'].map((by, i) =>
      (i ? beside : s.store).commit('adoptTasks', [by, 'a', 'a', 'boot', 9, '["files"]']),
    );
    expect((await Promise.all(both)).sort()).toEqual([false, true]);
    expect(s.store.all('taskOwners')).toHaveLength(1);
    expect(s.store.row('t7')?.epoch).toBe(2);
  });
});

it('deletes what is over in small batches, the oldest first', async () => {
  await using s = await stage();
  for (let i = 0; i < 450; i++) void s.store.add({ id: `t${i}`, expires: 1_000 - i });
  await s.store.flush();
  const left = () => s.store.all('tasksOf', ['alice', 1e9, 999]).length;
  const steps: (number | undefined)[] = [];
  while (await s.store.commit('pruneTasks', [999])) steps.push(left());
  expect(steps).toEqual([250, 50, 1]);
  expect(s.store.row('t0')).toBeDefined();
});

it('finds what it looks for among 100,000 by an index, whatever it looks for', async () => {
  await using s = await stage();
  await s.store.flush();
  const raw = openDatabase(join(s.path, 'troupe.db'), { readonly: true });
  const plan = (sql: string) =>
    raw.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(Array(sql.split('?').length - 1).fill(null));
  const statements = Object.entries({ ...READS, ...WRITES }).filter(
    ([name, sql]) => /\btasks\b/.test(sql) && !RARE.includes(name),
  );
  // An index of unfinished tasks may be walked, for there are few. One of all tasks of a principal may not, unless from a place
  // in it: whoever counts the unfinished ones would walk past all that have ended.
  const isSearch = (detail: string) =>
    /^SEARCH tasks USING|^SCAN tasks USING (COVERING )?INDEX tasks_(owner|open)\b/.test(detail) &&
    !/tasks_list \(principal=\?\)/.test(detail);
  const slow = statements.flatMap(([name, sql]) => {
    const details = (plan(sql) as { detail: string }[]).map(({ detail }) => detail);
    return details
      .filter((detail) => /\b(tasks|TEMP)\b/.test(detail) && !isSearch(detail))
      .map((detail) => `${name}: ${detail}`);
  });
  raw.close();
  expect(statements.length).toBeGreaterThan(18);
  expect(slow).toEqual([]);
});

/** What a person asks for, who can wait: it looks at all that have ended. */
const RARE = ['endedTasks', 'deleteEndedTasks'];
