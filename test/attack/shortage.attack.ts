// Not enough of something: descriptors, sessions, processes, disk. Whoever comes too late is told so and may come again; the
// daemon stays, and those who were there are served.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { execa } from 'execa';
import { Agent, request } from 'undici';
import { expect } from 'vitest';
import { WebSocket } from 'ws';
import { askControl } from '../support/control.ts';
import { type Daemon, daemon, fixture, MAIN } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { NOBODY, over } from './bus-line.ts';
import { apart, enter, surface, whileNeighbourWorks } from './kit.ts';
import { INITIALIZE, openSocket } from './wire.ts';

const JSON_HEADERS = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
const DESCRIPTORS = 1_024;
type Health = Awaited<ReturnType<Daemon['status']>>;

surface('shortage', {
  descriptors: apart(async ({ attempt, leaveOut }) => {
    if (process.platform === 'win32') return leaveOut('there is no ulimit');
    await using d = await daemon({ servers: { echo: fixture('echo') } });
    await d.down();
    await using limited = await startLimited(d);
    const target = await enter(d.state);
    const sockets = await Promise.all(
      Array.from({ length: DESCRIPTORS + 76 }, () => openSocket(target.port).catch(() => undefined)),
    );
    for (const socket of sockets) socket?.on('error', () => {}).resume(); // to be cut off is right
    for (let at = 0; at < 3; at++)
      await attempt(`a call that needs a process, ${at}`, async () => {
        const asked = { body: '{}', timeout: 30_000 };
        const { code, error } = await over(target, `troupe.as.late${at}.call.echo.echo`, asked);
        expect([[undefined, 429, 503].includes(code), error === NOBODY]).toEqual([true, false]);
      });
    await attempt('a call that needs none', async () => {
      const { text } = await over(target, 'troupe.call.echo.echo', { body: { message: 'still here' } });
      expect(text).toContain('still here');
    });
    await attempt('the daemon lives', async () => {
      expect((await askControl<Health>(target.control, 'status')).daemon.state).toBe('running');
      expect(limited.child.exitCode).toBeNull();
    });
    for (const socket of sockets) socket?.destroy();
    await attempt('and serves all again when there are some', () =>
      eventually(async () => {
        const { text } = await over(target, 'troupe.as.later.call.echo.echo', { body: { message: 'well' } });
        expect(text).toContain('well');
        expect((await request(`${target.http}/elsewhere`)).statusCode).toBe(404);
      }, 20_000),
    );
    await target.nats.connection.close();
  }),

  sessions: apart(async ({ attempt }) => {
    const most = 20;
    await using d = await daemon({ servers: { echo: fixture('echo') }, troupe: { http: { maxSessions: most } } });
    const [target, agent] = [await enter(d.state), new Agent({ connections: 256 })];
    const authorization = `Bearer ${target.token}`;
    const headers = { ...JSON_HEADERS, authorization };
    const opened: string[] = [];
    await attempt('2,000 that begin at once over HTTP', async () => {
      const statuses = new Set<number>();
      const knock = async () => {
        const body = JSON.stringify(INITIALIZE);
        const answer = await request(`${target.http}/mcp`, { method: 'POST', dispatcher: agent, headers, body });
        await answer.body.dump();
        statuses.add(answer.statusCode);
        if (answer.statusCode === 200) opened.push(String(answer.headers['mcp-session-id']));
      };
      await Promise.all(Array.from({ length: 2_000 }, knock));
      expect(opened.length).toBeLessThanOrEqual(most);
      expect([...statuses].filter((status) => ![200, 429, 503].includes(status))).toEqual([]);
    });
    await attempt('no more are kept', async () => expect((await d.status()).sessions).toBeLessThanOrEqual(most));
    await attempt('300 WebSockets at once', async () => {
      const url = `${target.http.replace('http', 'ws')}/ws`;
      const sockets = Array.from({ length: 300 }, () => new WebSocket(url, ['mcp'], { headers: { authorization } }));
      await Promise.all(
        sockets.map(
          (socket) =>
            new Promise<void>((resolve) => {
              socket.once('open', () => socket.send(JSON.stringify(INITIALIZE)));
              socket.once('message', () => resolve()).once('close', () => resolve());
              socket.on('error', () => resolve());
            }),
        ),
      );
      expect((await d.status()).sessions).toBeLessThanOrEqual(most);
      for (const socket of sockets) socket.terminate();
    });
    await attempt('when they have left, others are let in', async () => {
      for (const id of opened) {
        const end = await request(`${target.http}/mcp`, {
          ...{ method: 'DELETE', dispatcher: agent, headers: { ...headers, 'mcp-session-id': id } },
        });
        await end.body.dump();
      }
      await eventually(async () => {
        const body = JSON.stringify(INITIALIZE);
        const answer = await request(`${target.http}/mcp`, { method: 'POST', dispatcher: agent, headers, body });
        await answer.body.dump();
        expect(answer.statusCode).toBe(200);
      }, 10_000);
    });
    await agent.close();
    await target.nats.connection.close();
  }),

  callers: apart(async ({ attempt }) => {
    await using d = await daemon({ servers: { echo: fixture('echo', { holdMs: '20s' }) } });
    const target = await enter(d.state);
    const wrong: string[] = [];
    await whileNeighbourWorks({ fell: wrong }, target, d, async () => {
      for (let at = 1; at <= 41; at++)
        await attempt(`made-up caller ${at}`, async () => {
          const asked = { body: { message: 'me too' }, timeout: 30_000 };
          expect((await over(target, `troupe.as.made${at}.call.echo.echo`, asked)).text).toContain('me too');
        });
    });
    await attempt('a neighbour was served meanwhile', () => expect(wrong).toEqual([]));
    await target.nats.connection.close();
  }, 120),

  disk: apart(async ({ attempt, leaveOut }) => {
    if (process.platform !== 'linux') return leaveOut('there is no prlimit');
    await using d = await daemon({ servers: { echo: fixture('echo') } });
    const [target, signal] = [await enter(d.state), join(d.dir, 'go')];
    const patient = fixture('until');
    patient.args.push(join(d.dir, 'tallies'));
    await d.write({ echo: fixture('echo'), patient });
    await d.until('patient', 'ready');
    const limit = (bytes: string) => execa('prlimit', ['--pid', String(d.pid), `--fsize=${bytes}:`]);
    // They wait, and keep their room.
    const task = (id: string) =>
      over(target, 'troupe.call.patient.until', {
        body: { id, file: signal, padding: 'x'.repeat(100_000) },
        headers: { 'Troupe-Task': '1' },
        timeout: 20_000,
      });
    const acknowledged = new Map<string, string>();
    await limit('1000000');
    await attempt('tasks are refused with a sentence when there is no room', async () => {
      for (let at = 0; at < 900; at++) {
        const { code, data } = await task(`made ${at}`);
        if (code === undefined) acknowledged.set(data.taskId, `made ${at}`);
        else
          return expect([code, data.data.troupe.delivery, (await d.status()).store.state]).toEqual([
            503,
            'not sent',
            'full',
          ]);
      }
      throw new Error('it is never full');
    });
    await attempt('calls are answered all the same', async () =>
      expect((await over(target, 'troupe.call.echo.echo', { body: { message: 'hi' } })).text).toContain('hi'),
    );
    await limit('unlimited');
    await attempt('when there is room again, tasks are taken', () =>
      eventually(async () => expect((await task('later')).code).toBeUndefined(), 15_000),
    );
    writeFileSync(signal, '');
    for (const [id, made] of acknowledged)
      await attempt(`${made} was acknowledged and is there`, async () =>
        expect((await over(target, `troupe.task.result.${id}`, { timeout: 20_000 })).text).toContain(made),
      );
    await target.nats.connection.close();
  }),
});

/** The daemon of that state directory, in a process that may open few files. */
async function startLimited(d: Daemon): Promise<AsyncDisposable & { child: ChildProcess }> {
  const script = `ulimit -n ${DESCRIPTORS}; exec "$0" "$@"`;
  const options = { env: d.env, stdio: 'ignore' } as const;
  const child = spawn('sh', ['-c', script, process.execPath, MAIN, 'up'], options);
  const exited = once(child, 'exit');
  const control = join(d.state, 'control.sock');
  await eventually(async () => {
    if (!existsSync(control)) return false;
    const { daemon, bus, servers } = await askControl<Health>(control, 'status');
    return daemon.state === 'running' && bus.state === 'online' && servers.every(({ state }) => state === 'ready');
  }, 30_000);
  return {
    child,
    async [Symbol.asyncDispose]() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      await askControl(control, 'down').catch(() => child.kill('SIGKILL'));
      await exited;
    },
  };
}
