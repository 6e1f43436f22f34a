// A server's questions and the call that they are asked for: whoever ends first, the server gets its one answer, and the
// call waits for as long as somebody may still answer.

import { expect, it } from 'vitest';
import { relayAsk } from '../../src/asks/relay.ts';
import type { Ask, Outcome } from '../../src/calls/call.ts';
import { createLane } from '../../src/calls/lane.ts';
import type { InFlight } from '../../src/calls/request.ts';
import type { Member } from '../../src/servers/member.ts';
import { createSession } from '../../src/servers/session.ts';

const SETTINGS = { timeoutMs: 5_000, maxTimeoutMs: 10_000, maxInFlight: 10, maxQueued: 10 };
const RESULT = Buffer.from('{"action":"accept","content":{}}');

/** A server with one call of `file` in flight, whose caller keeps the questions it was asked. */
function stage({ canAnswer = true } = {}) {
  const replies: any[] = [];
  const asked: Ask[] = [];
  const withdrawn: string[] = [];
  const outcomes: Outcome[] = [];
  const lane = createLane({
    ...{ server: 'alpha', settings: SETTINGS, driver: 'table', refusalOf: () => undefined, onWanted: () => {} },
    onSettled: ({ call }, outcome) => call.settle(outcome),
    onCrash: (error) => expect.unreachable(String(error)),
  });
  const nothing = () => {};
  const session = createSession({
    ...{ lane, server: 'alpha', send: nothing, openMs: 1_000, reply: (frame) => replies.push(JSON.parse(`${frame}`)) },
    ...{ onNegotiated: nothing, onReady: nothing, onRefused: nothing, onNotice: nothing, onStray: nothing },
    ...{ onLate: nothing, via: 'here' },
    onAsk: (question) => relayAsk({ lane, server: 'alpha' } as Member, question),
  });
  lane.attach({ write: nothing, cancel: session.cancel, hasRoom: () => true });
  lane.setGate({ mode: 'open', state: 'ready', why: '' });
  const request = lane.submit({
    ...{ requestId: 'r', server: 'alpha', method: 'tools/call', name: 'file', params: Buffer.from('{}') },
    ...{ principal: '_', door: 'http', settle: (outcome) => outcomes.push(outcome) },
    onAsk: (ask) => (canAnswer && asked.push(ask) > 0 ? () => withdrawn.push(ask.method) : undefined),
  }) as InFlight;
  const say = (message: object) => session.receive(Buffer.from(JSON.stringify({ jsonrpc: '2.0', ...message })));
  const ask = (id: string, method = 'elicitation/create') => say({ id, method, params: {} });
  return { lane, session, request, replies, asked, withdrawn, outcomes, say, ask };
}
const isPatient = ({ deadline, latestDeadline }: InFlight) => deadline === latestDeadline;

it('takes an answer to the server also after the call has ended', () => {
  const s = stage();
  s.ask('q1');
  s.lane.answer(s.request.id, 'result', Buffer.from('{}'));
  expect(s.outcomes).toHaveLength(1);
  s.asked[0]!.answer({ ok: true, result: RESULT });
  s.asked[0]!.answer({ ok: true, result: RESULT });
  expect(s.replies).toEqual([{ jsonrpc: '2.0', id: 'q1', result: { action: 'accept', content: {} } }]);
});

it('waits for the last of several answers', () => {
  const s = stage();
  s.ask('q1');
  s.ask('q2', 'sampling/createMessage');
  s.asked[0]!.answer({ ok: true, result: RESULT });
  expect(isPatient(s.request)).toBe(true);
  s.asked[1]!.answer({ ok: false, error: Buffer.from('{"code":-1,"message":"no"}') });
  expect(isPatient(s.request)).toBe(false);
  expect(s.replies).toMatchObject([{ id: 'q1' }, { id: 'q2', error: { code: -1 } }]);
});

it('is as patient as before when the server withdraws its question, and the caller hears of that', () => {
  const s = stage();
  s.ask('q1');
  expect(isPatient(s.request)).toBe(true);
  s.say({ method: 'notifications/cancelled', params: { requestId: 'q1' } });
  expect([isPatient(s.request), s.withdrawn]).toEqual([false, ['elicitation/create']]);
  s.asked[0]!.answer({ ok: true, result: RESULT });
  expect(s.replies).toEqual([]); // nobody waits for it
});

it('withdraws what is open when the server is gone, and says nothing to where nobody is', () => {
  const s = stage();
  s.ask('q1');
  s.ask('q2');
  s.session.close();
  for (const { answer } of s.asked) answer({ ok: true, result: RESULT });
  expect([s.withdrawn.length, s.replies]).toEqual([2, []]);
});

it('answers for a caller that cannot, and the call is no more patient for it', () => {
  const s = stage({ canAnswer: false });
  s.ask('q1');
  s.ask('q2', 'sampling/createMessage');
  expect(s.replies).toMatchObject([{ result: { action: 'cancel' } }, { error: { code: -1 } }]);
  s.lane.progress(s.request.id, { progress: 1 });
  expect(isPatient(s.request)).toBe(false);
});
