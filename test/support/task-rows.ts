// A real store whose tasks are written statement by statement, as the owners of tasks write them.
// Use: `await using db = await taskStore(dir.path)`, then `await db.add({ id: 't' })` and `db.row('t')`.

import type { LifeRow, TaskRow } from '../../src/store/rows.ts';
import { openStore, type Store } from '../../src/store/store.ts';

export type Owned = { readonly id: string; readonly owner: string; readonly epoch: number };
export type NewTask = {
  readonly id: string;
  readonly principal?: string;
  readonly owner?: string;
  readonly key?: string | null;
  readonly phase?: 'queued' | 'dispatching';
  readonly server?: string;
  readonly expires?: number;
  readonly maxOpen?: number;
};

export async function taskStore(directory: string) {
  const store = await openStore(directory);
  return Object.assign(store, {
    add: (task: NewTask): Promise<boolean> => addTask(store, task),
    row: (id: string): TaskRow | undefined => store.get<TaskRow>('task', [id]),
    lives: (): LifeRow[] => store.all<LifeRow>('lives'),
    [Symbol.asyncDispose]: () => store.close(),
  });
}

function addTask(store: Store, task: NewTask): Promise<boolean> {
  const { id, principal = 'alice', owner = 'a', key = null, phase = 'queued', server = 'files' } = task;
  return store.commit('addTask', [
    ...[id, principal, server, 'read', 'http', null, phase, phase === 'queued' ? 0 : 1, owner, key],
    ...['print', 60_000, 1, 1, 1, task.expires ?? 60_001, Buffer.from('{}'), principal, task.maxOpen ?? 1_000_000],
  ]);
}

/** Every word of an owner about its task, by name, with what it says and then whose it is. */
export const WORDS = {
  dispatchTask: () => [],
  requeueTask: () => [0, 'again', 2],
  setTaskUpstream: () => ['up-1'],
  setTaskStatus: () => ['input_required', 'asks', 2],
  setTaskProgress: () => ['{"progress":1}'],
  endTask: () => ['completed', null, 'result', null, Buffer.from('{"content":[]}'), 60_000, 60_001, 2, null],
  releaseTask: () => ['queued', 0],
} as const;
export type Word = keyof typeof WORDS;

export const say = (store: Store, word: Word, { id, owner, epoch }: Owned): Promise<boolean> =>
  store.commit(word, [...WORDS[word](), id, owner, epoch]);

export const cancel = (store: Store, id: string): Promise<boolean> =>
  store.commit('cancelTask', ['cancelled', null, 3, 1e15, 1e15, id]);
