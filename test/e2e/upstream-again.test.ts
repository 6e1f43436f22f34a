// A durable task whose server runs it as a task of its own outlives the daemon: it is followed again by the server's id, in a
// session of the next daemon, and is not sent a second time. One whose server died with the daemon is said to be unknown.

import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { execa } from 'execa';
import { expect, it } from 'vitest';
import { daemon, fixture, ROOT } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';

const TRUSTED = { share: 'all', trust: true };

it('is followed again after kill -9 where its server is still there, and is unknown where it is not', async () => {
  const web = execa(process.execPath, [join(ROOT, 'test/fixtures/tasks-http.mjs')], { reject: false });
  let output = '';
  web.stdout.setEncoding('utf8').on('data', (text) => (output += text));
  await eventually(() => /^\d+\n/.test(output), 20_000);
  const far = { type: 'http', url: `http://127.0.0.1:${Number(output)}/mcp`, 'x-troupe': TRUSTED };
  await using d = await daemon({ servers: { far, piped: fixture('tasks-stdio', TRUSTED) } });
  try {
    const begin = async (server: string, how: string) => {
      const { stdout } = await d.cli('call', server, 'work', 'tag=survivor', how, '--task', '--json');
      return JSON.parse(stdout).taskId as string;
    };
    const ids = [await begin('far', 'ms=8000'), await begin('piped', 'hangs=true')];
    using db = open(join(d.state, 'database/troupe.db'));
    await eventually(() => {
      const rows = ids.map((id) => db.prepare('SELECT upstream FROM tasks WHERE id = ?').get(id));
      expect(rows).toEqual(ids.map(() => ({ upstream: expect.any(String) })));
    }, 20_000);
    await d.kill();
    await d.start();
    const [kept, lost] = await Promise.all(ids.map((id) => d.cli('task', 'result', id)));
    expect([kept?.exitCode, kept?.stdout]).toEqual([0, expect.stringContaining('survivor: done')]);
    expect([lost?.exitCode, lost?.stderr]).toEqual([1, expect.stringMatching(/unknown/)]);
    const board = (await d.request('troupe.call.far.board')).data.content[0].text;
    expect(JSON.parse(board)).toEqual(['completed']); // one execution
  } finally {
    web.kill('SIGKILL');
    await web;
  }
}, 120_000);

function open(file: string) {
  const db = new Sqlite(file, { readonly: true });
  return Object.assign(db, { [Symbol.dispose]: () => void db.close() });
}
