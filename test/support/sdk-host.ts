// A host on the official SDK, version 1 or 2, over whatever transport it is given; it keeps what it is told. And all that
// a host does with the servers of `HOST_SERVERS` behind one endpoint, which must be the same through every door.

import { randomUUID } from 'node:crypto';
import { Client as ClientV2 } from '@modelcontextprotocol/client';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { expect } from 'vitest';
import { fixture } from './daemon.ts';
import { eventually } from './eventually.ts';

export const HOST_SERVERS = {
  echo: fixture('echo'),
  steps: fixture('progress'),
  slow: fixture('hangs'),
  things: fixture('resources'),
};

type Options = { readonly onprogress?: (progress: any) => void; readonly signal?: AbortSignal };
export type SdkHost = Awaited<ReturnType<typeof sdkHost>>;

export async function sdkHost(version: 'v1' | 'v2', transport: object) {
  const info = { name: `host on ${version}`, version: '1' };
  // The two differ in types only, and in where the options of a call stand.
  const client: ClientV1 = version === 'v1' ? new ClientV1(info) : (new ClientV2(info) as any);
  const heard: { readonly method: string; readonly params?: any }[] = [];
  client.fallbackNotificationHandler = async (notification) => void heard.push(notification);
  await client.connect(transport as any);
  const call = (name: string, args: object = {}, options: Options = {}): Promise<any> => {
    const params = { name, arguments: { ...args } };
    return version === 'v1' ? client.callTool(params, undefined, options) : client.callTool(params, options as any);
  };
  const hears = (method: string, isIt: (params: any) => boolean = () => true) =>
    eventually(() => heard.some((each) => each.method === `notifications/${method}` && isIt(each.params)), 15_000);
  return { client, heard, call, hears, close: () => client.close(), [Symbol.asyncDispose]: () => client.close() };
}

export async function doEverything({ client, call, hears, heard }: SdkHost): Promise<void> {
  const { tools } = await client.listTools();
  expect(tools.map(({ name }) => name)).toEqual(expect.arrayContaining(['echo__echo', 'steps__steps', 'slow__sleep']));
  expect((await call('echo__echo', { message: 'hé' })).content).toEqual([{ type: 'text', text: 'hé' }]);

  const steps: number[] = [];
  await call('steps__steps', { count: 10, ms: 20 }, { onprogress: ({ progress }) => steps.push(progress) });
  // The SDK forgets progress that comes in one packet with the answer, so of the last ones nothing is known.
  expect(steps.length).toBeGreaterThan(0);
  expect(steps).toEqual(Array.from(steps, (_, index) => index + 1));

  const leave = new AbortController();
  const sleeping = call('slow__sleep', { ms: 60_000 }, { signal: leave.signal });
  setImmediate(() => leave.abort('enough'));
  await expect(sleeping).rejects.toThrow();
  await eventually(async () => (await call('slow__cancelled')).structuredContent !== undefined);
  await eventually(async () => JSON.stringify(await call('slow__cancelled')).includes('requestId'), 10_000);

  const uri = 'memo://a';
  expect((await client.readResource({ uri })).contents).toMatchObject([{ uri, text: 'the memo memo://a' }]);
  await client.subscribeResource({ uri });
  await call('things__touch', { uri });
  await hears('resources/updated', (params) => params.uri === uri);
  await client.unsubscribeResource({ uri });

  const prompt = { type: 'ref/prompt' as const, name: 'things__greet' };
  const { completion } = await client.complete({ ref: prompt, argument: { name: 'who', value: 'Ad' } });
  expect(completion.values).toEqual(['Ad!']);
  expect((await client.getPrompt({ name: 'things__greet', arguments: { who: 'Ada' } })).messages).toHaveLength(1);

  await client.setLoggingLevel('warning');
  await call('things__log', { level: 'info', text: 'too low' });
  await call('things__log', { level: 'error', text: 'high enough' });
  await hears('message', ({ data }) => data === 'high enough');
  expect(heard.filter(({ params }) => params?.data === 'too low')).toEqual([]);

  await call('things__add', { name: `new-${randomUUID()}` });
  await hears('tools/list_changed');
}
