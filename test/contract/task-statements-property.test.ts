// Two owners and whoever cancels, in any order: the rows do exactly what a small model of them does. What has ended stays as
// it is, and a task is dispatched once for each time that it was put into the queue.

import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { TaskRow } from '../../src/store/rows.ts';
import { scratch } from '../support/scratch.ts';
import { cancel, say, taskStore, WORDS, type Word } from '../support/task-rows.ts';

type Name = 'a' | 'b';
type Step =
  | { type: 'say'; by: Name; word: Word }
  | { type: 'cancel' }
  | { type: 'beat'; by: Name }
  | { type: 'time'; ms: number }
  | { type: 'adopt'; by: Name; from: Name | '' }
  | { type: 'learn'; by: Name };
type Model = Pick<TaskRow, 'owner' | 'epoch' | 'phase' | 'status' | 'attempt' | 'upstream'> & { queued: number };

const LEASE = 3_500;
const who = fc.constantFrom<Name>('a', 'b');
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({ type: fc.constant('say' as const), by: who, word: fc.constantFrom(...words()) }),
  },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('cancel' as const) }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('beat' as const), by: who }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('time' as const), ms: fc.constantFrom(500, 3_000, 10_000) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      ...{ type: fc.constant('adopt' as const), by: who, from: fc.constantFrom<Name | ''>('a', 'b', '') },
    }),
  },
  { weight: 4, arbitrary: fc.record({ type: fc.constant('learn' as const), by: who }) },
);

function words(): Word[] {
  const often: Word[] = ['dispatchTask', 'dispatchTask', 'requeueTask']; // an end makes all that follows dull
  return [...(Object.keys(WORDS) as Word[]), ...often, ...often];
}

/** What the word does to a task that listens; undefined when it does not. */
function after(task: Model, word: Word): Model | undefined {
  switch (word) {
    case 'dispatchTask':
      return task.phase === 'queued' ? { ...task, phase: 'dispatching', attempt: task.attempt + 1 } : undefined;
    case 'requeueTask':
      return { ...task, phase: 'queued', status: 'working', upstream: null, queued: task.queued + 1 };
    case 'setTaskUpstream':
      return { ...task, upstream: 'up-1' };
    case 'setTaskStatus':
      return { ...task, status: 'input_required' };
    case 'setTaskProgress':
      return task;
    case 'endTask':
      return { ...task, phase: 'ended', status: 'completed' };
    case 'releaseTask':
      return { ...task, owner: '', epoch: task.epoch + 1, phase: 'queued', attempt: 0 };
  }
}

it('follows the model through every order of what two owners and others say', async () => {
  await using dir = await scratch();
  await using store = await taskStore(dir.path);
  let runs = 0;

  const check = async (steps: Step[]) => {
    const id = `task ${runs++}`;
    const life = (name: Name | '') => name && `${name} ${id}`; // the lives of one run know nothing of another's
    let uptime = 1_000_000;
    let model: Model = {
      ...{ owner: life('a'), epoch: 1, phase: 'queued', status: 'working', attempt: 0, upstream: null, queued: 1 },
    };
    let ended: Model | undefined;
    const believed = { a: 1, b: 1 };
    const beats = new Map<string, number>();
    const said: Promise<boolean>[] = [store.add({ id, owner: life('a'), server: `server of ${id}` })];
    const expected = [true];
    const expectNext = (committed: Promise<boolean>, next: Model | undefined) => {
      said.push(committed);
      expected.push(next !== undefined);
      model = next ?? model;
      if (ended) expect(model).toEqual(ended); // the model keeps its own promise
      if (model.phase === 'ended') ended = model;
    };

    for (const each of steps)
      switch (each.type) {
        case 'time':
          uptime += each.ms;
          break;
        case 'learn': // whoever reads the row acts by what it read, until it reads again
          believed[each.by] = model.epoch;
          break;
        case 'beat':
          beats.set(life(each.by), uptime);
          said.push(store.commit('beat', [life(each.by), each.by, 'boot', uptime]));
          expected.push(true);
          break;
        case 'say': {
          const mine = { id, owner: life(each.by), epoch: believed[each.by] };
          const listens = model.owner === mine.owner && model.epoch === mine.epoch && model.phase !== 'ended';
          expectNext(say(store, each.word, mine), listens ? after(model, each.word) : undefined);
          break;
        }
        case 'cancel':
          expectNext(
            cancel(store, id),
            model.phase === 'ended'
              ? undefined
              : { ...model, phase: 'ended', status: 'cancelled', epoch: model.epoch + 1 },
          );
          break;
        case 'adopt': {
          const [by, from] = [life(each.by), life(each.from)];
          const isOver = (beats.get(from) ?? Number.NEGATIVE_INFINITY) <= uptime - LEASE;
          const isFree = model.owner === from && model.phase !== 'ended' && isOver;
          // All runs share nobody's tasks, so that only those of this run's server are asked for.
          const params = [by, from, from, 'boot', uptime - LEASE, JSON.stringify([`server of ${id}`])];
          const next = { ...model, owner: by, epoch: model.epoch + 1 };
          expectNext(store.commit('adoptTasks', params), isFree ? next : undefined);
        }
      }

    expect(await Promise.all(said)).toEqual(expected);
    const { queued, ...last } = model;
    expect(store.row(id)).toMatchObject(last);
    expect(last.attempt).toBeLessThanOrEqual(queued);
    if (last.phase !== 'ended') await cancel(store, id); // or the next run would adopt it as nobody's
  };

  await fc.assert(fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), check), { numRuns: 400 });
}, 120_000);

it('lets one of two daemons win every race for a task, and both know which', async () => {
  await using dir = await scratch();
  await using one = await taskStore(dir.path);
  await using other = await taskStore(dir.path);
  for (let round = 0; round < 100; round++) {
    const id = `task ${round}`;
    await one.add({ id, owner: `a${round}` });
    const mine = { id, owner: `a${round}`, epoch: 1 };
    const adopt = other.commit('adoptTasks', [`b${round}`, mine.owner, mine.owner, 'boot', 0, '["files"]']);
    const words = [say(one, 'dispatchTask', mine), say(one, 'setTaskStatus', mine), say(one, 'endTask', mine)];
    const [isAdopted, ...heard] = await Promise.all([adopt, ...words]);
    const row = one.row(id);
    expect(heard.at(-1), `round ${round}`).toBe(!isAdopted); // either it had ended, or it was there to be taken
    expect(row).toMatchObject(isAdopted ? { owner: `b${round}`, epoch: 2 } : { status: 'completed', epoch: 1 });
    expect(row?.attempt).toBe(heard[0] ? 1 : 0);
  }
}, 60_000);
