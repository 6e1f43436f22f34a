// Servers that die, lie or will not leave. Each time: what the caller is told, what state is shown, that nothing is left
// running, and that the calls of a healthy neighbour in the same daemon all go on.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Daemon, daemon, fixture, isAlive } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { whileNeighbourWorks } from '../support/neighbour.ts';

const QUICK = { enabled: false, stdinMs: 200, termMs: 300 };
const LOOP = { intensity: 2, periodMs: 60_000, backoffMs: [50] };
const SLOW_RESTART = { intensity: 5, periodMs: 60_000, backoffMs: [700] };
let d: Daemon;

beforeAll(async () => {
  d = await daemon({
    servers: {
      echo: fixture('echo'),
      unborn: fixture('dies-at-start', { ...QUICK, restart: LOOP }),
      mortal: fixture('dies-in-call', { ...QUICK, restart: SLOW_RESTART }),
      suicidal: fixture('dies-in-call', { ...QUICK, restart: LOOP }),
      slow: fixture('dies-in-call', { ...QUICK, restart: LOOP }),
      listening: fixture('dies-in-call', { ...QUICK, restart: LOOP }),
      liar: fixture('lies-version', { ...QUICK, restart: LOOP }),
      stubborn: fixture('ignores-sigterm', QUICK),
      parent: fixture('forks', QUICK),
      missing: { command: 'no-such-command-anywhere', 'x-troupe': { ...QUICK, restart: LOOP } },
    },
  });
});
afterAll(() => d[Symbol.asyncDispose]());

const during = <Value>(work: () => Promise<Value>) => whileNeighbourWorks(d, work);
const start = (name: string) => d.cli('start', name);
const refusedBy = (server: string, state: string) => ({
  code: 503,
  data: { code: -32010, data: { troupe: { code: 'unavailable', delivery: 'not sent', server, state } } },
});

test('a server that dies at start is tried a few times, then shown as failed with its reason', async () => {
  await during(async () => {
    await start('unborn');
    const { restarts, lastError, pid } = await d.until('unborn', 'failed');
    expect({ restarts, pid }).toEqual({ restarts: 2, pid: null });
    expect(lastError).toBe('exited with code 3; see troupe logs unborn');
    const reply = await d.request('troupe.call.unborn.echo', { message: 'hi' });
    expect(reply).toMatchObject(refusedBy('unborn', 'failed'));
    expect(reply.error).toContain('exited with code 3; see troupe logs unborn; troupe start unborn');
  });
});

test('a server that dies in a call leaves its outcome unknown, and is back for the next one', async () => {
  await during(async () => {
    await start('mortal');
    const { pid } = await d.until('mortal', 'ready');
    const reply = await d.request('troupe.call.mortal.die', {});
    expect(reply).toMatchObject({
      code: 502,
      data: { code: -32011, data: { troupe: { code: 'lost', delivery: 'outcome unknown', server: 'mortal' } } },
    });
    expect(reply.error).toBe(
      'server mortal went away: exited with code 1; the request was sent and its outcome is unknown',
    );
    const meanwhile = await d.request('troupe.call.mortal.echo', { message: 'hi' });
    expect(meanwhile.data.content[0].text).toBe('hi'); // held until it was back
    const back = await d.until('mortal', 'ready');
    expect(back.restarts).toBe(1);
    expect(back.pid).not.toBe(pid);
    expect((await d.request('troupe.call.mortal.echo', { message: 'again' })).data.content[0].text).toBe('again');
  });
});

test('a call that has ended its server twice is not sent a third time, and the server is not given up for it', async () => {
  await during(async () => {
    await start('suicidal');
    const [ada, bob] = [{ headers: { 'Troupe-Caller': 'ada' } }, {}];
    for (const caller of [ada, bob]) {
      await d.until('suicidal', 'ready');
      expect((await d.request('troupe.call.suicidal.die', { code: 7 }, caller)).code).toBe(502);
      expect((await d.request('troupe.call.suicidal.echo', { message: 'on' })).data.content[0].text).toBe('on');
    }
    for (const caller of [ada, bob]) {
      const refused = await d.request('troupe.call.suicidal.die', { code: 7 }, caller);
      expect(refused.data.data.troupe).toMatchObject({ code: 'rejected', delivery: 'not sent' });
      expect(refused.error).toContain('this call has ended suicidal twice; it is not sent again');
    }
    // Each call that ends it is another one, and it still is not the server that is given up.
    for (const code of [8, 9, 10]) {
      await d.until('suicidal', 'ready');
      expect((await d.request('troupe.call.suicidal.die', { code })).code).toBe(502);
    }
    const { restarts } = await d.until('suicidal', 'ready');
    expect(restarts).toBe(5);
    await d.cli('restart', 'suicidal');
    expect((await d.request('troupe.call.suicidal.die', { code: 7 })).code).toBe(502); // a person said that it is mended
    expect((await d.request('troupe.call.suicidal.echo', { message: 'new' })).data.content[0].text).toBe('new');
  });
});

test('nor is a call whose caller waits no longer when its server dies of it', async () => {
  await during(async () => {
    await start('slow');
    const impatient = (code: number) =>
      d.request('troupe.call.slow.die', { code, ms: 200 }, { headers: { 'Troupe-Timeout': '50' } });
    for (let deaths = 0; deaths < 2; deaths++) {
      expect((await impatient(7)).code).toBe(408);
      await eventually(async () =>
        expect(await d.server('slow')).toMatchObject({ restarts: deaths + 1, state: 'ready' }),
      );
    }
    const refused = await impatient(7);
    expect(refused.data.data.troupe).toMatchObject({ code: 'rejected', delivery: 'not sent' });
    for (const [index, code] of [8, 9].entries()) {
      expect((await impatient(code)).code).toBe(408);
      await eventually(async () =>
        expect(await d.server('slow')).toMatchObject({ restarts: index + 3, state: 'ready' }),
      );
    }
  });
});

test('nor is a subscription that ends its server', async () => {
  await during(async () => {
    await start('listening');
    const subscribe = () => d.request('troupe.subscribe.listening', { uri: 'memo://poison' });
    for (let deaths = 0; deaths < 2; deaths++) {
      await d.until('listening', 'ready');
      expect((await subscribe()).code).toBe(502);
      await eventually(async () => expect((await d.server('listening')).restarts).toBe(deaths + 1));
    }
    const { pid } = await d.until('listening', 'ready');
    expect((await subscribe()).error).toContain('this call has ended listening twice; it is not sent again');
    expect((await d.request('troupe.subscribe.listening', { uri: 'memo://well' })).code).toBeUndefined();
    expect(await d.server('listening')).toMatchObject({ pid, state: 'ready' });
  });
});

test('a server that lies about its version fails at once, with a sentence, and is not tried again', async () => {
  await during(async () => {
    await start('liar');
    const { restarts, lastError, pid } = await d.until('liar', 'failed');
    expect({ restarts, pid }).toEqual({ restarts: 0, pid: null });
    expect(lastError).toBe('it speaks MCP "1999-01-01", which troupe does not know; update troupe or the server');
    expect(await d.request('troupe.call.liar.echo')).toMatchObject(refusedBy('liar', 'failed'));
  });
});

test('a command that is not there fails at once, by name', async () => {
  await during(async () => {
    await start('missing');
    const { restarts, lastError } = await d.until('missing', 'failed');
    expect(restarts).toBe(0);
    expect(lastError).toContain('command no-such-command-anywhere was not found');
    expect(await d.request('troupe.call.missing.echo')).toMatchObject(refusedBy('missing', 'failed'));
  });
});

test('a server that ignores SIGTERM and the end of its stdin is killed, and is stopped then', async () => {
  await during(async () => {
    await start('stubborn');
    const { pid } = await d.until('stubborn', 'ready');
    expect((await d.request('troupe.call.stubborn.echo', { message: 'hi' })).data.content[0].text).toBe('hi');
    await d.cli('stop', 'stubborn');
    expect(await d.server('stubborn')).toMatchObject({ state: 'stopped', pid: null });
    expect(await isAlive(pid as number)).toBe(false);
    expect(await d.request('troupe.call.stubborn.echo')).toMatchObject(refusedBy('stubborn', 'stopped'));
  });
});

test('a server’s grandchildren go with it, whether it is stopped or killed', async () => {
  await during(async () => {
    await start('parent');
    const first = await grandchild();
    expect(await isAlive(first)).toBe(true);
    await d.cli('stop', 'parent');
    await eventually(async () => !(await isAlive(first)));

    await start('parent');
    const second = await grandchild();
    const { pid } = await d.server('parent');
    process.kill(pid as number, 'SIGKILL');
    await eventually(async () => !(await isAlive(second)));
    await eventually(async () => (await d.server('parent')).lastError === 'killed by SIGKILL');
    const back = await d.until('parent', 'ready');
    expect(back.restarts).toBe(1);
    expect(await grandchild()).not.toBe(second);
  });
});

const grandchild = async (): Promise<number> =>
  (await d.request('troupe.call.parent.grandchild')).data.structuredContent.value;
