// What a caller gets that asked for a stream: numbered frames, an end, a sign of life; and what becomes of its call when
// it goes away without a word.

import { connect } from 'nats';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ask, header, kindOf } from '../support/ask.ts';
import { type Daemon, daemon, fixture } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';

const STREAM = { 'Troupe-Stream': '1' };
const KEEP_ALIVE_MS = 15_000;
let d: Daemon;

beforeAll(async () => {
  d = await daemon({
    servers: {
      slow: fixture('hangs', { share: 'all' }),
      steps: fixture('progress', { share: 'all' }),
      things: fixture('resources', { share: 'all' }),
      dies: fixture('dies-in-call'),
    },
  });
});
afterAll(() => d[Symbol.asyncDispose]());

describe.concurrent('a stream', () => {
  it('has ack, progress, the result and an empty message, numbered from 1', async () => {
    const asked = ask(await d.nats(), 'troupe.call.steps.steps', { count: 3, ms: 80 }, STREAM);
    const frames = [...(await asked.toTheEnd())];
    const [first, ...rest] = frames;
    const [result, end] = rest.splice(-2);
    expect([first, result, end].map((frame) => frame && kindOf(frame))).toEqual(['ack', 'result', 'end']);
    expect(frames.slice(0, -1).map((frame) => header(frame, 'Mcp-Seq'))).toEqual(
      frames.slice(0, -1).map((_, i) => `${i + 1}`),
    );
    expect(first?.json()).toEqual({ requestId: expect.stringMatching(/^[\w-]{36}$/) });
    expect(result?.json<{ content: unknown[] }>().content).toHaveLength(1);
    expect(end?.headers).toBeUndefined();
    // A slow machine may report two steps within one interval, of which the newer is told.
    const steps = rest.map((frame) => frame.json<{ progress: number }>().progress);
    expect(new Set(rest.map(kindOf))).toEqual(new Set(['progress']));
    expect(steps).toEqual([...new Set(steps)].sort());
    expect(rest.at(-1)?.json()).toEqual({ progress: 3, total: 3, message: 'step 3' });
    await d.request('troupe.call.steps.echo', { message: 'whatever came late would have come before this' });
    expect(asked.messages).toHaveLength(frames.length);
  });

  it('has a log frame for what the server says during the call, as it said it', async () => {
    const asked = ask(await d.nats(), 'troupe.call.things.log', { level: 'warning', text: 'mind the gap' }, STREAM);
    const frames = await asked.toTheEnd();
    expect(frames.map(kindOf)).toEqual(['ack', 'log', 'result', 'end']);
    expect(frames[1]?.json()).toEqual({ level: 'warning', logger: 'fixture', data: 'mind the gap' });
  });

  it('ends with an error frame that has the error headers, when the server dies', async () => {
    const frames = await ask(await d.nats(), 'troupe.call.dies.die', {}, STREAM).toTheEnd();
    expect(frames.map(kindOf)).toEqual(['ack', 'error', 'end']);
    expect(header(frames[1], 'Nats-Service-Error-Code')).toBe('502');
    expect(header(frames[1], 'Mcp-Error-Code')).toBe('-32011');
  });

  it('of a refused request is one error reply, or frames that end; never a wait', async () => {
    const frames = await ask(await d.nats(), 'troupe.call.steps.nothing', {}, STREAM).toTheEnd();
    expect(frames.map(kindOf)).toEqual(['ack', 'error', 'end']);
    expect(header(frames[1], 'Nats-Service-Error-Code')).toBe('404');
    const broken = ask(await d.nats(), 'troupe.call.steps.steps', '[]', STREAM);
    const [refused, end] = await broken.toTheEnd();
    expect([header(refused, 'Nats-Service-Error-Code'), kindOf(refused as never), end?.data.length]).toEqual([
      '400',
      'error',
      0,
    ]);
  });

  it('can be cancelled by the id in its ack', async () => {
    const nc = await d.nats();
    const asked = ask(nc, 'troupe.call.slow.sleep', { ms: 60_000 }, STREAM);
    const [ack] = await asked.atLeast(1);
    nc.publish(`troupe.cancel.${ack?.json<{ requestId: string }>().requestId}`);
    expect((await asked.toTheEnd()).map((frame) => header(frame, 'Nats-Service-Error-Code'))).toEqual(['', '499', '']);
  });

  it('keeps the progress of a named request for its own caller', async () => {
    const nc = await d.nats();
    const heard: string[] = [];
    nc.subscribe('troupe.*.*.ev.progress.*', { callback: (_, msg) => heard.push(msg.subject) });
    nc.subscribe('troupe.ev.progress.*', { callback: (_, msg) => heard.push(msg.subject) });
    const headers = { 'Troupe-Request-Id': 'by-name' };
    await d.request('troupe.as.alice.call.steps.steps', { count: 2, ms: 60 }, { headers });
    await d.request('troupe.call.steps.steps', { count: 1, ms: 60 }, { headers });
    const [hers, anyones] = ['troupe.as.alice.ev.progress.by-name', 'troupe.ev.progress.by-name'];
    const named = () => heard.filter((each) => each.endsWith('by-name'));
    await eventually(() => expect([...new Set(named())]).toEqual([hers, anyones]));
  });

  it('shows a sign of life, and a caller that went away is noticed by it and its call cancelled', async () => {
    const url = new URL(JSON.parse((await d.cli('env', '--json')).stdout).NATS_URL);
    const leaving = await connect({ servers: url.host, token: url.username });
    const [gone, staying] = [
      ask(leaving, 'troupe.call.slow.sleep', { ms: 59_999 }, STREAM),
      ask(await d.nats(), 'troupe.call.slow.sleep', { ms: KEEP_ALIVE_MS + 2_000 }, STREAM),
    ];
    await Promise.all([gone.atLeast(1), staying.atLeast(1)]);
    await leaving.close();
    const frames = await staying.toTheEnd(KEEP_ALIVE_MS + 10_000);
    expect(frames.map(kindOf)).toEqual(['ack', 'ka', 'result', 'end']);
    expect(frames[1]?.string()).toBe('{}');
    const cancelled = await eventually(async () => (await d.request('troupe.call.slow.cancelled')).text);
    expect(cancelled).toContain('the caller went away');
    expect((await d.server('slow')).inFlight).toBe(0);
  });
});
