// One call, whatever happens to it and in whatever order: its caller is answered exactly once (P1), it is written once (P3),
// and the answer says what is known of its fate (P4). The chart has no context, so the walk over its states and what was done
// on the way to them is complete: a state is met again with the same ledger, or the ledger is wrong.

import { expect, it } from 'vitest';
import { type RequestEffect, type RequestEvent, requestMachine } from '../../machines/request.ts';
import { everyStep, type Step, stateOf, statesOf } from '../support/paths.ts';

const states = requestMachine.config.states as Record<string, { on?: Record<string, unknown> }>;
const types = [...new Set(Object.values(states).flatMap(({ on = {} }) => Object.keys(on)))] as RequestEvent['type'][];
const steps = everyStep(
  requestMachine,
  undefined,
  types.map((type) => ({ type })),
).filter((step) => step.effects.length > 0 || step.to !== step.from);
const effectsOf = (step: Step) => step.effects.map(({ type }) => type as RequestEffect);
const isAnswer = (effect: string) => effect.startsWith('answer');

/** What stands open for a request: in a queue, at its server … Each is opened and closed by the effects named here. */
const ACCOUNTS: Record<string, { opens: RequestEffect[]; closes: RequestEffect[] }> = {
  parked: { opens: ['park'], closes: ['unpark'] },
  queued: { opens: ['enqueue', 'enqueueFirst'], closes: ['dequeue'] },
  reserving: { opens: ['reserve'], closes: ['unreserve'] },
  atServer: { opens: ['write', 'writeAgain'], closes: ['release'] },
  paused: { opens: ['pauseDeadline'], closes: ['restartDeadline'] },
  awaited: { opens: ['awaitList', 'askApproval', 'askVisits'], closes: ['withdraw'] },
};
/** These are the word that was awaited: there is nothing left to withdraw. */
const WORDS = ['denied', 'visited', 'unvisited'];

type Ledger = { open: string[]; answers: number; written: number; again: number; attempts: number };
const EMPTY: Ledger = { open: [], answers: 0, written: 0, again: 0, attempts: 0 };

function book(ledger: Ledger, step: Step): Ledger {
  const open = new Set(ledger.open);
  const next = { ...ledger };
  const where = `${stateOf(step.from)} + ${step.event.type}`;
  if (WORDS.includes(step.event.type)) open.delete('awaited');
  for (const effect of effectsOf(step)) {
    for (const [account, { opens, closes }] of Object.entries(ACCOUNTS)) {
      if (opens.includes(effect)) expect(open.has(account), `${where}: ${account} twice`).toBe(false);
      if (closes.includes(effect)) expect(open.has(account), `${where}: ${account} is not open`).toBe(true);
      if (opens.includes(effect)) open.add(account);
      if (closes.includes(effect)) open.delete(account);
    }
    if (effect === 'cancelUpstream') expect(open.has('atServer'), where).toBe(true);
    if (effect === 'write') next.written++;
    if (effect === 'writeAgain') next.again++;
    if (effect === 'recordAttempt') next.attempts++;
    if (isAnswer(effect)) next.answers++;
  }
  return { ...next, open: [...open].sort() };
}

/** Every state with every ledger that a path to it can have. */
function everyLedger(): { state: string; isFinal: boolean; ledger: Ledger; step: Step | undefined; before: Ledger }[] {
  const found = new Map([
    [
      'arrived',
      { state: 'arrived', isFinal: false, ledger: EMPTY, step: undefined as Step | undefined, before: EMPTY },
    ],
  ]);
  for (const { state, ledger } of found.values())
    for (const step of steps.filter(({ from }) => stateOf(from) === state)) {
      const next = {
        state: stateOf(step.to),
        isFinal: step.to.status === 'done',
        ledger: book(ledger, step),
        step,
        before: ledger,
      };
      const key = `${next.state} ${JSON.stringify(next.ledger)} ${next.isFinal ? `${state} ${step.event.type}` : ''}`;
      if (!found.has(key)) found.set(key, next);
      expect(found.size, 'the ledgers do not close').toBeLessThan(1_000);
    }
  return [...found.values()];
}
const visited = everyLedger();
const ended = visited.filter(({ isFinal }) => isFinal);

it('visits every state', () => {
  expect(statesOf(steps)).toEqual(Object.keys(states).sort());
  expect([...new Set(visited.map(({ state }) => state))].sort()).toEqual(Object.keys(states).sort());
});

it('P1: answers exactly once, on the step that ends it, and leaves nothing behind', () => {
  for (const { state, isFinal, ledger } of visited) expect([state, ledger.answers]).toEqual([state, isFinal ? 1 : 0]);
  // Its pause ends with it.
  for (const { ledger } of ended) expect(ledger.open.filter((account) => account !== 'paused')).toEqual([]);
});

it('P3: is written once on every path, and once more only after its server itself has sent it back', () => {
  for (const { state, ledger } of visited) {
    expect([state, ledger.written <= 1, ledger.again <= 1]).toEqual([state, true, true]);
    if (ledger.again > 0) expect([ledger.written, ledger.attempts]).toEqual([1, 1]);
  }
  const writes = steps.filter((step) =>
    effectsOf(step).some((effect) => effect === 'write' || effect === 'writeAgain'),
  );
  expect(new Set(writes.map(({ event }) => event.type))).toEqual(new Set(['dispatch']));
  const sentBack = steps.filter((step) => effectsOf(step).includes('recordAttempt'));
  expect(sentBack.map(({ from, event }) => `${stateOf(from)} ${event.type}`)).toEqual(['sent required']);
});

it('P4: tells the caller what is known of its fate: not sent, sent with an unknown outcome, or the server’s own word', () => {
  const fates = ended.map(({ step, before, state }) => {
    const fate = before.written === 0 ? 'unsent' : before.open.includes('atServer') ? 'at the server' : 'sent back';
    return `${fate}, ${step?.event.type}: ${state} ${effectsOf(step as Step).find(isAnswer)}`;
  });
  expect([...new Set(fates)].sort()).toEqual([
    'at the server, cancel: cancelled answerCancelled',
    'at the server, deadline: timedOut answerTimeout',
    'at the server, error: rejected answerError',
    'at the server, gone: lost answerLost',
    'at the server, result: answered answerResult',
    'sent back, cancel: cancelled answerCancelledRejected',
    'sent back, deadline: rejected answerSentBack',
    'sent back, gone: rejected answerSentBack',
    'sent back, left: cancelled answerCancelledRejected',
    'sent back, refuse: rejected answerSentBack',
    'sent back, unvisited: rejected answerSentBack',
    'unsent, cancel: cancelled answerCancelledUnsent',
    'unsent, deadline: timedOut answerTimeoutUnsent',
    'unsent, denied: refused answerRefused',
    'unsent, gone: refused answerUnsent',
    'unsent, left: cancelled answerCancelledUnsent',
    'unsent, refuse: refused answerRefused',
    'unsent, withheld: cancelled answerCancelledUnsent',
  ]);
});

it('can be cancelled, run out of time and lose its server wherever it is', () => {
  for (const [state, { on = {} }] of Object.entries(states))
    if (visited.some((each) => each.state === state && !each.isFinal))
      expect(Object.keys(on), state).toEqual(expect.arrayContaining(['cancel', 'deadline', 'gone']));
});

it('its deadline rests exactly while somebody is asked, and counts again before it goes on', () => {
  for (const { state, isFinal, ledger } of visited)
    if (!isFinal)
      expect([state, ledger.open.includes('paused')]).toEqual([
        state,
        ['approving', 'returning', 'visiting'].includes(state),
      ]);
});

it('is where its state says', () => {
  const inState = (account: string) =>
    [
      ...new Set(
        visited.flatMap(({ state, ledger, isFinal }) => (!isFinal && ledger.open.includes(account) ? [state] : [])),
      ),
    ].sort();
  expect(Object.fromEntries(Object.keys(ACCOUNTS).map((account) => [account, inState(account)]))).toEqual({
    parked: ['approving', 'considered', 'returning', 'visiting'],
    queued: ['queued', 'requeued', 'reserved'],
    reserving: ['reserving'],
    atServer: ['resent', 'sent', 'unheard'],
    paused: ['approving', 'returning', 'visiting'],
    awaited: ['approving', 'considered', 'visiting'],
  });
});

it('nothing is begun for nobody: whoever leaves takes along what was not sent, and nobody is asked about what was', () => {
  const left = steps.filter(({ event }) => event.type === 'left');
  const open = [...new Set(visited.filter(({ isFinal }) => !isFinal).map(({ state }) => state))];
  expect([...left.map(({ from }) => stateOf(from)), 'unheard'].sort()).toEqual(open.sort());
  for (const step of left)
    expect(stateOf(step.to)).toBe(['sent', 'resent'].includes(stateOf(step.from)) ? 'unheard' : 'cancelled');
  expect(Object.keys(states.unheard?.on ?? {})).not.toContain('required');
  // What was approved while its caller was away is begun when the caller is back, and by nothing else.
  const ways = steps.filter(({ from, to }) => stateOf(from) === 'returning' && to.status !== 'done');
  expect(ways.map(({ event, to }) => `${event.type}: ${stateOf(to)}`)).toEqual(['back: admitted']);
});

it('tells the server when nobody waits any more, before the caller hears of it', () => {
  for (const state of ['sent', 'resent', 'unheard']) {
    const said = (event: string) => effectsOf(steps.find((s) => stateOf(s.from) === state && s.event.type === event)!);
    expect(said('cancel')).toEqual(['cancelUpstream', 'release', 'answerCancelled']);
    expect(said('deadline')).toEqual(['cancelUpstream', 'release', 'answerTimeout']);
  }
});

it('gives more time and passes progress on, as often as it comes, while it is at the server', () => {
  const progressed = steps.filter(({ event }) => event.type === 'progress');
  expect(progressed.map(({ from, to }) => [stateOf(from), stateOf(to)])).toEqual([
    ['sent', 'sent'],
    ['unheard', 'unheard'],
    ['resent', 'resent'],
  ]);
  for (const step of progressed) expect(effectsOf(step)).toEqual(['extend', 'relay']);
});

it('leads on at once only with the last effect of a step, so that no effect follows one that came later', () => {
  const LEADING: RequestEffect[] = ['admit', 'readmit', 'retry', 'awaitList', 'askApproval', 'askVisits', 'reserve'];
  for (const step of steps)
    expect(
      effectsOf(step)
        .slice(0, -1)
        .filter((effect) => LEADING.includes(effect)),
    ).toEqual([]);
  const goesOn = (state: string) =>
    steps.filter(({ to }) => stateOf(to) === state).map((step) => effectsOf(step).at(-1));
  expect(new Set(goesOn('admitted'))).toEqual(new Set(['admit', 'readmit', 'dequeue']));
  expect(new Set(goesOn('returned'))).toEqual(new Set(['retry', 'dequeue']));
});
