// A server over WebSocket: one message a frame in both directions, the same promises as over any other link.

import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { type WebSocket, WebSocketServer } from 'ws';
import { eventually } from '../support/eventually.ts';
import { answer, remoteCast, said } from '../support/remote.ts';

type Handler = (message: any, socket: WebSocket) => unknown;

async function socketServer(onCall: Handler, options: { verify?: (token: string | undefined) => boolean } = {}) {
  const seen: any[] = [];
  const headers: any[] = [];
  const server = new WebSocketServer({
    ...{ host: '127.0.0.1', port: 0, handleProtocols: () => 'mcp' },
    verifyClient: ({ req }, done) => {
      headers.push(req.headers);
      done(options.verify?.(req.headers.authorization) ?? true, 401);
    },
  });
  await new Promise((resolve) => server.once('listening', resolve));
  server.on('connection', (socket) =>
    socket.on('message', (data, isBinary) => {
      const message = JSON.parse(String(data));
      seen.push({ ...message, isBinary, hasNewline: String(data).includes('\n') });
      const { id, method, params } = message;
      const send = (result: object) => socket.send(JSON.stringify({ jsonrpc: '2.0', id, result }));
      const serverInfo = { name: 'ws', version: '1' };
      if (method === 'initialize')
        return send({ protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo });
      if (method === 'tools/list') return send({ tools: [{ name: 'do', inputSchema: { type: 'object' } }] });
      if (method === 'tools/call') return onCall(message, socket);
      if (id !== undefined) send({});
    }),
  );
  return {
    ...{ seen, headers, server, url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}/` },
    async [Symbol.asyncDispose]() {
      for (const client of server.clients) client.terminate();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const echo: Handler = ({ id, params }, socket) => socket.send(answer(id, params.arguments.text ?? 'fine'));

it('is opened with our headers and the subprotocol, called and closed', async () => {
  await using web = await socketServer(echo);
  {
    await using far = await remoteCast(web.url, { transport: 'ws', headers: { 'X-Team': 'blue' } });
    await far.until('ready');
    const outcomes = await Promise.all(Array.from({ length: 100 }, (_, index) => far.call('do', { text: `${index}` })));
    expect(outcomes.map(said)).toEqual(outcomes.map((_, index) => `${index}`));
    expect(web.headers[0]).toMatchObject({ 'x-team': 'blue', 'sec-websocket-protocol': 'mcp' });
    expect(web.seen.every(({ isBinary, hasNewline }) => !isBinary && !hasNewline)).toBe(true);
  }
  await eventually(() => web.server.clients.size === 0);
});

it('loses what was in flight when the connection ends, and comes back', async () => {
  await using web = await socketServer((message, socket) =>
    message.params.arguments.text === 'end' ? socket.terminate() : echo(message, socket),
  );
  await using far = await remoteCast(web.url, { transport: 'ws' });
  await far.until('ready');
  expect(said(await far.call('do', { text: 'end' }))).toBe('lost, outcome unknown');
  await eventually(() => far.member.restarts === 1);
  await far.until('ready');
  expect(said(await far.call('do', { text: 'again' }))).toBe('again');
});

it('ends a server that sends more than it may', async () => {
  await using web = await socketServer(({ id }, socket) => socket.send(answer(id, 'x'.repeat(3_000_000))));
  const settings = { maxFrameBytes: '1MB', restart: { intensity: 0 } };
  await using far = await remoteCast(web.url, { transport: 'ws', settings });
  await far.until('ready');
  expect(said(await far.call('do'))).toBe('lost, outcome unknown');
  await far.until('failed');
  expect(far.member.why).toContain('x-troupe.maxFrameBytes');
});

it('ends a server that answers no ping, also while it works on a call', async () => {
  await using web = await socketServer(() => {});
  // A peer whose network is gone: it takes what comes, and nothing of it comes back.
  web.server.on('connection', (socket) => (socket as any)._receiver.removeAllListeners('ping'));
  const settings = { pingMs: 400, restart: { intensity: 0 } };
  await using far = await remoteCast(web.url, { transport: 'ws', settings });
  await far.until('ready');
  const outcome = far.call('do', {}, { timeoutMs: 20_000 });
  await far.until('failed');
  expect(far.member.why).toContain('did not answer a ping');
  expect(said(await outcome)).toBe('lost, outcome unknown');
});

it('tells the server of a cancelled call', async () => {
  await using web = await socketServer(() => {});
  await using far = await remoteCast(web.url, { transport: 'ws' });
  await far.until('ready');
  expect(said(await far.call('do', {}, { timeoutMs: 100 }))).toBe('timeout, outcome unknown');
  await eventually(() => expect(web.seen.map(({ method }) => method)).toContain('notifications/cancelled'));
});

it('asks who we are once more when it is challenged', async () => {
  let token = 'old';
  await using web = await socketServer(echo, { verify: (given) => given === 'Bearer new' });
  const authorizerOf = () => ({
    headers: async () => ({ Authorization: `Bearer ${token}` }),
    challenged: async () => {
      token = 'new';
      return true;
    },
  });
  await using far = await remoteCast(web.url, { transport: 'ws' }, { authorizerOf });
  await far.until('ready');
  expect(said(await far.call('do', { text: 'in' }))).toBe('in');
  expect(far.member.restarts).toBe(0);
});

it('says that nobody is there', async () => {
  const { url, ...web } = await socketServer(echo);
  await web[Symbol.asyncDispose]();
  await using far = await remoteCast(`${url}?key=s3cret`, { transport: 'ws', settings: { restart: { intensity: 0 } } });
  await far.until('failed');
  expect(far.member.why).toContain('ECONNREFUSED');
  expect(far.member.why).not.toContain('s3cret');
});
