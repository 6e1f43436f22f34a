// The bare limit for tasks: callers that each insert one row and wait until it is on the disk, through the same store with its
// group commit, and nothing else. The row is a task's, of the same size; nobody's unfinished ones are counted.

import { randomBytes } from 'node:crypto';
import { openStore } from '../dist/src/store/store.js';
import { now, window } from './tasks-window.mjs';

const DAY_MS = 86_400_000;
const LIFE = randomBytes(16).toString('hex');
const SEALED = 29; // bytes more than what is sealed
const store = await openStore(process.env.STORE);

process.on('message', async ({ body, ...given }) => {
  const call = randomBytes(`{"name":"echo","arguments":${body}}`.length + SEALED);
  process.send(await window(insertOf(call), given));
});
process.on('disconnect', () => process.exit(0));
process.send({ ready: true });

const insertOf = (call) => async (note) => {
  const [from, at] = [now(), Date.now()];
  const id = randomBytes(16).toString('hex');
  const about = [id, '_', 's0', 'echo', 'nats', null, 'dispatching', 1, LIFE, null, ''];
  await store.commit('addTask', [...about, DAY_MS, at, at, at, at + DAY_MS, call, 'nobody', 1_000]);
  note(now() - from);
};
