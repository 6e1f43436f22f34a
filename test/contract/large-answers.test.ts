// An answer that is too large for the server that asked: the server hears so in its place, and its question is answered once.

import { expect, it } from 'vitest';
import type { Lane } from '../../src/calls/lane.ts';
import { type Asked, ServerSession } from '../../src/servers/connection/session.ts';

it.each([
  ['a result', 'result'],
  ['an error', 'error'],
])('%s of just the size is sent, a larger one is not', (_, kind) => {
  const text = 'x'.repeat(900);
  const sent: any[] = [];
  const asked: Asked[] = [];
  const nothing = () => {};
  const session = new ServerSession({
    ...{ lane: {} as Lane, server: 'alpha', openMs: 1_000, maxSendBytes: () => 1_000 },
    ...{ send: nothing, onNegotiated: nothing, onReady: nothing, onRefused: nothing, onNotice: nothing },
    ...{ onDropped: nothing, onLateProgress: nothing, onAsk: (question) => asked.push(question) },
    reply: (frame) => sent.push(JSON.parse(String(frame))),
  });
  for (const id of [1, 2]) session.receive(Buffer.from(`{"jsonrpc":"2.0","id":${id},"method":"roots/list"}`));
  const [first, second] = asked;
  const give = (said: string) => {
    const body = Buffer.from(JSON.stringify({ code: -1, message: said }));
    return kind === 'result' ? ({ ok: true, result: body } as const) : ({ ok: false, error: body } as const);
  };
  first?.answer(give(text));
  second?.answer(give(text + text));
  second?.answer(give('late'));
  expect(sent).toEqual([
    { jsonrpc: '2.0', id: 1, [kind]: { code: -1, message: text } },
    { jsonrpc: '2.0', id: 2, error: { code: -32603, message: expect.stringContaining('x-troupe.maxSendBytes') } },
  ]);
});
