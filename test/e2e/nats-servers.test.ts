// What the servers look like from the bus: their tools by any name, those that are absent or down, whose process it is,
// and each one as a micro service with true counts.

import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { subjects } from '../../src/bus/subjects.ts';
import { type Daemon, daemon, fixture } from '../support/daemon.ts';
import { type Scratch, scratch } from '../support/scratch.ts';

const subject = subjects('troupe');
const text = (value: string) => ({ content: [{ type: 'text', text: value }] });
let dir: Scratch;
let d: Daemon;

beforeAll(async () => {
  dir = await scratch();
  const tallies = fixture('tallies', { share: 'all' });
  tallies.args.push(join(dir.path, 'tallies'));
  d = await daemon({
    servers: {
      private: fixture('echo'),
      odd: fixture('odd-names'),
      off: fixture('echo', { enabled: false }),
      broken: fixture('dies-at-start', { restart: { intensity: 0 } }),
      tallies,
    },
  });
});
afterAll(async () => {
  await d[Symbol.asyncDispose]();
  await dir[Symbol.asyncDispose]();
});

describe('names', () => {
  it('of every kind are called by their subject, the long one with its header', async () => {
    const { tools } = (await d.request('troupe.list.odd.tools')).data as { tools: { name: string }[] };
    expect(tools).toHaveLength(12);
    for (const { name } of tools.filter((tool) => tool.name !== 'echo')) {
      const base64 = `=?base64?${Buffer.from(name).toString('base64')}?=`;
      const wanted = name.length > 200 ? { headers: { 'Mcp-Name': base64 } } : {};
      expect([name, (await d.request(subject.call('odd', name), '', wanted)).data]).toEqual([name, text(name)]);
    }
    expect((await d.request(subject.call('odd', 'l'.repeat(300)))).error).toMatch(/Mcp-Name/);
  });
});

describe('a server', () => {
  it('that is not there is told of at once: no responders, which is no time-out', async () => {
    await expect(d.request('troupe.call.nobody.echo')).rejects.toMatchObject({ code: '503' });
  });

  it('that is stopped or failed says so, and why', async () => {
    const off = await d.request('troupe.call.off.echo');
    expect([off.code, off.error]).toEqual([503, 'server off is stopped; troupe start off']);
    expect(off.data.data.troupe).toEqual({
      code: 'unavailable',
      delivery: 'not sent',
      server: 'off',
      state: 'stopped',
    });
    await d.until('broken', 'failed');
    const broken = await d.request('troupe.call.broken.echo');
    expect([broken.code, broken.data.data.troupe.state]).toEqual([503, 'failed']);
    expect(broken.error).toMatch(/server broken is failed: exited with code 3; see troupe logs broken/);
    expect((await d.request('troupe.list.broken.tools')).code).toBe(503);
  });

  it('gives another caller a process of its own, unless it is shared by all', async () => {
    expect((await d.request('troupe.as.alice.call.private.echo', { message: 'hi' })).data).toEqual(text('hi'));
    const [mine, hers] = [await d.server('private'), await d.server('private@alice')];
    expect(hers.state).toBe('ready');
    expect(hers.pid).not.toBe(mine.pid);
    const who = async (caller: string) => (await d.request(`troupe.as.${caller}.call.tallies.who`)).text;
    expect(await who('alice')).toBe(await who('bob'));
    expect((await d.status()).servers.filter(({ name }) => name.startsWith('tallies'))).toHaveLength(1);
  });

  it('is a micro service with true counts', async () => {
    const service = async (verb: string) => (await d.request(`$SRV.${verb}.mcp-tallies`)).data;
    const counts = async () => {
      const { endpoints } = (await service('STATS')) as { endpoints: { name: string; [key: string]: unknown }[] };
      return (name: string) => endpoints.find((endpoint) => endpoint.name === name) as Record<string, number>;
    };
    const before = await counts();
    for (let i = 0; i < 5; i++) await d.request('troupe.call.tallies.tally', { id: `ok ${i}` });
    for (let i = 0; i < 3; i++) await d.request('troupe.call.tallies.refuse', { id: `no ${i}` });
    const after = await counts();
    const grown = (endpoint: string) =>
      ['num_requests', 'num_errors'].map((key) => (after(endpoint)[key] ?? 0) - (before(endpoint)[key] ?? 0));
    expect(grown('tally')).toEqual([5, 0]);
    expect(grown('refuse')).toEqual([3, 3]);
    expect(grown('call')).toEqual([8, 3]);
    expect(after('refuse').last_error).toMatch(/answered with an error/);
    expect(after('call').processing_time).toBeGreaterThan(before('call').processing_time ?? 0);
    expect(await service('PING')).toMatchObject({
      name: 'mcp-tallies',
      version: '1.0.0',
      metadata: { state: 'ready' },
    });
    const { endpoints } = await service('INFO');
    expect(endpoints).toContainEqual(
      expect.objectContaining({ name: 'tally', subject: 'troupe.call.tallies.tally', metadata: { tool: 'tally' } }),
    );
  });
});
