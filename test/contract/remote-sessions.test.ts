// When a server has forgotten the session, a new one takes its place without the server's state ever leaving `ready`: who
// was refused is sent again once, who was being answered is told that nobody knows, and all that was set is set again.

import { expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { type Asked, answer, events, json, listen, remoteCast, said, scripted } from '../support/remote.ts';

/** Sessions that can be forgotten; refuses the unknown ones in the given way. */
function forgetful(refuse: (asked: Asked) => unknown, call: (asked: Asked) => unknown) {
  let current = 0;
  const script = scripted({
    call,
    session: () => `s${current}`,
    first({ message, request, response }) {
      const given = request.headers['mcp-session-id'];
      if (message?.method === 'initialize' || given === `s${current}`) return false;
      refuse({ message, request, response });
      return true;
    },
  });
  return Object.assign(script, { forget: () => current++ });
}

const echo = ({ message, response }: Asked) =>
  json(response, 200, JSON.parse(answer(message.id, message.params.arguments.text ?? 'fine')));
const notFound = ({ response }: Asked) =>
  json(response, 404, { jsonrpc: '2.0', id: null, error: { code: -32001, message: 'Session not found' } });

it.each<[string, (asked: Asked) => unknown]>([
  ['404, as the specification has it', notFound],
  ['404 without a body', ({ response }) => response.writeHead(404).end()],
  [
    '400 and a word of the session, as the examples of the SDK have it',
    ({ response }) =>
      json(response, 400, { jsonrpc: '2.0', error: { code: -32000, message: 'Bad Request: No valid session ID' } }),
  ],
])('opens a new one after %s', async (_, refuse) => {
  const script = forgetful(refuse, echo);
  await using web = await listen(script);
  await using far = await remoteCast(web.url, { settings: { logLevel: 'notice' } });
  await far.until('ready');
  await far.tools();
  await far.member.subscriptions.add('memo://one', 'somebody');
  const since = far.member.since;
  script.forget();
  const outcomes = await Promise.all(['a', 'b', 'c', 'd'].map((text) => far.call('do', { text })));
  expect(outcomes.map(said)).toEqual(['a', 'b', 'c', 'd']);
  expect(script.of('initialize')).toHaveLength(2);
  expect(script.of('initialize')[1]?.headers).not.toHaveProperty('mcp-session-id');
  const again = (rpc: string) => script.of(rpc).filter(({ headers }) => headers['mcp-session-id'] === 's1');
  await eventually(() => {
    expect(again('logging/setLevel').map(({ params }) => params.level)).toEqual(['notice']);
    expect(again('resources/subscribe').map(({ params }) => params.uri)).toEqual(['memo://one']);
    expect(again('tools/list')).toHaveLength(1);
    expect(again('notifications/initialized')).toHaveLength(1);
  });
  expect(far.member.since).toBe(since);
});

it('tells those who were being answered that nobody knows, and sends nothing twice that was taken', async () => {
  const script = forgetful(notFound, (asked) => {
    if (asked.message.params.arguments.text === 'slow') return void events(asked.response).write('id: 1\ndata:\n\n');
    return echo(asked);
  });
  await using web = await listen(script);
  await using far = await remoteCast(web.url);
  await far.until('ready');
  await far.tools();
  const slow = far.call('do', { text: 'slow' });
  await eventually(() => script.of('tools/call').length === 1);
  // Its stream is open, which only the client can tell.
  await eventually(async () => said(await far.call('do', { text: 'quick' })) === 'quick');
  script.forget();
  expect(said(await far.call('do', { text: 'next' }))).toBe('next');
  expect(said(await slow)).toBe('lost, outcome unknown');
  expect(script.of('tools/call').filter(({ params }) => params.arguments.text === 'slow')).toHaveLength(1);
});

it('waits for its own answer when it was neither refused nor answered yet', async () => {
  let release = () => {};
  const script = forgetful(notFound, (asked) => {
    if (asked.message.params.arguments.text !== 'slow') return echo(asked);
    release = () => echo(asked);
  });
  await using web = await listen(script);
  await using far = await remoteCast(web.url);
  await far.until('ready');
  await far.tools();
  const slow = far.call('do', { text: 'slow' });
  await eventually(() => script.of('tools/call').length === 1);
  script.forget();
  expect(said(await far.call('do', { text: 'next' }))).toBe('next');
  release();
  expect(said(await slow)).toBe('slow');
});

it('notices by a ping as well that it was forgotten', async () => {
  const script = forgetful(notFound, echo);
  await using web = await listen(script);
  await using far = await remoteCast(web.url, { settings: { pingMs: 100 } });
  await far.until('ready');
  await far.tools();
  script.forget();
  await eventually(() => expect(script.of('initialize')).toHaveLength(2));
  expect(far.member.state).toBe('ready');
});

it('answers with the refusal when the new session does not help', async () => {
  const script = scripted({ call: notFound });
  await using web = await listen(script);
  await using far = await remoteCast(web.url);
  await far.until('ready');
  await far.tools();
  expect(said(await far.call('do'))).toBe('error Session not found');
  expect(script.of('tools/call')).toHaveLength(2);
  expect(script.of('initialize')).toHaveLength(2);
});

it('takes an unknown method for what it is, and no end of the session', async () => {
  const script = scripted({
    call: ({ message, response }) =>
      json(response, 404, { jsonrpc: '2.0', id: message.id, error: { code: -32601, message: 'no such method' } }),
  });
  await using web = await listen(script);
  await using far = await remoteCast(web.url);
  await far.until('ready');
  expect(said(await far.call('do'))).toBe('error no such method');
  expect(script.of('initialize')).toHaveLength(1);
});

it('closes, rather than opening sessions for ever, when each is forgotten at once', async () => {
  const script = scripted({
    first({ message, response }) {
      if (message?.id === undefined || message.method === 'initialize') return false;
      response.writeHead(404).end();
      return true;
    },
  });
  await using web = await listen(script);
  await using far = await remoteCast(web.url, { settings: { restart: { intensity: 2, backoffMs: [10] } } });
  await far.until('failed');
  expect(far.member.why).toContain('forgets its sessions at once');
  expect(script.of('initialize')).toHaveLength(3);
});

it('sends the session and the version with everything but the first message', async () => {
  const script = scripted({ call: echo });
  await using web = await listen(script);
  {
    await using far = await remoteCast(web.url, { headers: { Authorization: 'Bearer s3cret', 'X-Team': 'blue' } });
    await far.until('ready');
    await far.call('do');
    expect(far.log.join('')).not.toContain('s3cret');
  }
  const [first, ...rest] = script.seen;
  expect(first?.headers).not.toHaveProperty('mcp-session-id');
  expect(first?.headers).not.toHaveProperty('mcp-protocol-version');
  for (const { headers } of rest)
    expect(headers).toMatchObject({ 'mcp-session-id': 'one', 'mcp-protocol-version': '2025-11-25' });
  for (const { headers } of script.seen)
    expect(headers).toMatchObject({ authorization: 'Bearer s3cret', 'x-team': 'blue' });
  for (const { method, headers } of script.seen)
    if (method === 'POST') expect(headers.accept).toBe('application/json, text/event-stream');
  expect(script.seen.map(({ method }) => method)).toContain('GET');
  expect(script.seen.at(-1)?.method).toBe('DELETE');
});
