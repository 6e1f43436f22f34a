// The HTTP door of a real daemon: where it is, who is let in, what it costs to come and go.

import { existsSync, readdirSync } from 'node:fs';
import { execa } from 'execa';
import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Daemon, daemon, fixture } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { BOTH, jsonIn, listenTo, rawTo } from '../support/http-door.ts';

let d: Daemon;
let url = '';
beforeAll(async () => {
  const http = {
    tokens: { ann: 'a-long-token-of-ann', bob: 'a-long-token-of-bob' },
    origins: ['https://app.example.com'],
  };
  const profiles = { small: { servers: ['echo'], tools: { allow: ['echo__echo'] } } };
  d = await daemon({ servers: { echo: fixture('echo'), memo: fixture('resources') }, troupe: { http, profiles } });
  url = await d.http();
}, 60_000);
afterAll(() => d?.[Symbol.asyncDispose]());

const PARAMS = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 't', version: '1' } };

async function post(message: object, headers: Record<string, string> = {}, path = '/mcp') {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, ...message });
  const answer = await request(`${url}${path}`, {
    ...{ method: 'POST', reset: true, body, headers: { 'content-type': 'application/json', accept: BOTH, ...headers } },
  });
  const text = await answer.body.text();
  return { status: answer.statusCode, headers: answer.headers, text, json: jsonIn(text) };
}
async function enter(headers: Record<string, string> = {}, path = '/mcp') {
  const { headers: said } = await post({ method: 'initialize', params: PARAMS }, headers, path);
  return { 'mcp-session-id': String(said['mcp-session-id']) };
}
const descriptors = () => readdirSync(`/proc/${d.pid}/fd`).length;

describe('the address', () => {
  it('is told by status and env, and is on the loopback', async () => {
    expect(new URL(url).hostname).toBe('127.0.0.1');
    const env = JSON.parse((await d.cli('env', '--json')).stdout);
    expect(env.TROUPE_HTTP).toBe(url);
    expect(JSON.parse((await d.cli('status', '--json')).stdout).http).toMatchObject({ state: 'listening', url });
  });
});

describe('who is let in', () => {
  it('no foreign page and no foreign name, at any path', async () => {
    const port = new URL(url).port;
    for (const path of ['/mcp', '/mcp/echo', '/sse', '/messages', '/ws'])
      for (const line of [
        `Host: evil.com`,
        `Host: localhost:${port}\r\nOrigin: http://evil.com`,
        `Host: evil.com:${port}`,
      ])
        for (const more of ['', 'Upgrade: websocket\r\nSec-WebSocket-Key: x\r\n']) {
          const connection = more ? 'Upgrade' : 'close';
          const said = await rawTo(
            Number(port),
            `GET ${path} HTTP/1.1\r\n${line}\r\nConnection: ${connection}\r\n${more}\r\n`,
          );
          expect(said, `${path} ${line} ${more}`).toMatch(/^HTTP\/1.1 403/);
        }
  });

  it('each principal to its own sessions', async () => {
    const ann = { authorization: 'Bearer a-long-token-of-ann' };
    const mine = await enter(ann);
    expect((await post({ method: 'ping' }, { ...mine, ...ann })).json.result).toEqual({});
    expect((await post({ method: 'ping' }, { ...mine, authorization: 'Bearer a-long-token-of-bob' })).status).toBe(404);
    expect((await post({ method: 'ping' }, mine)).status).toBe(404);
    expect((await post({ method: 'ping' }, { ...mine, authorization: 'Bearer a-long-token-of-eve' })).status).toBe(401);
    expect(await d.log()).not.toMatch(/a-long-token-of/);
  });
});

describe('a request', () => {
  it('passes as the bytes it came as, and back', async () => {
    const mine = await enter({}, '/mcp/echo');
    const given = '{"big":12345678901234567890,"b":1,"a":"\\u00e9é","nested":[1.0,1e2]}';
    const body = `{"jsonrpc":"2.0","id":"x\\u0031","method":"tools/call","params":{"name":"raw","arguments":${given}}}`;
    const answer = await request(`${url}/mcp/echo`, {
      ...{ method: 'POST', reset: true, body, headers: { 'content-type': 'application/json', accept: BOTH, ...mine } },
    });
    expect(await answer.body.text()).toBe(
      `{"jsonrpc":"2.0","id":"x\\u0031","result":{"content":[],"structuredContent":${given}}}\n`,
    );
  });

  it('at a profile reaches only what is in it', async () => {
    const mine = await enter({}, '/mcp/@small');
    const { json } = await post({ method: 'tools/list' }, mine, '/mcp/@small');
    expect(json.result.tools.map(({ name }: { name: string }) => name)).toEqual(['echo__echo']);
    expect((await post({ method: 'initialize', params: PARAMS }, {}, '/mcp/@large')).status).toBe(404);
  });

  it('never tells where the daemon is or what it is made of', async () => {
    const mine = await enter();
    const answers = [
      await post({ method: 'no/such' }, mine),
      await post({ method: 'tools/call', params: { name: 'none' } }, mine),
      await post({ method: 'initialize', params: {} }),
      await post({ method: 'ping' }, {}, '/mcp/nobody'),
      await post({ method: 'tools/list', params: { cursor: 'nonsense' } }, mine),
    ];
    for (const { text, headers } of answers) {
      expect(text).not.toMatch(/127\.0\.0\.1|\.[jt]s:\d|node_modules|\/state/);
      expect(headers).not.toHaveProperty('server');
    }
    expect(answers.at(-1)?.json.error.code).toBe(-32602);
  });
});

describe('coming and going', () => {
  it.skipIf(!existsSync('/proc/self/fd'))(
    'a thousand times leaves descriptors and processes where they were',
    async () => {
      const processes = async () =>
        (await execa('ps', ['-o', 'pid=', '--ppid', String(d.pid)])).stdout.trim().split('\n').length;
      const mine = await enter();
      await post({ method: 'tools/list' }, mine);
      const [before, children] = [descriptors(), await processes()];
      for (let n = 0; n < 1000; n += 20)
        await Promise.all(
          Array.from({ length: 20 }, async (_, index) => {
            const headers = { accept: 'text/event-stream' };
            if (index % 2) return (await listenTo(`${url}/sse`, { method: 'GET', headers })).leave();
            const own = await enter();
            const stream = await listenTo(`${url}/mcp`, { method: 'GET', headers: { ...headers, ...own } });
            stream.leave();
            await (await request(`${url}/mcp`, { method: 'DELETE', reset: true, headers: own })).body.dump();
          }),
        );
      await eventually(() => expect(descriptors()).toBeLessThanOrEqual(before + 3), 10_000);
      expect(await processes()).toBe(children);
      expect((await post({ method: 'ping' }, mine)).json.result).toEqual({});
    },
    120_000,
  );
});
