// Asks when daemons come and go: one that is killed between question and answer ends its asks honestly, and what one daemon
// asks is answered through another on the same state directory.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AskView } from '../../src/asks/ask.ts';
import { type Daemon, daemon, fixture } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { rawHost } from '../support/host.ts';

let d: Daemon;
beforeAll(async () => {
  d = await daemon({ servers: { asks: fixture('asks-tags') }, troupe: { http: { address: '127.0.0.1:0' } } });
}, 60_000);
afterAll(() => d?.[Symbol.asyncDispose]());

const inbox = async (...words: string[]): Promise<AskView[]> =>
  JSON.parse((await d.cli('inbox', '--json', ...words)).stdout);
const theAsk = (...words: string[]) =>
  eventually(async () => {
    const [view] = await inbox(...words);
    if (!view) throw new Error('no question is open');
    return view;
  }, 15_000);

describe('a daemon that is killed between question and answer', () => {
  it('says at its next start that the question is over, and nothing of it is left', async () => {
    const call = d
      .request('troupe.call.asks.ask', { tag: 'a-secret-question' }, { timeout: 60_000 })
      .catch(() => 'no answer');
    const { id } = await theAsk();
    await d.kill();
    await d.start();
    expect(await inbox()).toEqual([]);
    const late = await d.cli('answer', id, '--accept', '{"said":"x"}');
    expect([late.exitCode, late.stderr]).toEqual([1, expect.stringMatching(/is over: troupe was restarted/)]);
    expect(await d.filesWith('a-secret-question')).toEqual([]);
    await (await d.nats()).close(); // its caller waits for nobody
    await call;
  });

  it('is heard of on the bus: the question has closed', async () => {
    const nc = await d.nats();
    const closed = nc.subscribe('troupe.ev.asks.ask.closed', { max: 1 });
    await nc.flush();
    const call = d.request('troupe.call.asks.ask', { tag: 'who?' }, { timeout: 60_000 }).catch(() => 'no answer');
    const { id } = await theAsk();
    await d.kill();
    await d.start();
    for await (const msg of closed) expect(msg.json()).toMatchObject({ id, outcome: 'interrupted', server: 'asks' });
    await (await d.nats()).close();
    await call;
  });

  it('leaves its host with an honest answer to the call', async () => {
    const declared = { elicitation: {} };
    const host = await rawHost(`${await d.http()}/mcp/asks`, { capabilities: declared });
    const stream = await host.begin(1, 'tools/call', { name: 'ask', arguments: { tag: 'hm?' } });
    for await (const { message } of stream.events) if (message.method === 'elicitation/create') break;
    stream.leave();
    await d.kill();
    await d.start();
    const back = await rawHost(`${await d.http()}/mcp/asks`, { session: host.session });
    const seen: any[] = [];
    for await (const { message } of (await back.get(stream.last)).events) seen.push(message);
    expect(seen.at(-1)).toMatchObject({ id: 1, error: { data: { troupe: { delivery: 'outcome unknown' } } } });
    await back.close();
  });
});

describe('two daemons on one state directory', () => {
  beforeAll(async () => {
    expect((await d.cli('up', '--detach', '--instance', 'two')).exitCode).toBe(0);
  }, 60_000);
  afterAll(() => d.cli('down', '--instance', 'two'));

  it('show and answer what either of them asks', async () => {
    const call = d.cli('call', 'asks', 'ask', 'tag=who?', '--json');
    const { id } = await theAsk('--instance', 'two');
    const bad = await d.cli('answer', id, '--accept', '{"said":3}', '--instance', 'two');
    expect([bad.exitCode, bad.stderr]).toEqual([2, expect.stringMatching(/said/)]);
    const good = await d.cli('answer', id, '--accept', '{"said":"through two"}', '--instance', 'two', '--json');
    expect(JSON.parse(good.stdout)).toEqual({ id, outcome: 'accepted' });
    expect((await call).stdout).toContain('through two');
    expect(await inbox('--instance', 'two')).toEqual([]);
  });

  it('let one answer stand when both are asked at once', async () => {
    for (let round = 0; round < 5; round++) {
      const call = d.cli('call', 'asks', 'ask', 'tag=who?', '--json');
      const { id } = await theAsk();
      const answers = await Promise.all([
        d.cli('answer', id, '--accept', '{"said":"one"}'),
        d.cli('answer', id, '--accept', '{"said":"two"}', '--instance', 'two'),
      ]);
      expect(answers.map(({ exitCode }) => exitCode).sort()).toEqual([0, 1]);
      const winner = answers[0]?.exitCode === 0 ? 'one' : 'two';
      expect((await call).stdout).toContain(`said\\":\\"${winner}`);
    }
  });

  it('keep the asks of the one when the other is killed', async () => {
    const call = d.cli('call', 'asks', 'ask', 'tag=who?', '--json', '--instance', 'two');
    const { id } = await theAsk();
    await d.kill();
    await d.start();
    expect((await theAsk()).id).toBe(id);
    expect((await d.cli('answer', id, '--accept', '{"said":"after all"}')).exitCode).toBe(0);
    expect((await call).stdout).toContain('after all');
  });
});
