// Servers on the official SDK that have tasks of their own, over stdio and HTTP, behind one daemon: whoever calls them plainly
// gets the result, each caller its own question and progress, and what is lost is said to be.

import { join } from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Daemon, daemon, fixture, ROOT } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';

const SHARED = { share: 'all', trust: true, restart: { backoffMs: [50], intensity: 1_000 } };

async function httpFixture(port = 0) {
  const child = execa(process.execPath, [join(ROOT, 'test/fixtures/tasks-http.mjs'), `${port}`], { reject: false });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text) => (output += text));
  await eventually(() => /^\d+\n/.test(output), 20_000);
  return {
    port: Number(output),
    forget: () => child.kill('SIGUSR2'),
    async stop() {
      child.kill('SIGKILL');
      await child;
    },
  };
}

let d: Daemon;
let web: Awaited<ReturnType<typeof httpFixture>>;
beforeAll(async () => {
  web = await httpFixture();
  const url = `http://127.0.0.1:${web.port}/mcp`;
  d = await daemon({
    servers: { piped: fixture('tasks-stdio', SHARED), far: { type: 'http', url, 'x-troupe': SHARED } },
  });
  await Promise.all(['piped', 'far'].map((name) => d.until(name, 'ready', 30_000)));
}, 60_000);
afterAll(async () => {
  await d?.[Symbol.asyncDispose]();
  await web?.stop();
});

const call = (server: string, args: object, caller = '', headers: Record<string, string> = {}) =>
  d.request(`troupe.${caller && `as.${caller}.`}call.${server}.work`, args, { timeout: 60_000, headers });
const board = async (server: string): Promise<string[]> =>
  JSON.parse((await d.request(`troupe.call.${server}.board`)).data.content[0].text);
const asked = (caller: string): Promise<{ id: string; message: string }> =>
  eventually(async () => {
    const [ask] = (await d.request(`troupe.as.${caller}.inbox`)).data;
    if (!ask) throw new Error(`nobody asks ${caller}`);
    return ask;
  }, 20_000);

describe.each(['piped', 'far'])('%s', (server) => {
  it('answers a plain call of a tool that must be a task, with every step of its progress', async () => {
    const seen: number[] = [];
    const nc = await d.nats();
    nc.subscribe(`troupe.ev.progress.steps-${server}`, { callback: (_, msg) => seen.push(msg.json<any>().progress) });
    await nc.flush();
    const { data, code } = await call(server, { tag: 'a' }, '', { 'Troupe-Request-Id': `steps-${server}` });
    expect([code, data]).toEqual([undefined, { content: [{ type: 'text', text: 'a: done' }], isError: false }]);
    await eventually(() => expect(seen).toEqual([1, 2]), 20_000);
  });

  it('hands on a result that is an error, from the command line too', async () => {
    const { data, headers } = await call(server, { tag: 'bad', fails: true });
    expect([data.isError, headers['Mcp-Is-Error']]).toEqual([true, 'true']);
    const { exitCode, stdout } = await d.cli('call', server, 'work', 'tag=from the shell');
    expect([exitCode, stdout]).toEqual([0, expect.stringContaining('from the shell: done')]);
  });

  it('has each of two callers asked about its own task, though their questions come at once', async () => {
    const callers = ['ann', 'ben'];
    const calls = callers.map((caller) => call(server, { tag: `${caller}’s question`, asks: true }, caller));
    for (const caller of callers) {
      const { id, message } = await asked(caller);
      expect(message).toContain(`${caller}’s question`);
      await d.request(`troupe.as.${caller}.answer.${id}`, { action: 'accept', content: { said: `${caller} says` } });
    }
    const texts = (await Promise.all(calls)).map(({ data }) => data.content[0].text);
    expect(texts).toEqual(callers.map((caller) => `${caller}’s question: ${caller} says`));
  });

  it('is told to cancel the task when its caller cancels', async () => {
    const before = (await board(server)).filter((status) => status === 'cancelled').length;
    const id = `cancel-${server}`;
    const pending = call(server, { tag: 'c', hangs: true }, '', { 'Troupe-Request-Id': id });
    await eventually(async () => expect(await board(server)).toContain('working'), 20_000);
    await d.request(`troupe.cancel.${id}`);
    expect((await pending).code).toBe(499);
    const cancelled = async () => (await board(server)).filter((status) => status === 'cancelled').length;
    await eventually(async () => expect(await cancelled()).toBe(before + 1), 20_000);
  });
});

it('follows a task into a new session when the server forgets the one it was made in', async () => {
  const opened = async () => (await d.log()).split('it forgot the session').length;
  const [before, started] = [await opened(), (await board('far')).length];
  const pending = call('far', { tag: 'kept', ms: 5_000 });
  await eventually(async () => expect(await board('far')).toHaveLength(started + 1), 20_000);
  web.forget();
  expect(await board('far')).toHaveLength(started + 1); // the new session knows the task
  expect((await pending).data?.content[0].text).toBe('kept: done');
  await eventually(async () => expect(await opened()).toBe(before + 1), 20_000);
});

it('says that the outcome is unknown when the server is killed meanwhile, over either transport', async () => {
  const { pid } = await d.server('piped');
  const [piped, far] = ['piped', 'far'].map((server) => call(server, { tag: 'never', hangs: true }));
  await eventually(async () => {
    for (const server of ['piped', 'far']) expect(await board(server)).toContain('working');
  }, 20_000);
  process.kill(Number(pid), 'SIGKILL');
  await web.stop();
  for (const lost of [await piped, await far])
    expect([lost?.code, lost?.data?.data?.troupe?.delivery]).toEqual([502, 'outcome unknown']);
  web = await httpFixture(web.port);
  for (const server of ['piped', 'far'])
    await eventually(async () => expect((await call(server, { tag: 'again' })).data?.content).toBeDefined(), 30_000);
});
