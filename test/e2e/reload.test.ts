// A change of the configuration file while the daemon runs: only what differs is touched, a broken file changes nothing,
// and what the command line changes is true when it returns.

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { askControl } from '../support/control.ts';
import { type Daemon, daemon, fixture, isAlive } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';

const SERVERS = { kept: fixture('answers-late'), other: fixture('hangs'), dies: fixture('dies-in-call') };

let d: Daemon;
beforeAll(async () => {
  d = await daemon({ servers: SERVERS });
});
afterAll(() => d[Symbol.asyncDispose]());

const names = async () => (await d.status()).servers.map(({ name }) => name).sort();
const text = async (reply: Promise<{ data: any }>) => (await reply).data.content[0].text;

/** What the watcher does by itself a moment later. */
const reload = () => askControl<Record<string, string[]>>(join(d.state, 'control.sock'), 'reload');

/** Everything back to the beginning. */
beforeEach(async () => {
  await d.write(SERVERS);
  await reload();
  await eventually(async () => {
    expect(await names()).toEqual(['dies', 'kept', 'other']);
    expect((await d.status()).servers.every(({ state }) => state === 'ready')).toBe(true);
  }, 15_000);
});

describe('only the difference is applied', () => {
  test('servers come, go and change while an untouched one keeps its process and its call in flight', async () => {
    const { pid } = await d.server('kept');
    const [other, dies] = [await d.server('other'), await d.server('dies')];
    const call = text(d.request('troupe.call.kept.late', { ms: 2_000 }));
    await eventually(async () => (await d.server('kept')).inFlight === 1);
    await d.write({ kept: SERVERS.kept, other: fixture('hangs', {}, { CHANGED: 'yes' }), fresh: fixture('echo') });
    await d.until('fresh', 'ready');
    await eventually(async () => expect((await d.until('other', 'ready')).pid).not.toBe(other.pid));
    expect(await d.server('kept')).toMatchObject({ pid, inFlight: 1, restarts: 0 });
    expect(await text(d.request('troupe.call.fresh.echo', { message: 'hi' }))).toBe('hi');
    expect(await call).toBe('late by 2000 ms');

    await eventually(async () => expect(await names()).toEqual(['fresh', 'kept', 'other']));
    for (const gone of [other, dies]) expect(await isAlive(gone.pid as number)).toBe(false);
    // Nobody listens, which is no time-out.
    await expect(d.request('troupe.call.dies.echo', {}, { timeout: 5_000 })).rejects.toMatchObject({ code: '503' });
    const { exitCode, stderr } = await d.cli('call', 'dies', 'echo');
    expect({ exitCode, stderr }).toEqual({
      exitCode: 1,
      stderr: 'troupe: there is no server dies; troupe ps lists them',
    });
  });

  test('a removed server answers what it had in flight, and takes no more', async () => {
    const call = text(d.request('troupe.call.kept.late', { ms: 1_000 }));
    await eventually(async () => (await d.server('kept')).inFlight === 1);
    const { kept: _, ...others } = SERVERS;
    await d.write(others);
    await d.until('kept', 'draining');
    await expect(d.request('troupe.call.kept.late', { ms: 1 })).rejects.toMatchObject({ code: '503' });
    expect(await call).toBe('late by 1000 ms');
    await eventually(async () => expect(await names()).toEqual(['dies', 'other']));
  });

  test('whoever goes on calling a removed server is answered until nobody listens, and never refused', async () => {
    const outcomes: string[] = [];
    const caller = async (): Promise<void> => {
      for (;;) {
        const reply = await d.request('troupe.call.kept.late', { ms: 1 }).catch(({ code }) => code as string);
        outcomes.push(typeof reply === 'string' ? `no reply: ${reply}` : `code ${reply.code}`);
        if (typeof reply === 'string') return;
      }
    };
    const callers = Array.from({ length: 16 }, caller);
    await eventually(() => outcomes.length > 50);
    const { kept: _, ...others } = SERVERS;
    await d.write(others);
    await reload();
    await Promise.all(callers);
    expect([...new Set(outcomes)].sort()).toEqual(['code undefined', 'no reply: 503']);
  });
});

describe('settings are tuned without a new process', () => {
  test('a time-out', async () => {
    const { pid } = await d.server('other');
    await d.write({ ...SERVERS, other: fixture('hangs', { timeoutMs: 50 }) });
    await eventually(async () => expect((await d.request('troupe.call.other.sleep', { ms: 1_000 })).code).toBe(408));
    expect(await d.server('other')).toMatchObject({ pid, state: 'ready' });
  });

  test('denied tools: refused, no longer listed, and both again when the rule goes', async () => {
    const { pid } = await d.server('other');
    const listed = async () => (await d.request('troupe.list.other.tools')).data.tools.map((tool: any) => tool.name);
    await d.write({ ...SERVERS, other: fixture('hangs', { tools: { deny: ['ec*'] } }) });
    await eventually(async () => expect(await listed()).not.toContain('echo'));
    const refused = await d.request('troupe.call.other.echo', { message: 'hi' });
    expect(refused).toMatchObject({ code: 403 });
    expect((await d.cli('call', 'other', 'echo', 'message=hi')).exitCode).toBe(3);
    await d.write(SERVERS);
    await eventually(async () => expect(await listed()).toContain('echo'));
    expect(await text(d.request('troupe.call.other.echo', { message: 'hi' }))).toBe('hi');
    expect(await d.server('other')).toMatchObject({ pid, state: 'ready' });
  });

  test('a restart policy holds from now on', async () => {
    await d.write({ ...SERVERS, dies: fixture('dies-in-call', { restart: { intensity: 0 } }) });
    await reload();
    await d.until('dies', 'ready');
    await d.request('troupe.call.dies.die', {});
    await d.until('dies', 'failed');
  });
});

test('a changed server is opening until it is ready, and never seems stopped once its new process is there', async () => {
  await d.write({ ...SERVERS, other: fixture('hangs', {}, { CHANGED: 'yes' }) });
  expect(await reload()).toMatchObject({ added: [], removed: [], relaunched: ['other'], retuned: [] });
  await d.until('other', 'ready');
  const states = async () => {
    const lines = (await d.log()).split('\n').filter((line) => line.includes('"server":"other","state"'));
    return lines.map((line) => JSON.parse(line).state).slice(-5);
  };
  await eventually(async () => expect(await states()).toEqual(['draining', 'closing', 'stopped', 'opening', 'ready']));
});

test('a broken file changes nothing, and the log and `troupe logs` say what is wrong and where', async () => {
  const before = (await d.status()).servers.map(({ name, pid }) => [name, pid]);
  await writeFile(d.config, '{\n  "mcpServers": {\n    "kept": { "comand": "node" },\n    "bad name!": {}\n  }\n}');
  const complaint = `${d.config}:3:5: server \\"kept\\": command is missing`;
  await eventually(async () => expect(await d.log()).toContain(complaint));
  const { stdout } = await d.cli('logs');
  expect(stdout).toContain('the configuration was not applied');
  expect(stdout).toContain(`${d.config}:4:`);
  expect((await d.status()).servers.map(({ name, pid }) => [name, pid])).toEqual(before);
  expect(await text(d.request('troupe.call.kept.late', { ms: 1 }))).toBe('late by 1 ms');
});

test('add, rm and import are true when they return, and leave the others alone', async () => {
  const { pid } = await d.server('kept');
  const { command, args } = fixture('echo');
  const added = await d.cli('add', 'fresh', '--', command, ...args);
  expect(added).toMatchObject({
    exitCode: 0,
    stderr: expect.stringMatching(/^the running daemon has taken it up; fresh is ready/),
  });
  expect((await d.cli('call', 'fresh', 'echo', 'message=hi')).stdout).toBe('hi');

  const foreign = join(d.dir, 'elsewhere.json');
  await writeFile(foreign, JSON.stringify({ mcpServers: { imported: { command, args }, kept: { command } } }));
  const imported = await d.cli('import', foreign, '--yes');
  expect(imported.exitCode).toBe(0);
  expect(imported.stderr).toContain('skipped: kept');
  expect((await d.cli('call', 'imported', 'echo', 'message=there')).stdout).toBe('there');

  expect((await d.cli('rm', 'fresh')).exitCode).toBe(0);
  expect((await d.cli('call', 'fresh', 'echo', 'message=hi')).exitCode).not.toBe(0);
  await expect(d.request('troupe.call.fresh.echo', {})).rejects.toMatchObject({ code: '503' });
  expect(Object.keys(JSON.parse(await readFile(d.config, 'utf8')).mcpServers)).toEqual([
    ...['kept', 'other', 'dies', 'imported'],
  ]);
  expect((await d.cli('rm', 'nobody')).exitCode).toBe(1);
  expect(await d.server('kept')).toMatchObject({ pid, state: 'ready' });
});
