// Whose question it is when a server asks: known by its stream, or because nobody else can have caused it; never a guess
// between two principals, and no host is asked what another host's call may have caused.

import { expect, it } from 'vitest';
import type { Call, Outcome } from '../../src/calls/call.ts';
import { createLane } from '../../src/calls/lane.ts';
import type { InFlight } from '../../src/calls/request.ts';
import { createRequests } from '../../src/calls/requests.ts';
import { attribute, createAttribution, type Found } from '../../src/servers/attribution.ts';
import type { Member } from '../../src/servers/member.ts';
import { realWorld } from '../../src/world/world.ts';

const SETTINGS = { timeoutMs: 5_000, maxTimeoutMs: 10_000, maxInFlight: 10, maxQueued: 10, holdMs: 1_000 };
const RESULT = Buffer.from('{}');

function stage(share: 'principal' | 'all' = 'all') {
  const written: string[] = [];
  const lane = createLane({
    server: 'alpha',
    settings: SETTINGS,
    requests: createRequests({
      driver: 'table',
      world: realWorld,
      onCrash: (error) => expect.unreachable(String(error)),
    }),
    refusalOf: () => undefined,
    onWanted: () => {},
    onSettled: ({ call }, outcome) => call.settle(outcome),
  });
  lane.attach({ write: (_frame, _id, { name }) => written.push(name), cancel: () => {}, hasRoom: () => true });
  lane.setGate({ mode: 'open', state: 'ready', why: '' });
  const member = { lane, server: 'alpha', onBehalfOf: '_', config: { settings: { share } } } as Member;
  const outcomes: Outcome[] = [];
  const call = (principal: string, more: Partial<Call> = {}): InFlight =>
    lane.submit({
      ...{ requestId: 'r', server: 'alpha', method: 'tools/call', name: principal, params: RESULT },
      ...{ principal, door: 'http', settle: (outcome: Outcome) => outcomes.push(outcome), ...more },
    }) as InFlight;
  const end = ({ id }: InFlight) => lane.answer(id, 'result', RESULT);
  const { settle } = createAttribution();
  const ask = () => {
    const heard: (Found | undefined)[] = [];
    return { heard, withdraw: settle(member, undefined, (found) => heard.push(found)) };
  };
  return { lane, member, written, outcomes, call, end, ask, settle };
}
const isPatient = ({ deadline, latestDeadline }: InFlight) => deadline === latestDeadline;
const theOne = (request: InFlight) => ({ isOne: true, principal: request.call.principal, requests: [request] });

it('goes by the stream: to that call among many, and to nobody once that call is over', () => {
  const s = stage();
  const [ann, ben] = [s.call('ann'), s.call('ben')];
  expect(attribute(s.member, ben.id)).toEqual(theOne(ben));
  s.end(ben);
  expect(attribute(s.member, ben.id)).toBe('nobody');
  expect(attribute(s.member, undefined)).toEqual(theOne(ann));
});

it('counts only calls that may ask: no completion, no request of our own', () => {
  const s = stage();
  const ann = s.call('ann');
  s.call('ben', { method: 'completion/complete' });
  s.lane.ask({ ...ann.call, door: 'troupe', method: 'tools/list' });
  expect(attribute(s.member, undefined)).toEqual(theOne(ann));
});

it('takes the oldest call without an open question when all are of one session, whose host is right for each', () => {
  const s = stage();
  const [first, second] = [s.call('ann', { holder: 's1' }), s.call('ann', { holder: 's1' })];
  expect(attribute(s.member, undefined)).toEqual(theOne(first));
  s.lane.suspend(first);
  expect(attribute(s.member, undefined)).toEqual(theOne(second));
});

it('asks the principal and no host when several sessions of one may be meant, or none is known', () => {
  const s = stage();
  const both = [s.call('ann', { holder: 's1' }), s.call('ann', { holder: 's2' })];
  expect(attribute(s.member, undefined)).toEqual({ isOne: false, principal: 'ann', requests: both });
  const t = stage();
  const plain = [t.call('ann'), t.call('ann')];
  expect(attribute(t.member, undefined)).toEqual({ isOne: false, principal: 'ann', requests: plain });
});

it('without a call asks whom the process works for, and nobody where it works for all', () => {
  expect(attribute(stage('principal').member, undefined)).toEqual({ isOne: false, principal: '_', requests: [] });
  expect(attribute(stage('all').member, undefined)).toBe('nobody');
});

it('waits between principals until it can be known, sends no further call that may ask, and is patient meanwhile', () => {
  const s = stage();
  const [ann, ben] = [s.call('ann'), s.call('ben')];
  const { heard } = s.ask();
  s.call('cat');
  s.call('dan', { method: 'completion/complete' });
  expect([heard, s.written]).toEqual([[], ['ann', 'ben', 'dan']]);
  expect([ann, ben].map(isPatient)).toEqual([true, true]);
  s.end(ann);
  expect(heard).toEqual([theOne(ben)]);
  expect([isPatient(ben), s.written.at(-1)]).toEqual([false, 'cat']);
  s.end(ben);
  expect(heard).toHaveLength(1);
});

it('is held by whoever was found before it is let go by us: no deadline passes in between', () => {
  const s = stage();
  const [ann, ben] = [s.call('ann'), s.call('ben')];
  s.settle(s.member, undefined, (found) => found && s.lane.suspend(found.requests[0]!));
  s.end(ann);
  expect(isPatient(ben)).toBe(true);
});

it('refuses the newest question when each call may be waiting for one, and knows the other’s when that call has ended', () => {
  const s = stage();
  const [ann, ben] = [s.call('ann'), s.call('ben')];
  const [one, two] = [s.ask(), s.ask()];
  expect([one.heard, two.heard]).toEqual([[], [undefined]]);
  s.end(ben);
  expect(one.heard).toEqual([theOne(ann)]);
});

it('refuses one when the only call that did not wait has ended', () => {
  const s = stage();
  const [ann, , cat] = [s.call('ann'), s.call('ben'), s.call('cat')];
  const [one, two] = [s.ask(), s.ask()];
  expect([one.heard, two.heard]).toEqual([[], []]);
  s.end(cat);
  expect([one.heard, two.heard]).toEqual([[], [undefined]]);
  s.end(ann);
  expect(one.heard).toMatchObject([{ principal: 'ben' }]);
});

it('forgets a question that is withdrawn, and is as it was', () => {
  const s = stage();
  const [ann, ben] = [s.call('ann'), s.call('ben')];
  const { heard, withdraw } = s.ask();
  s.call('cat');
  withdraw();
  expect([s.written, isPatient(ann), isPatient(ben)]).toEqual([['ann', 'ben', 'cat'], false, false]);
  s.end(ann);
  s.end(ben);
  expect(heard).toEqual([]);
});

it('does not take the only call for the one while a stranger’s given-up call may still be asking', () => {
  const s = stage();
  s.lane.cancel(s.call('ann', { holder: 's1' }), 'enough');
  expect(attribute(s.member, undefined)).toBe('nobody');
  const ben = s.call('ben', { holder: 's2' });
  expect(attribute(s.member, undefined)).toBe('nobody');
  s.end(ben);
  const own = s.call('ann', { holder: 's3' });
  expect(attribute(s.member, undefined)).toEqual(theOne(own)); // the same person, whichever of her hosts it is
});

it('knows again when the server has answered the given-up call after all, or is another process', () => {
  const s = stage();
  const ann = s.call('ann');
  s.lane.cancel(ann, 'enough');
  const ben = s.call('ben');
  s.end(ann);
  expect(attribute(s.member, undefined)).toEqual(theOne(ben));
  s.lane.cancel(ben, 'enough');
  s.lane.attach({ write: () => {}, cancel: () => {}, hasRoom: () => true });
  const cat = s.call('cat');
  expect(attribute(s.member, undefined)).toEqual(theOne(cat));
});

it('guesses nothing when an undecided question’s other caller gives up', () => {
  const s = stage();
  const [ann, ben] = [s.call('ann'), s.call('ben')];
  const { heard } = s.ask();
  s.lane.cancel(ann, 'enough');
  expect(heard).toEqual([undefined]); // it may have been hers
  expect(isPatient(ben)).toBe(false);
});

it('looks a few times at each call that ends, however many questions are undecided', () => {
  const s = stage();
  s.lane.retune({ ...SETTINGS, maxInFlight: 400 });
  const calls = Array.from({ length: 400 }, (_, index) => s.call(index % 2 ? 'ann' : 'ben'));
  const questions = Array.from({ length: 360 }, s.ask);
  const asking = s.lane.asking.bind(s.lane);
  let looks = 0;
  Object.assign(s.lane, { asking: () => ++looks && asking() });
  calls.forEach(s.end);
  expect(questions.every(({ heard }) => heard.length === 1)).toBe(true);
  expect(looks).toBeLessThan(5 * calls.length);
  expect(s.lane.asking()).toEqual([]);
});
