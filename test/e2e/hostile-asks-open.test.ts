// A server that asks with every call, and a host that leaves without answering: each question is answered for it, so that
// the server may go on asking for ever.

import { expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { daemon, fixture } from '../support/daemon.ts';

/** More than a server may have open at once; each call asks two. */
const CALLS = 510;

test('questions of calls that were cancelled do not keep a server from asking', async () => {
  await using d = await daemon({ servers: { asks: fixture('asks') }, troupe: { http: { address: '127.0.0.1:0' } } });
  await using host = await hostAt(`${(await d.http()).replace('http', 'ws')}/ws/asks`);
  for (let id = 1; id <= CALLS; id++) {
    host.send({ id, method: 'tools/call', params: { name: 'ask', arguments: {} } });
    await host.hears(({ method }) => method === 'sampling/createMessage');
    host.send({ method: 'notifications/cancelled', params: { requestId: id } });
    await host.hears((message) => message.id === id);
  }
  host.send({ id: 'last', method: 'tools/call', params: { name: 'ask', arguments: {} } });
  const question = await host.hears(({ method }) => method === 'elicitation/create');
  host.send({ id: question.id, result: { action: 'decline' } });
  const { id } = await host.hears(({ method }) => method === 'sampling/createMessage');
  host.send({ id, error: { code: -1, message: 'no' } });
  const { result } = await host.hears((message) => message.id === 'last');
  const lines = result.structuredContent.replies.map(({ line }: { line: string }) => JSON.parse(line));
  expect(lines).toMatchObject([
    { result: { action: 'decline' } },
    { error: { code: -1 } },
    { result: { roots: [] } },
    {},
  ]);
}, 180_000); // every question is on the disk before it is asked

/** A host that has seen every message once. */
async function hostAt(url: string) {
  const socket = new WebSocket(url, ['mcp']);
  const unseen: any[] = [];
  let look = () => {};
  socket.on('message', (data) => {
    unseen.push(JSON.parse(String(data)));
    look();
  });
  await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
  const send = (message: object) => socket.send(JSON.stringify({ jsonrpc: '2.0', ...message }));
  const hears = (isIt: (message: any) => boolean): Promise<any> =>
    new Promise((resolve) => {
      look = () => {
        const index = unseen.findIndex(isIt);
        if (index >= 0) resolve(unseen.splice(0, index + 1).at(-1));
      };
      look();
    });
  const capabilities = { elicitation: {}, sampling: {} };
  const clientInfo = { name: 'leaves', version: '1' };
  send({ id: 0, method: 'initialize', params: { protocolVersion: '2025-11-25', capabilities, clientInfo } });
  await hears(({ id }) => id === 0);
  return { send, hears, [Symbol.asyncDispose]: async () => socket.terminate() };
}
