// The state directory is taken away under a running daemon: it says so and ends by itself, with what is its own and nothing that
// belongs to the daemon that came after it.

import { existsSync } from 'node:fs';
import { cp, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { askControl } from '../support/control.ts';
import { daemon, fixture, isAlive } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';

// It would not leave by itself when its daemon is gone.
const SERVERS = { stubborn: fixture('ignores-sigterm', { stdinMs: 100, termMs: 100 }) };

type Status = Awaited<ReturnType<Awaited<ReturnType<typeof daemon>>['status']>>;

const AWAY: [string, (state: string) => Promise<void>][] = [
  ['removed', (state) => rm(state, { recursive: true })],
  // The copy has the note of the nats-server and the rows of the servers, all of which run.
  [
    'replaced by its copy',
    async (state) => {
      await cp(state, `${state}-copy`, { recursive: true, filter: (path) => !path.endsWith('.sock') });
      await rename(state, `${state}-before`);
      await rename(`${state}-copy`, state);
    },
  ],
];

test.each(AWAY)(
  'a daemon whose directory was %s ends by itself, and its successor lives',
  async (_, takeAway) => {
    await using d = await daemon({ servers: SERVERS });
    const old = { pid: d.pid, server: (await d.server('stubborn')).pid as number };
    const ended = d.ended();
    await takeAway(d.state);
    await d.start();
    const now = await eventually(async () => {
      const status = await askControl<Status>(join(d.state, 'control.sock'), 'status');
      expect([status.daemon.state, status.bus.state, status.servers[0]?.state]).toEqual(['running', 'online', 'ready']);
      return status;
    }, 15_000);
    expect(now.daemon.pid).not.toBe(old.pid);

    const { exitCode, all } = await ended;
    expect([exitCode, all]).toEqual([1, expect.stringContaining(`${d.state} was removed or replaced`)]);
    expect(await isAlive(old.server)).toBe(false);
    expect(await d.status()).toMatchObject({
      daemon: { pid: now.daemon.pid },
      bus: { state: 'online', pid: now.bus.pid },
      servers: [{ state: 'ready', pid: now.servers[0]?.pid, restarts: 0 }],
    });
    expect(existsSync(join(d.state, 'daemon.json'))).toBe(true);
    expect((await d.request('troupe.call.stubborn.echo', { message: 'hi' })).data.content[0].text).toBe('hi');
    expect((await d.cli('down')).stdout).toContain('has stopped');
    expect(await isAlive(now.bus.pid as number)).toBe(false);
  },
  60_000,
);
