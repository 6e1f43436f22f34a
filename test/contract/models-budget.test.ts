// What a server may have of our models within an hour: counted in the database, so that neither a restart nor a second daemon
// nor many requests at once lets it have more.

import { afterEach, beforeEach, expect, it } from 'vitest';
import { createBudget } from '../../src/asks/models/budget.ts';
import { openStore, type Store } from '../../src/store/store.ts';
import { eventually } from '../support/eventually.ts';
import { type Scratch, scratch } from '../support/scratch.ts';

let dir: Scratch;
let store: Store;
const HOUR_MS = 3_600_000;
const limits = (requestsPerHour: number, tokensPerHour = 0) => ({ requestsPerHour, tokensPerHour, maxIterations: 1 });
const SMALL = { prompt: 10, maxTokens: 100 };

beforeEach(async () => {
  dir = await scratch();
  store = await openStore(dir.path);
});
afterEach(async () => {
  await store.close();
  await dir[Symbol.asyncDispose]();
});

it('lets a server have its requests, then says what to do, and knows nothing of other servers', () => {
  const budget = createBudget(store);
  for (let n = 0; n < 3; n++) budget.reserve('x', limits(3), SMALL).book(5);
  const sentence =
    'server x has used its 3 requests to models of this hour; raise x-troupe.sampling.requestsPerHour, or wait';
  expect(budget.check('x', limits(3))).toBe(sentence);
  expect(() => budget.reserve('x', limits(3), SMALL)).toThrow(sentence);
  expect(budget.check('x', limits(4))).toBeUndefined();
  expect(budget.check('y', limits(3))).toBeUndefined();
});

it('counts tokens, and lets an answer be no longer than what is left', () => {
  const budget = createBudget(store);
  budget.reserve('x', limits(0, 1_000), SMALL).book(600);
  expect(budget.reserve('x', limits(0, 1_000), { prompt: 100, maxTokens: 5_000 }).maxTokens).toBe(300);
  expect(budget.check('x', limits(0, 1_000))).toBe(
    'server x has used its 1000 tokens of models of this hour; raise x-troupe.sampling.tokensPerHour, or wait',
  );
});

it('refuses what is sure to need more than is left', () => {
  const budget = createBudget(store);
  budget.reserve('x', limits(0, 1_000), SMALL).book(900);
  expect(() => budget.reserve('x', limits(0, 1_000), { prompt: 50, maxTokens: 100 })).toThrow(
    /^server x has 100 of its 1000 tokens of this hour left, and about 150 are needed; raise x-troupe/,
  );
  expect(budget.reserve('x', limits(0, 1_000), { prompt: 50, maxTokens: 50 }).maxTokens).toBe(50);
});

it('takes zero for no limit', () => {
  const budget = createBudget(store);
  for (let n = 0; n < 200; n++) budget.reserve('x', limits(0), { prompt: 1e6, maxTokens: 1e6 }).book(1e6);
  expect(budget.check('x', limits(0))).toBeUndefined();
});

it('lets a hundred requests at once have no more than one after the other', async () => {
  const budget = createBudget(store);
  const reserve = async (wanted: ReturnType<typeof limits>) => budget.reserve('x', wanted, SMALL);
  const many = await Promise.allSettled(Array.from({ length: 100 }, () => reserve(limits(60))));
  expect(many.filter(({ status }) => status === 'fulfilled')).toHaveLength(60);
  for (const each of many) if (each.status === 'fulfilled') each.value.book(1);
  // Neither while they are written nor after is there room for one more.
  expect(budget.check('x', limits(60))).toBeDefined();
  await store.flush();
  expect(budget.check('x', limits(60))).toBeDefined();
  await eventually(() => expect(budget.check('x', limits(61))).toBeUndefined());

  const others = await Promise.allSettled(Array.from({ length: 100 }, () => reserve(limits(0, 60 + 10 * 110))));
  expect(others.filter(({ status }) => status === 'fulfilled')).toHaveLength(10);
});

it('gives back what was reserved and not used', () => {
  const budget = createBudget(store);
  const { book } = budget.reserve('x', limits(0, 1_000), { prompt: 0, maxTokens: 1_000 });
  expect(budget.check('x', limits(0, 1_000))).toBeDefined();
  book(10);
  expect(budget.reserve('x', limits(0, 1_000), { prompt: 0, maxTokens: 5_000 }).maxTokens).toBe(990);
});

it('remembers after a restart, and counts what another daemon has used', async () => {
  createBudget(store).reserve('x', limits(2), SMALL).book(7);
  await store.flush();
  const other = await openStore(dir.path);
  const theirs = createBudget(other);
  expect(theirs.check('x', limits(2))).toBeUndefined();
  theirs.reserve('x', limits(2), SMALL).book(7);
  await other.flush();
  await other.close();
  expect(createBudget(store).check('x', limits(2))).toBeDefined();
  await store.close();
  store = await openStore(dir.path);
  expect(createBudget(store).check('x', limits(2))).toBeDefined();
  expect(createBudget(store).check('x', limits(0, 14))).toBeDefined();
  expect(createBudget(store).check('x', limits(0, 15))).toBeUndefined();
});

it('forgets what is older than an hour', async () => {
  await store.commit('addUsage', ['x', 500, Date.now() - HOUR_MS - 1]);
  await store.commit('addUsage', ['x', 7, Date.now() - HOUR_MS + 60_000]);
  const budget = createBudget(store);
  expect(budget.check('x', limits(2, 8))).toBeUndefined();
  expect(budget.check('x', limits(1))).toBeDefined();
  expect(budget.check('x', limits(0, 7))).toBeDefined();
});

it('goes on counting what the disk did not take', async () => {
  const refusing = { get: store.get, commit: () => Promise.reject(new Error('the disk is full')) };
  const budget = createBudget(refusing);
  budget.reserve('x', limits(1), SMALL).book(5);
  await new Promise((resolve) => setImmediate(resolve));
  expect(budget.check('x', limits(1))).toBeDefined();
});
