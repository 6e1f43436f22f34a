// The machines of asks: the ladder of those who are asked, one answer that counts, and an end for every question. Each walk is
// compared with a table of what the chart orders on every step; at the end each chart is crippled in every way, and must fail.

import { isDeepStrictEqual } from 'node:util';
import { describe, expect, it } from 'vitest';
import {
  type AnyStateMachine,
  createActor,
  fromCallback,
  fromPromise,
  initialTransition,
  SimulatedClock,
} from 'xstate';
import { approvalMachine } from '../../machines/approval.ts';
import { elicitationMachine } from '../../machines/elicitation.ts';
import { type AskSpec, ask, type Given } from '../../machines/ladder.ts';
import { samplingMachine } from '../../machines/sampling.ts';
import { mutantsOf } from '../support/mutants.ts';
import { everyStep, plain, type Step, stateOf, timers } from '../support/paths.ts';

const times = { recordMs: 1_000, patienceMs: 2_000, noticeMs: 1_500, expiryMs: 10_000 };
const bytes = (text: string) => new TextEncoder().encode(text);
const host = { said: {}, complete: () => {} };

// ── What is tried in every state ─────────────────────────────────────────────

const LADDER = [
  { type: 'recorded' },
  { type: 'host.passed' },
  { type: 'host.answered', answer: host },
  { type: 'host.unfit', problem: 'age: is required' },
  { type: 'bus.passed' },
  { type: 'rule.passed' },
  { type: 'completed', params: bytes('{}') },
  { type: 'withdrawn' },
] as const;
const reply = (type: 'accepted' | 'declined' | 'cancelled', stage: string, given: Partial<Given> = {}) => ({
  type,
  stage,
  given: { by: `${type} ${stage}`, ...given },
});
const repliesTo = (...stages: string[]) =>
  stages.flatMap((stage) => [reply('accepted', stage), reply('declined', stage), reply('cancelled', stage)]);

// ── How a walk is read ───────────────────────────────────────────────────────

/** What the chart orders in one step, ports that begin and end included. */
const orders = ({ effects }: Step): string[] =>
  effects.flatMap(({ type, params }) => {
    if (type === 'xstate.spawnChild') return params.actorRef ? `+${params.src}` : `${params.src} is not declared`;
    if (type === 'xstate.stopChild') return `-${params.id}`;
    if (type.startsWith('xstate.')) return [];
    return type === 'conclude' ? `${type} ${params}` : type;
  });
const labelOf = ({ event }: Step): string => {
  if (!('stage' in event)) return plain(event.type);
  return `${event.type} ${event.stage}${event.given.isWord ? ' (a word)' : ''}`;
};
type Region = 'ladder' | 'host' | 'bus' | 'caller';
const regionOf = ({ value }: any, region: Region): string => {
  const open = value.open?.asking ?? (value.open?.consented ? 'consented' : value.open);
  return open?.[region] ?? (typeof open === 'string' ? open : stateOf({ value }));
};
const OF_HOST = new Set(['+host', '-host', 'judgeHost', 'cancelForHost']);
const OF_BUS = new Set(['+bus', '-bus']);
const OF_CALLER = new Set(['announce']);
const isOf: Record<Region, (order: string) => boolean> = {
  ladder: (order) => !OF_HOST.has(order) && !OF_BUS.has(order) && !OF_CALLER.has(order),
  host: (order) => OF_HOST.has(order),
  bus: (order) => OF_BUS.has(order),
  caller: (order) => OF_CALLER.has(order),
};

/** `event: state: orders` for each state of a region; what neither moves nor orders anything is left out. */
function table(steps: readonly Step[], region: Region): Record<string, Record<string, string>> {
  const found: Record<string, Record<string, Set<string>>> = {};
  for (const step of steps) {
    const [from, to] = [regionOf(step.from, region), regionOf(step.to, region)];
    const ordered = orders(step).filter(isOf[region]);
    found[from] ??= {};
    if (from === to && ordered.length === 0) continue;
    found[from][labelOf(step)] ??= new Set();
    found[from][labelOf(step)]?.add([from === to ? 'stays' : to, ...ordered].join(', '));
  }
  return Object.fromEntries(
    Object.entries(found).map(([state, row]) => [
      state,
      Object.fromEntries(Object.entries(row).map(([event, all]) => [event, [...all].sort().join(' | ')])),
    ]),
  );
}

/** What each state shows: who is waited for, and what for. */
const SHOWN: Record<string, readonly [waitsOn: string, stage: string | undefined]> = {
  opening: ['host', 'answer'],
  host: ['host', 'answer'],
  bus: ['bus', 'answer'],
  rule: ['rule', 'answer'],
  inbox: ['inbox', 'answer'],
  reviewing: ['inbox', 'request'],
  generating: ['model', 'answer'],
  checking: ['inbox', 'result'],
  delivering: ['model', 'answer'],
  consented: ['inbox', 'done'],
  visiting: ['inbox', undefined],
};

/** What was found, and what it should be. */
type Claim = readonly [found: unknown, expected: unknown];
type Claims = Generator<Claim, void>;

/** The steps that do not keep to a rule, so that one `expect` is enough for thousands of them. */
const breaking = (steps: readonly Step[], isKept: (step: Step) => boolean): string[] =>
  steps.filter((step) => !isKept(step)).map((step) => `${stateOf(step.from)}: ${labelOf(step)}`);

function* checkContext(steps: readonly Step[]): Claims {
  const showsTheState = ({ to }: Step): boolean => {
    const [waitsOn, stage] = SHOWN[regionOf(to, 'ladder')] ?? [];
    return to.status !== 'active' || (to.context.waitsOn === waitsOn && to.context.stage === stage);
  };
  const takesTheAnswer = ({ from, event, to }: Step): boolean => {
    const isTaken = 'given' in event && event.stage === from.context.stage && regionOf(to, 'ladder') !== 'generating';
    return to.context.given === (isTaken ? event.given : from.context.given);
  };
  const endsOnce = (step: Step): boolean => {
    const ends = orders(step).filter((order) => /^(conclude|forget)/.test(order));
    return ends.length === (step.to.status === 'done' ? 1 : 0);
  };
  const stopsItsPorts = (step: Step): boolean =>
    step.to.status !== 'done' || Object.keys(step.from.children).every((port) => orders(step).includes(`-${port}`));
  yield [breaking(steps, showsTheState), []];
  yield [breaking(steps, takesTheAnswer), []];
  yield [breaking(steps, endsOnce), []];
  yield [breaking(steps, stopsItsPorts), []];
}

/** What ports and effects are given is what the event brought. */
function* checkInputs(steps: readonly Step[]): Claims {
  const isPassedOn = ({ to, event, effects }: Step): boolean =>
    effects.every(({ type, params }) => {
      if (type === 'judgeHost') return params === host;
      if (type === 'tellHostDone') return params === event.params;
      if (type === 'reportModel') return params === event.error;
      if (type !== 'xstate.spawnChild') return true;
      const { ask: actor, problem, request } = params.input;
      const isRight = params.src === 'model' ? request === to.context.request : problem === event.problem;
      return isRight && actor !== undefined;
    });
  yield [breaking(steps, isPassedOn), []];
}

// ── The tables ───────────────────────────────────────────────────────────────

const RUNGS = {
  opening: { recorded: 'host, tellOpened, show', 'after record': 'host, tellOpened, show' },
  host: { 'host.passed': 'bus, show', 'after patience': 'bus, show' },
  bus: { 'bus.passed': 'rule, show, applyRule' },
  rule: { 'rule.passed': 'inbox, show' },
  inbox: {},
};
const rungs = (rows: Record<string, object>, everywhere: object): Record<string, object> =>
  Object.fromEntries(Object.entries(rows).map(([state, row]) => [state, { ...everywhere, ...row }]));
const ending = (event: string, outcome: string) => ({ [event]: `${outcome}, conclude ${outcome}` });

function* checkHostRegion(steps: readonly Step[]): Claims {
  const hosts = table(steps, 'host');
  const only = (state: string) =>
    Object.fromEntries(
      Object.entries(hosts[state] ?? {}).filter(([event]) => /^(recorded|host|after (r|p))/.test(event)),
    );
  yield [only('unasked'), { recorded: 'asked, +host', 'after record': 'asked, +host' }];
  yield [only('asked'), { 'host.passed': 'passed, -host', 'host.answered': 'heard, -host, judgeHost' }];
  yield [only('heard'), { 'host.passed': 'passed', 'host.unfit': 'askedAgain, +host' }];
  yield [
    only('askedAgain'),
    {
      'host.passed': 'passed, -host',
      'host.answered': 'heardAgain, -host, judgeHost',
    },
  ];
  yield [only('heardAgain'), { 'host.passed': 'passed', 'host.unfit': 'passed, cancelForHost' }];
  yield [only('passed'), {}];
  const services = table(steps, 'bus');
  const began = Object.entries(services.unasked ?? {}).filter(([, to]) => to.includes('bus'));
  yield [Object.fromEntries(began), { 'host.passed': 'asked, +bus', 'after patience': 'asked, +bus' }];
  yield [Object.entries(services.asked ?? {}).filter(([, to]) => !to.endsWith('-bus')), []];
}

/** Whoever waits is told when only a person is left, or after a while, and again and again from then on. */
function* checkCallerRegion(steps: readonly Step[]): Claims {
  const callers = table(steps, 'caller');
  const telling = (state: string) =>
    Object.fromEntries(Object.entries(callers[state] ?? {}).filter(([, to]) => to.includes('announce')));
  const { 'after notice': later, ...sooner } = telling('untold');
  yield [later, 'told, announce'];
  const isTold = (step: Step): boolean =>
    regionOf(step.from, 'caller') !== 'untold' ||
    !['inbox', 'reviewing'].includes(regionOf(step.to, 'ladder')) ||
    regionOf(step.to, 'caller') === 'told';
  yield [breaking(steps, isTold), []];
  yield [
    Object.keys(sooner).filter(
      (event) => !['rule.passed', 'model fails', 'model.unfit', 'accepted answer'].includes(event),
    ),
    [],
  ];
  const { 'accepted answer': _consented, ...again } = telling('told');
  yield [again, { 'after notice': 'stays, announce' }];
  for (const step of steps) if (orders(step).includes('announce')) yield [timers(step)['after notice'], times.noticeMs];
}

function* checkBeginning(machine: AnyStateMachine): Claims {
  const [, effects] = initialTransition(machine, times) as unknown as [unknown, Step['effects']];
  const first = { effects } as Step;
  yield [orders(first), ['record']];
  yield [timers(first), { 'after record': 1_000, 'after notice': 1_500, 'after expiry': 10_000 }];
}

function* checkTimers(steps: readonly Step[]): Claims {
  for (const step of steps) {
    const isEntered = regionOf(step.from, 'ladder') === 'opening' && regionOf(step.to, 'ladder') === 'host';
    if (isEntered) yield [timers(step), { 'after patience': 2_000 }];
  }
}

function* walk(machine: AnyStateMachine, spec: Partial<AskSpec>, samples: readonly any[]): Generator<Claim, Step[]> {
  yield* checkBeginning(machine);
  const steps = everyStep(machine, { ...times, ...spec }, [...LADDER, ...samples]);
  yield* checkContext(steps);
  yield* checkInputs(steps);
  yield* checkHostRegion(steps);
  yield* checkCallerRegion(steps);
  yield* checkTimers(steps);
  return steps;
}

// ── Each kind ────────────────────────────────────────────────────────────────

const STALE = 'stays, reopen';

function* checkApproval(machine: AnyStateMachine): Claims {
  const open = {
    ...ending('accepted answer', 'approved'),
    ...ending('declined answer', 'denied'),
    ...ending('cancelled answer', 'denied'),
    ...ending('withdrawn', 'withdrawn'),
    ...ending('after expiry', 'expired'),
    'accepted done': STALE,
    'declined done': STALE,
    'cancelled done': STALE,
  };
  const steps = yield* walk(machine, {}, repliesTo('answer', 'done'));
  yield [table(steps, 'ladder'), rungs(RUNGS, open)];
}

const STALE_DONE = { 'accepted done': STALE, 'declined done': STALE, 'cancelled done': STALE };
const OPEN_ELICITATION = {
  ...ending('declined answer', 'declined'),
  ...ending('cancelled answer', 'cancelled'),
  ...ending('withdrawn', 'withdrawn'),
  ...ending('after expiry', 'expired'),
  completed: 'completed, tellHostDone, conclude completed',
  ...STALE_DONE,
};

function* checkForm(machine: AnyStateMachine): Claims {
  const steps = yield* walk(machine, {}, repliesTo('answer', 'done'));
  const open = { ...OPEN_ELICITATION, ...ending('accepted answer', 'accepted') };
  yield [table(steps, 'ladder'), rungs(RUNGS, open)];
}

function* checkAddress(machine: AnyStateMachine): Claims {
  const steps = yield* walk(machine, { isUrl: true, isRequired: false }, repliesTo('answer', 'done'));
  const open = { ...OPEN_ELICITATION, 'accepted answer': 'visiting, consent' };
  yield [
    table(steps, 'ladder'),
    {
      ...rungs(RUNGS, open),
      visiting: {
        completed: 'visited, tellHostDone, forget',
        withdrawn: 'visited, forget',
        'after expiry': 'visited, forget',
        'declined answer': STALE,
        'declined done': STALE,
        'cancelled answer': STALE,
        'cancelled done': STALE,
      },
    },
  ];
}

function* checkRequiredAddress(machine: AnyStateMachine): Claims {
  const steps = yield* walk(machine, { isUrl: true, isRequired: true }, repliesTo('answer', 'done'));
  const open = { ...OPEN_ELICITATION, 'accepted answer': 'consented, reopen' };
  const callers = table(steps, 'caller');
  for (const state of ['untold', 'told']) yield [callers[state]?.['accepted answer'], 'consented, announce'];
  yield [callers.consented?.['after notice'], 'stays, announce'];
  yield [
    table(steps, 'ladder'),
    {
      ...rungs(RUNGS, open),
      consented: {
        ...OPEN_ELICITATION,
        ...ending('accepted done', 'completed'),
        ...ending('declined done', 'declined'),
        ...ending('cancelled done', 'cancelled'),
        'accepted answer': STALE,
        'declined answer': STALE,
        'cancelled answer': STALE,
      },
    },
  ];
}

const EDITED = bytes('{"messages":[]}');
const SPOKEN = bytes('{"role":"assistant"}');
const OF_SAMPLING = [
  ...repliesTo('answer', 'request', 'result'),
  reply('accepted', 'request', { isWord: true, content: EDITED }),
  reply('accepted', 'result', { isWord: true }),
  { type: 'model.unfit' },
  { type: 'xstate.done.actor.model', output: SPOKEN },
];

/** A state in which `stage` is wanted: replies to it end the question, those to other stages give the row back. */
function wanting(stage: string): Record<string, string> {
  const row: Record<string, string> = { ...ending('withdrawn', 'withdrawn'), ...ending('after expiry', 'expired') };
  for (const each of ['answer', 'request', 'result']) {
    const isWanted = each === stage;
    const words = each === 'answer' ? [''] : ['', ' (a word)'];
    for (const word of words) row[`accepted ${each}${word}`] = isWanted ? 'answered, conclude answered' : STALE;
    for (const no of ['declined', 'cancelled']) row[`${no} ${each}`] = isWanted ? 'rejected, conclude rejected' : STALE;
  }
  return row;
}

function* checkSamplingWithoutModel(machine: AnyStateMachine): Claims {
  for (const isTrusted of [true, false])
    yield [
      table(yield* walk(machine, { hasModel: false, isTrusted }, OF_SAMPLING), 'ladder'),
      rungs(RUNGS, wanting('answer')),
    ];
}

function* checkReviewedSampling(machine: AnyStateMachine): Claims {
  const steps = yield* walk(machine, { hasModel: true, isTrusted: false, request: bytes('{}') }, OF_SAMPLING);
  yield [
    table(steps, 'ladder'),
    {
      ...rungs({ ...RUNGS, rule: { 'rule.passed': 'reviewing, show' } }, wanting('answer')),
      reviewing: { ...wanting('request'), 'accepted request (a word)': 'generating, reopen, +model' },
      generating: {
        ...stopping('model', wanting('answer')),
        'model done': 'checking, -model, show',
        'model fails': 'inbox, -model, reportModel, show',
      },
      checking: wanting('result'),
    },
  ];
  const edits = ({ from, to, event }: Step): boolean => {
    const isEdited = regionOf(from, 'ladder') === 'reviewing' && regionOf(to, 'ladder') === 'generating';
    return to.context.request === (isEdited ? event.given.content : from.context.request);
  };
  yield [breaking(steps, edits), []];
  yield [breaking(steps, keepsResult), []];
}

const keepsResult = ({ from, event, to }: Step): boolean => {
  const isNew = event.type.startsWith('xstate.done') && regionOf(from, 'ladder') === 'generating';
  return to.context.result === (isNew ? SPOKEN : from.context.result);
};

function* checkTrustedSampling(machine: AnyStateMachine): Claims {
  const steps = yield* walk(machine, { hasModel: true, isTrusted: true, request: bytes('{}') }, OF_SAMPLING);
  yield [
    table(steps, 'ladder'),
    {
      ...rungs({ ...RUNGS, rule: { 'rule.passed': 'generating, show, +model' } }, wanting('answer')),
      generating: {
        ...stopping('model', wanting('answer')),
        'model done': 'delivering, -model, deliver',
        'model fails': 'inbox, -model, reportModel, show',
      },
      delivering: { ...wanting('answer'), 'model.unfit': 'inbox, show' },
    },
  ];
  yield [breaking(steps, keepsResult), []];
}

/** A port of the ladder is stopped when its state is left. */
const stopping = (port: string, row: Record<string, string>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(row).map(([event, to]) => [event, to.startsWith('stays') ? to : to.replace(', ', `, -${port}, `)]),
  );

/** First the table in which most is at stake. */
const ALL = {
  approval: [approvalMachine, [checkApproval]],
  elicitation: [elicitationMachine, [checkRequiredAddress, checkAddress, checkForm]],
  sampling: [samplingMachine, [checkReviewedSampling, checkTrustedSampling, checkSamplingWithoutModel]],
} as const satisfies Record<string, readonly [AnyStateMachine, readonly ((machine: AnyStateMachine) => Claims)[]]>;

describe('in every reachable configuration', () => {
  it.each([
    ['an approval does as its table says: everything but a yes is a no', approvalMachine, checkApproval],
    ['a form does as its table says', elicitationMachine, checkForm],
    ['an address is answered with the consent, and forgotten when it is done with', elicitationMachine, checkAddress],
    [
      'an address that a call waits for stays open until it is said to be done',
      elicitationMachine,
      checkRequiredAddress,
    ],
    ['sampling without a model of ours waits for a person', samplingMachine, checkSamplingWithoutModel],
    ['sampling is seen before a model hears it and before the server does', samplingMachine, checkReviewedSampling],
    ['sampling of a trusted server is seen by nobody, unless the model fails', samplingMachine, checkTrustedSampling],
  ] as const)('%s', (_, machine, check) => {
    for (const [found, expected] of check(machine)) expect(found).toEqual(expected);
  });
});

describe('nothing can be left out: without any one action, guard, port or reaction a table is wrong', () => {
  // What all three share is crippled once, in the smallest of them.
  const SHARED = /states\.(ladder\.states\.(opening|host|bus|inbox)|host|bus|caller)$/;
  const isWrong = (check: (machine: AnyStateMachine) => Claims, machine: AnyStateMachine): boolean => {
    for (const [found, expected] of check(machine)) if (!isDeepStrictEqual(found, expected)) return true;
    return false;
  };
  it.each(Object.entries(ALL))('%s', (name, [machine, checks]) => {
    const mutants = mutantsOf(machine, name === 'approval' ? /(?!)/ : SHARED);
    expect(mutants.length).toBeGreaterThan(20);
    expect(checks.some((check) => isWrong(check, machine))).toBe(false);
    const unnoticed = mutants.filter(({ config }) => {
      const crippled = ask.createMachine(config) as AnyStateMachine;
      return !checks.some((check) => isWrong(check, crippled));
    });
    expect(unnoticed.map(({ without }) => without)).toEqual([]);
  });
});

describe('time', () => {
  const story = () => {
    const clock = new SimulatedClock();
    const outcomes: string[] = [];
    const machine = elicitationMachine.provide({
      actions: { conclude: (_: unknown, outcome: string) => void outcomes.push(outcome) },
      actors: {
        host: fromCallback(() => {}),
        bus: fromCallback(() => {}),
        model: fromPromise(async (): Promise<Uint8Array> => bytes('')),
      },
    });
    const actor = createActor(machine, { input: { ...times, isUrl: true, isRequired: true }, clock }).start();
    return { actor, clock, outcomes, state: () => regionOf(actor.getSnapshot(), 'ladder') };
  };

  it('does not wait for a slow disk for ever', () => {
    const { clock, state } = story();
    clock.increment(999);
    expect(state()).toBe('opening');
    clock.increment(1);
    expect(state()).toBe('host');
  });

  it('moves the ladder on when a host does not answer, without forgetting the host', () => {
    const { actor, clock, state } = story();
    actor.send({ type: 'recorded' });
    clock.increment(1_999);
    expect(state()).toBe('host');
    clock.increment(1);
    expect([state(), regionOf(actor.getSnapshot(), 'host')]).toEqual(['bus', 'asked']);
    actor.send({ type: 'declined', stage: 'answer', given: { by: 'the host' } });
    expect(state()).toBe('declined');
  });

  it('ends every question, also one that never came as far as the disk', () => {
    const { clock, outcomes, state } = story();
    clock.increment(10_000);
    expect([state(), outcomes]).toEqual(['expired', ['expired']]);
  });

  it('is not given twice to whoever has agreed', () => {
    const { actor, clock, outcomes, state } = story();
    actor.send({ type: 'recorded' });
    clock.increment(9_000);
    actor.send({ type: 'accepted', stage: 'answer', given: { by: 'somebody' } });
    expect(state()).toBe('consented');
    clock.increment(1_000);
    expect([state(), outcomes]).toEqual(['expired', ['expired']]);
  });
});
