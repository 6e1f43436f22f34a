// Updates of resources come at a pace their readers can take, and the newest of them always comes.

import { expect, it } from 'vitest';
import { createUpdates } from '../../src/servers/upkeep.ts';
import { eventually } from '../support/eventually.ts';

it('tells of an update at once, and of a flood of them the newest', async () => {
  const told: string[] = [];
  const updates = createUpdates((uri, params) => told.push(`${uri} ${params}`));
  for (let n = 0; n < 10_000; n++) updates.take('memo://a', Buffer.from(String(n)));
  updates.take('memo://b', Buffer.from('alone'));
  expect(told).toEqual(['memo://a 0', 'memo://b alone']);
  await eventually(() => expect(told.at(-1)).toBe('memo://a 9999'));
  expect(told).toHaveLength(3);
});

it('holds no more resources in mind than it must', () => {
  let told = 0;
  const updates = createUpdates(() => told++);
  for (let n = 0; n < 100_000; n++) updates.take(`memo://${n}`, Buffer.from('{}'));
  expect(told).toBe(1_000);
});
