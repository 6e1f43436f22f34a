// Tasks through a daemon's control socket, as the command line asks for them, on one connection: `await using line =
// await taskLine(socket)`. A failure is thrown with its code and what it says of delivery.

import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import Database from 'better-sqlite3';
import type { TaskView } from '../../src/calls/call.ts';
import type { FailureCode } from '../../src/protocol/failures.ts';

export class Refused extends Error {
  readonly code: FailureCode | 'silent';
  readonly delivery: string | undefined;
  constructor(message: string, code: FailureCode | 'silent', delivery?: string) {
    super(message);
    this.code = code;
    this.delivery = delivery;
  }
}

export type TaskOrder = { readonly ttlMs?: number; readonly key?: string };
export type TaskEnd = { readonly text?: string; readonly code?: string; readonly delivery?: string | undefined };
export type TaskLine = Awaited<ReturnType<typeof taskLine>>;

export async function taskLine(path: string) {
  const socket = connect(path);
  const waiting = new Map<number, (reply: Reply) => void>();
  let last = 0;
  await once(socket, 'connect');
  socket.on('error', () => {}); // 'close' follows
  socket.on('close', () => {
    for (const answer of waiting.values()) answer({ error: { message: 'the daemon hung up' } });
  });
  createInterface(socket)
    .on('error', () => {}) // as above
    .on('line', (line) => {
      const reply = JSON.parse(line);
      waiting.get(reply.id)?.(reply);
      waiting.delete(reply.id);
    });

  async function ask<Answer>(method: string, params: object): Promise<Answer> {
    const id = ++last;
    const answered = new Promise<Reply>((resolve) => waiting.set(id, resolve));
    if (socket.destroyed) throw new Refused('the daemon hung up', 'silent');
    socket.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
    const { result, error } = await answered;
    if (!error) return result as Answer;
    throw new Refused(error.message, error.data?.troupe.code ?? 'silent', error.data?.troupe.delivery);
  }

  const result = async (id: string): Promise<string> =>
    (await ask<{ content: { text: string }[] }>('taskResult', { id })).content[0]?.text ?? '';

  return {
    ...{ ask, result },
    create: (server: string, tool: string, args: object, order: TaskOrder = {}) =>
      ask<TaskView>('taskCreate', { server, tool, params: { name: tool, arguments: args }, ...order }),
    get: (id: string) => ask<TaskView>('taskGet', { id }),
    /** What it came to, a failure included; waits for it. */
    end: (id: string): Promise<TaskEnd> =>
      result(id).then(
        (text) => ({ text }),
        ({ code, delivery }: Refused) => ({ code, delivery }),
      ),
    cancel: (id: string) => ask<TaskView>('taskCancel', { id }),
    /** Every task of every principal, newest first. */
    async all(): Promise<TaskView[]> {
      const found: TaskView[] = [];
      for (let cursor: string | undefined; ; ) {
        const page = await ask<{ tasks: TaskView[]; next?: string }>('tasks', cursor === undefined ? {} : { cursor });
        found.push(...page.tasks);
        if (page.next === undefined) return found;
        cursor = page.next;
      }
    },
    [Symbol.asyncDispose]: async () => void socket.destroy(),
  };
}

type Reply = {
  readonly result?: unknown;
  readonly error?: { message: string; data?: { troupe: { code: FailureCode; delivery?: string } } };
};

/** What the fixture `tallies` has noted: one id for each execution. */
export function noted(file: string): string[] {
  try {
    return readFileSync(file, 'utf8').split('\n').filter(Boolean);
  } catch {
    return []; // nothing was executed yet
  }
}

export const executions = (file: string, id: string): number => noted(file).filter((each) => each === id).length;

/** The task that the server has made of it, once the daemon has written that down. */
export function upstreamOf(state: string, task: string): unknown {
  const db = new Database(join(state, 'database/troupe.db'), { readonly: true });
  try {
    return db.prepare('SELECT upstream FROM tasks WHERE id = ?').pluck().get(task);
  } finally {
    db.close();
  }
}

/** From now on the database notes whatever changes a task that has ended; ask for that with the function it returns. */
export function watchEnded(state: string): () => unknown[] {
  const path = join(state, 'database/troupe.db');
  const db = new Database(path, { timeout: 30_000 });
  db.exec(`CREATE TABLE late_writes (id TEXT, was TEXT, became TEXT);
    CREATE TRIGGER late_write AFTER UPDATE ON tasks WHEN OLD.phase = 'ended'
    BEGIN INSERT INTO late_writes VALUES (OLD.id, OLD.status, NEW.status); END`);
  db.close();
  return () => {
    const reader = new Database(path, { readonly: true });
    try {
      return reader.prepare('SELECT * FROM late_writes').all();
    } finally {
      reader.close();
    }
  };
}
