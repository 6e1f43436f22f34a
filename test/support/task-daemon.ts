// A daemon with tasks, played from a script on the control socket, and `troupe` at a real terminal in front of it.

import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { execa } from 'execa';
import type { TaskView } from '../../src/calls/call.ts';
import { type Asked, type Reply, workplace } from './cli.ts';
import { MAIN } from './daemon.ts';
import { type Terminal, type TerminalOptions, terminal } from './terminal.ts';

export const idOf = (start: string): string => start.padEnd(32, '0');

export const taskOf = (start: string, more: Partial<TaskView> = {}): TaskView => ({
  ...{ taskId: idOf(start), status: 'working', createdAt: new Date(Date.now() - 65_000).toISOString() },
  ...{ lastUpdatedAt: new Date().toISOString(), ttl: 86_400_000, pollInterval: 1_000, server: 'demo', tool: 'add' },
  ...{ principal: '_', phase: 'dispatching', attempt: 1, ...more },
});

export const refusal = (code: string, message: string, more: object = {}): Reply => ({
  error: { code: -32000, message, data: { troupe: { code, ...more } } },
});

export type Answers = Record<string, (params: any, asked: Asked) => Reply>;

/** `tasks` are newest first, as the daemon lists them, so many a page; `answers` are for everything else that is asked. */
export async function taskDaemon(tasks: readonly TaskView[], answers: Answers = {}, pageSize = 100) {
  const place = workplace();
  const screens: Terminal[] = [];
  const waiting = new Set<() => void>();
  const sockets = new Set<Pick<Socket, 'destroy' | 'write'>>();
  let version = 1;
  const page = (from: number): Reply => {
    const next = tasks.length > from + pageSize ? { next: String(from + pageSize) } : {};
    return { result: JSON.stringify({ version, tasks: tasks.slice(from, from + pageSize), ...next }) };
  };
  const own: Answers = {
    tasks: ({ cursor = '0' }) => page(Number(cursor)),
    taskGet({ id }) {
      const task = tasks.find(({ taskId }) => taskId === id);
      return task ? { result: JSON.stringify(task) } : refusal('unknownName', `there is no task ${id}`);
    },
    inbox: () => ({ result: '{"version":1,"asks":[]}' }),
  };
  const asked = await place.control((message, socket): Reply => {
    sockets.add(socket);
    const { id, method, params } = message;
    if (method === 'tasks' && params.since === version) {
      const result = () => (page(0) as { result: string }).result;
      waiting.add(() => socket.write(`{"jsonrpc":"2.0","id":${id},"result":${result()}}\n`));
      return undefined;
    }
    return (answers[method] ?? own[method] ?? (() => undefined))(params, message);
  });
  return {
    ...place,
    asked,
    /** Everything of that kind that was asked. */
    askedFor: (method: string) => asked.filter((each) => each.method === method).map(({ params }) => params),
    change(next: readonly TaskView[]) {
      tasks = next;
      version++;
      for (const each of waiting) each();
      waiting.clear();
    },
    /** To everybody who is connected. */
    send(frame: string) {
      for (const each of sockets) each.write(frame);
    },
    /** As a daemon that is killed. */
    hangUp() {
      for (const each of sockets) each.destroy();
    },
    troupe(words: readonly string[], { env, ...options }: Partial<TerminalOptions> = {}) {
      const { directory } = place;
      const here = { PATH: process.env.PATH, HOME: directory, TMPDIR: directory, TROUPE_STATE: directory };
      // Its terminal and its process are noted, so that the one can be resized and the other stopped.
      const all = [
        'sh',
        '-c',
        `tty > '${directory}/tty'; echo $$ $PPID > '${directory}/pids'; exec "$0" "$@"`,
        process.execPath,
        MAIN,
        ...words,
      ];
      const opened = terminal(all, { env: { ...here, NO_COLOR: '1', ...env }, ...options });
      screens.push(opened);
      const resize = async (columns: number, rows: number): Promise<void> => {
        const name = readFileSync(`${directory}/tty`, 'utf8').trim();
        const flag = process.platform === 'linux' ? '-F' : '-f';
        await execa('stty', [flag, name, 'cols', String(columns), 'rows', String(rows)]);
      };
      /** The process of `troupe`, and the one that it has its terminal from. */
      const pids = () => readFileSync(`${directory}/pids`, 'utf8').trim().split(' ').map(Number) as [number, number];
      return { ...opened, resize, pids };
    },
    async [Symbol.asyncDispose]() {
      for (const each of screens) await each[Symbol.asyncDispose]();
      await place[Symbol.asyncDispose]();
    },
  };
}
