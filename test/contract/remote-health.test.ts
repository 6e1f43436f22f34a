// What a remote server's answer to a ping says of its health: any answer is a sign of life, a server that is ill is asked ever
// more seldom, one that does not know the question is not asked again, and one that cannot be reached is in an outage.

import { expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { type Asked, json, listen, remoteCast, said, scripted } from '../support/remote.ts';

const PING_MS = 400;
/** A ping that came late on a busy machine makes the next gap shorter. */
const SLACK_MS = 100;

type Answer = (asked: Asked) => unknown;
const status =
  (code: number, headers: Record<string, string> = {}): Answer =>
  ({ response }) =>
    response.writeHead(code, headers).end();
const error =
  (code: number, rpc: number): Answer =>
  ({ response, message }) =>
    json(response, code, { jsonrpc: '2.0', id: message.id, error: { code: rpc, message: 'no' } });

/** A server that answers each ping so, and the times at which the pings came. */
async function pinged(ping: Answer, session: string | undefined = undefined, settings: object = {}) {
  const at: number[] = [];
  const script = scripted({
    session: () => session,
    first(asked) {
      if (asked.message?.method !== 'ping') return false;
      at.push(performance.now());
      ping(asked);
      return true;
    },
    call: ({ message, response }) => json(response, 200, { jsonrpc: '2.0', id: message.id, result: {} }),
  });
  const web = await listen(script);
  const far = await remoteCast(web.url, { settings: { pingMs: PING_MS, trust: true, ...settings } });
  await far.until('ready');
  const gaps = () => at.slice(1).map((time, index) => time - (at[index] ?? 0));
  return {
    ...{ at, gaps, far, script, web },
    async [Symbol.asyncDispose]() {
      await far[Symbol.asyncDispose]();
      await web[Symbol.asyncDispose]();
    },
  };
}

const ALIVE: [string, Answer][] = [
  ['200 with a result', ({ response, message }) => json(response, 200, { jsonrpc: '2.0', id: message.id, result: {} })],
  ['200 with an error', error(200, -32000)],
  ['202', status(202)],
  ['400', status(400)],
  ['400 with an error', error(400, -32602)],
  ['403', status(403)],
  ['410', status(410)],
  ['418', status(418)],
];
const ILL: [string, Answer][] = [
  ['429', status(429)],
  ['500', status(500)],
  ['503', status(503)],
  ['500 with an error', error(500, -32603)],
  ['a connection that breaks', ({ request }) => request.socket.destroy()],
];
const DEAF: [string, Answer][] = [
  ['404', status(404)],
  ['404 with an error', error(404, -32601)],
  ['405', status(405)],
  ['501', status(501)],
  ['200 with the error that there is no such method', error(200, -32601)],
];

async function everyone() {
  const open = ([name, ping]: [string, Answer]) => pinged(ping).then((server) => Object.assign(server, { name }));
  const all = (rows: [string, Answer][]) => Promise.all(rows.map(open));
  const [alive, ill, deaf] = [await all(ALIVE), await all(ILL), await all(DEAF)];
  const servers = [...alive, ...ill, ...deaf];
  return {
    ...{ alive, ill, deaf, servers },
    async [Symbol.asyncDispose]() {
      await Promise.all(servers.map((server) => server[Symbol.asyncDispose]()));
    },
  };
}

it('asks each server as often as its answers deserve', { timeout: 30_000 }, async () => {
  await using all = await everyone();
  const { servers, alive, ill, deaf } = all;
  const pingedTimes = (each: typeof servers, times: number) =>
    eventually(() => {
      for (const { name, at } of each) expect(at.length, name).toBeGreaterThanOrEqual(times);
    }, 20_000);
  await Promise.all([pingedTimes(alive, 3), pingedTimes(ill, 3), pingedTimes(deaf, 1)]);
  const before = Math.max(...alive.map(({ at }) => at.length));
  await pingedTimes(alive, before + 2); // time enough for those who would be asked again
  for (const { name, gaps } of servers)
    for (const gap of gaps()) expect(gap, name).toBeGreaterThanOrEqual(PING_MS - SLACK_MS);
  for (const { name, gaps, far } of ill) {
    expect(gaps()[1], name).toBeGreaterThanOrEqual(2 * PING_MS - SLACK_MS);
    expect(far.member.why, name).toMatch(/HTTP|connection broke/);
  }
  for (const { name, at } of deaf) expect([name, at.length]).toEqual([name, 1]);
  for (const { name, far } of servers) {
    expect([name, far.member.state, far.member.restarts]).toEqual([name, 'ready', 0]);
    expect(await far.call('do'), name).toMatchObject({ ok: true });
  }
  await eventually(() => {
    for (const { name, far } of ill) expect([name, far.member.why]).toEqual([name, '']); // it has been heard of
  });
});

it('takes a 404 within a session for the end of the session, once, and then for a question that is not known', async () => {
  await using server = await pinged(status(404), 'one');
  const { at, far, script } = server;
  await eventually(() => expect(at).toHaveLength(2));
  await using clock = await pinged(ALIVE[0]?.[1] as Answer);
  await eventually(() => expect(clock.at.length).toBeGreaterThanOrEqual(3));
  expect(at).toHaveLength(2);
  expect(script.of('initialize')).toHaveLength(2);
  expect([far.member.state, far.member.restarts]).toEqual(['ready', 0]);
});

it('waits as long as a server that is ill wants to be left alone', async () => {
  await using server = await pinged(status(503, { 'retry-after': '2' }), undefined, { pingMs: 100 });
  await eventually(() => expect(server.at).toHaveLength(2), 8_000);
  expect(server.gaps()[0]).toBeGreaterThanOrEqual(2_000 - SLACK_MS);
  expect(server.far.member.state).toBe('ready');
});

it('reopens a server that is silent, and one that can no longer be reached though it knows no ping', async () => {
  await using mute = await pinged(() => {}, undefined, { pingTimeoutMs: 200 });
  await eventually(() => expect(mute.far.member.restarts).toBeGreaterThan(0));
  expect(mute.far.member.lastError).toContain('did not answer a ping within 200 ms');

  await using deaf = await pinged(status(404), undefined, { restart: { backoffMs: [600_000] } });
  await eventually(() => expect(deaf.at).toHaveLength(1));
  await deaf.web[Symbol.asyncDispose]();
  expect(['unavailable, not sent', 'lost, outcome unknown']).toContain(said(await deaf.far.call('do')));
  if (deaf.far.member.state === 'ready') await deaf.far.call('do'); // the first may have met a connection that just ended
  await deaf.far.until('waiting');
  expect(deaf.far.member.why).toContain('cannot be reached');
});
