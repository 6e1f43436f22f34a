// The reference server's own task tool, which must be called as a task: whoever calls it plainly, from the shell, over NATS or
// as a host, gets the report; and its question while it works reaches the one it is for.

import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AskView } from '../../src/asks/ask.ts';
import { type Daemon, daemon, ROOT } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { rawHost } from '../support/host.ts';

const EVERYTHING = join(ROOT, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js');
const TOOL = 'simulate-research-query';

let d: Daemon;
let url = '';
beforeAll(async () => {
  d = await daemon({
    servers: { everything: { command: process.execPath, args: [EVERYTHING, 'stdio'] } },
    troupe: { http: { address: '127.0.0.1:0' } },
  });
  await d.until('everything', 'ready', 30_000);
  url = `${await d.http()}/mcp/everything`;
}, 60_000);
afterAll(() => d?.[Symbol.asyncDispose]());

const textOf = (result: any): string => result.content.map(({ text }: any) => text).join('\n');

describe('a plain call of a tool that must be a task', () => {
  it('completes from the command line', async () => {
    const { exitCode, stdout, stderr } = await d.cli('call', 'everything', TOOL, 'topic=whales');
    expect([exitCode, stderr]).toEqual([0, expect.any(String)]);
    expect(stdout).toContain('# Research Report: whales');
  });

  it('completes over NATS, and says nothing of the server’s task', async () => {
    const { data } = await d.request(`troupe.call.everything.${TOOL}`, { topic: 'owls' }, { timeout: 60_000 });
    expect(textOf(data)).toContain('# Research Report: owls');
    expect(JSON.stringify(data)).not.toContain('related-task');
  });

  it('asks its question in the inbox where the caller has no host, and goes on with the answer', async () => {
    const call = d.request(`troupe.call.everything.${TOOL}`, { topic: 'python', ambiguous: true }, { timeout: 60_000 });
    const { id, principal, tool } = await eventually(async () => {
      const [found] = JSON.parse((await d.cli('inbox', '--json')).stdout) as AskView[];
      if (!found) throw new Error('no question');
      return found;
    }, 20_000);
    expect([principal, tool]).toEqual(['_', TOOL]);
    const { exitCode, stderr } = await d.cli('answer', id, '--accept', '{"interpretation":"snake"}');
    expect([exitCode, stderr]).toEqual([0, expect.any(String)]);
    expect(textOf((await call).data)).toContain('# Research Report: python (snake)');
  });
});

describe('hosts of a version without tasks', () => {
  /** Calls it, answers whatever is asked on the way, and gives back both. */
  async function research(topic: string, interpretation?: string) {
    const host = await rawHost(url, { version: '2025-06-18', capabilities: { elicitation: {} } });
    const ambiguous = interpretation !== undefined;
    const { events } = await host.begin(1, 'tools/call', { name: TOOL, arguments: { topic, ambiguous } });
    const questions: any[] = [];
    for await (const { message } of events) {
      if (message.id === 1) {
        await host.close();
        return { questions, report: textOf(message.result) };
      }
      if (message.method !== 'elicitation/create') continue;
      questions.push(message.params);
      const result = { action: 'accept', content: { interpretation } };
      await (await host.send('POST', { id: message.id, result })).body.dump();
    }
    throw new Error('no answer');
  }

  it('call it like any other tool, and each is asked its own question on the stream of its call', async () => {
    const [snakes, laughs, bees] = await Promise.all([
      research('python', 'snake'),
      research('python too', 'comedy'),
      research('bees'),
    ]);
    expect([snakes, laughs, bees].map(({ report }) => /Report: (.*)/.exec(report)?.[1])).toEqual([
      'python (snake)',
      'python too (comedy)',
      'bees',
    ]);
    expect(snakes.questions).toMatchObject([{ message: expect.stringContaining('"python"') }]);
    expect(laughs.questions).toMatchObject([{ message: expect.stringContaining('"python too"') }]);
    expect(bees.questions).toEqual([]);
    expect(JSON.stringify([snakes, laughs])).not.toContain('related-task');
  });
});
