// The control socket's `mcp`: a connection becomes a raw MCP session, which ends with its host and outlives its daemon.

import { connect } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { describe, expect, it } from 'vitest';
import { openControl } from '../../src/doors/control.ts';
import { pipeDoor } from '../../src/doors/pipe.ts';
import { realWorld } from '../../src/world/world.ts';
import { eventually } from '../support/eventually.ts';
import { type LittleSessions, littleSessions } from '../support/little-sessions.ts';
import { scratch } from '../support/scratch.ts';

const INITIALIZE = { jsonrpc: '2.0', id: 0, method: 'initialize', params: { protocolVersion: '2025-11-25' } };
const request = (id: unknown, method: string, params: object = {}) => ({ jsonrpc: '2.0', id, method, params });

async function daemon(sessions: LittleSessions = littleSessions({ scopes: ['', 'files', '@work'] })) {
  const dir = await scratch();
  const path = join(dir.path, 'control.sock');
  const control = await openControl({
    path,
    ports: { status: () => ({ ok: true }) } as never,
    mcp: pipeDoor({ world: realWorld, sessions, onFault: console.error }),
  });
  const clients = new Set<ReturnType<typeof connect>>();
  return {
    sessions,
    control,
    client() {
      const socket = connect(path);
      clients.add(socket);
      const messages: any[] = [];
      createInterface(socket).on('line', (line) => messages.push(JSON.parse(line)));
      const closed = new Promise((resolve) => socket.once('close', resolve));
      const send = (...frames: object[]) => socket.write(frames.map((frame) => `${JSON.stringify(frame)}\n`).join(''));
      const answer = (id: unknown) => eventually(() => messages.findLast((each) => each.id === id) ?? false);
      return { socket, messages, closed, send, answer };
    },
    async [Symbol.asyncDispose]() {
      for (const socket of clients) socket.destroy();
      await control.close();
      await dir[Symbol.asyncDispose]();
    },
  };
}

describe('a connection that says mcp', () => {
  it('is an MCP session of the owner from its next line on, also when that came in the same packet', async () => {
    await using it = await daemon();
    const client = it.client();
    client.send(request('m', 'mcp', { scope: 'files' }), INITIALIZE, request(1, 'echo', { a: 1 }));
    expect((await client.answer(1)).result).toEqual({ a: 1 });
    const [session] = it.sessions.all;
    expect([session?.door, session?.principal, session?.scope]).toEqual(['stdio', '_', 'files']);
    expect(client.messages.map(({ id, method }) => id ?? method)).toEqual(['m', 'troupe/session', 0, 1]);
    expect(client.messages[0].result).toEqual({ resumed: false, pid: process.pid });
    expect(client.messages[1].params).toEqual({ session: session?.id });
  });

  it('no longer takes the methods of the command line', async () => {
    await using it = await daemon();
    const client = it.client();
    client.send(request(1, 'status'), request(2, 'mcp'), request(3, 'status'));
    expect((await client.answer(1)).result).toEqual({ ok: true });
    expect((await client.answer(3)).error.code).toBe(-32600);
  });

  it.each([
    ['nobody', 'there is no server nobody'],
    ['@home', 'there is no profile @home'],
  ])('is refused the scope %s, and stays what it was', async (scope, why) => {
    await using it = await daemon();
    const client = it.client();
    client.send(request(1, 'mcp', { scope }), request(2, 'status'));
    expect((await client.answer(1)).error).toMatchObject({ code: -32602, message: expect.stringContaining(why) });
    expect((await client.answer(2)).result).toEqual({ ok: true });
  });
});

describe('its session', () => {
  it.each(['end', 'destroy'] as const)('ends when the host goes (%s)', async (how) => {
    await using it = await daemon();
    const client = it.client();
    client.send(request('m', 'mcp'), INITIALIZE, request(1, 'wait'));
    const session = await it.sessions.waiter();
    client.socket[how]();
    await eventually(() => session.holders() === 0);
    session.waiting[0]?.line.answer(Buffer.from('{"jsonrpc":"2.0","id":1,"result":{}}\n'));
    expect(session.isEnded()).toBe(true);
  });

  it('outlives the daemon, which answers first, and goes on with its id', async () => {
    await using it = await daemon();
    const client = it.client();
    client.send(request('m', 'mcp'), INITIALIZE, request(1, 'wait'));
    const session = await it.sessions.waiter();
    await it.control.close();
    client.send(request(2, 'echo'));
    expect((await client.answer(2)).error).toMatchObject({ code: -32010, data: { troupe: { delivery: 'not sent' } } });
    session.waiting[0]?.line.answer(Buffer.from('{"jsonrpc":"2.0","id":1,"result":{}}\n'));
    await client.answer(1);
    await client.closed;
    await eventually(() => session.holders() === 0);
    expect(session.isEnded()).toBe(false);

    await using next = await daemon(it.sessions);
    const again = next.client();
    again.send(request('m', 'mcp', { session: session.id }), request(3, 'echo', { back: true }));
    expect((await again.answer('m')).result.resumed).toBe(true);
    expect((await again.answer(3)).result).toEqual({ back: true });
    expect(session.holders()).toBe(1);
  });

  it('takes the connection with it when it was ended elsewhere, and is not resumed', async () => {
    await using it = await daemon();
    const client = it.client();
    client.send(request('m', 'mcp'), INITIALIZE);
    await client.answer(0);
    const [session] = it.sessions.all;
    await session?.end();
    await client.closed;
    expect(session?.holders()).toBe(0);
    const again = it.client();
    again.send(request('m', 'mcp', { session: session?.id }));
    expect((await again.answer('m')).result.resumed).toBe(false);
  });

  it.each([
    ['of another scope', { scope: 'files' }],
    ['that never was', { session: 'f'.repeat(32) }],
  ])('is not resumed by an id %s', async (_, params) => {
    await using it = await daemon();
    const first = it.client();
    first.send(request('m', 'mcp'), INITIALIZE);
    await first.answer(0);
    const second = it.client();
    second.send(request('m', 'mcp', { session: it.sessions.all[0]?.id, ...params }));
    expect((await second.answer('m')).result.resumed).toBe(false);
  });
});
