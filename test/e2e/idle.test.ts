// A server that nobody uses goes to sleep: its process ends, what it offers stays known, and the next call wakes it.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Daemon, daemon, fixture, isAlive } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';

let d: Daemon;
beforeAll(async () => {
  d = await daemon({
    servers: {
      drowsy: fixture('answers-late', { idleStopMs: 300 }),
      slow: fixture('ignores-sigterm', { idleStopMs: 300, stdinMs: 600, termMs: 100 }),
      awake: fixture('echo'),
    },
  });
});
afterAll(() => d[Symbol.asyncDispose]());

const text = async (reply: Promise<{ data: any }>) => (await reply).data.content[0].text;

test('it falls asleep when it is not used, and its process ends', async () => {
  const { pid } = await d.until('drowsy', 'asleep');
  expect(pid).toBeNull();
  await eventually(async () => expect(await d.log()).toContain('"server":"drowsy","state":"asleep"'));
  expect((await d.cli('ps')).stdout).toMatch(/^drowsy +asleep/m);
  expect(await d.server('awake')).toMatchObject({ state: 'ready', restarts: 0 });
});

test('what it offers is known while it sleeps, over NATS and the command line, and asking does not wake it', async () => {
  await d.until('drowsy', 'asleep');
  const { data } = await d.request('troupe.list.drowsy.tools');
  expect(data.tools.map(({ name }: { name: string }) => name)).toContain('late');
  expect((await d.cli('tools', 'drowsy')).stdout).toContain('stubborn');
  expect(await d.server('drowsy')).toMatchObject({ state: 'asleep', tools: data.tools.length });
});

test('the next call starts it and is answered, then it sleeps again', async () => {
  for (const ms of [1, 2]) {
    await d.until('drowsy', 'asleep');
    expect(await text(d.request('troupe.call.drowsy.late', { ms }))).toBe(`late by ${ms} ms`);
    const { pid, restarts } = await d.server('drowsy');
    expect(restarts).toBe(0); // to be woken is no restart
    await d.until('drowsy', 'asleep');
    if (pid) expect(await isAlive(pid)).toBe(false);
  }
});

test('a hundred calls at once wake one process, which answers them all', async () => {
  await d.until('drowsy', 'asleep');
  const states = (await d.nats()).subscribe('troupe.ev.drowsy.state.>');
  const calls = Array.from({ length: 100 }, (_, number) =>
    text(d.request('troupe.call.drowsy.echo', { message: number })),
  );
  expect(await Promise.all(calls)).toEqual(calls.map((_, number) => String(number)));
  const heard: string[] = [];
  for await (const { subject } of states) {
    heard.push(subject.split('.').at(-1) ?? '');
    if (heard.includes('opening') && heard.at(-1) === 'asleep') break;
  }
  expect(heard.filter((state) => state === 'opening')).toHaveLength(1);
});

test('a call in flight keeps it awake for longer than it may be idle', async () => {
  expect(await text(d.request('troupe.call.drowsy.late', { ms: 1_200 }))).toBe('late by 1200 ms');
});

test('a call that comes while it is falling asleep is answered by the next process', async () => {
  await d.request('troupe.call.slow.echo', { message: 'up' });
  const { pid } = await d.until('slow', 'closing');
  expect(await text(d.request('troupe.call.slow.echo', { message: 'wait for me' }))).toBe('wait for me');
  expect(await isAlive(pid as number)).toBe(false);
});

test('start and stop are obeyed asleep, and stopped is not woken by a call', async () => {
  await d.until('drowsy', 'asleep');
  expect((await d.cli('start', 'drowsy')).exitCode).toBe(0);
  await d.until('drowsy', 'asleep');
  expect((await d.cli('stop', 'drowsy')).exitCode).toBe(0);
  expect(await d.request('troupe.call.drowsy.late', { ms: 1 })).toMatchObject({ code: 503 });
  expect((await d.server('drowsy')).state).toBe('stopped');
});
