// What all questions have in common: who is asked, one after the other, and which answer stands. The host whose call caused the
// question is asked first, then services on the bus, then the rules of the configuration. Nobody is un-asked when the next one
// is; the inbox shows the question all the while.

import { assign, fromCallback, fromPromise, raise, setup } from 'xstate';

// ── Types ────────────────────────────────────────────────────────────────────

/**
 * What is wanted of the inbox: an answer; a word on a model's request or on its result; or the word that what was to be done
 * at an address is done.
 */
export type Stage = 'answer' | 'request' | 'result' | 'done';
export type WaitsOn = 'host' | 'bus' | 'rule' | 'model' | 'inbox';

export type AskSpec = {
  /** How long the row may take to reach the disk before the host is asked all the same. */
  readonly recordMs: number;
  /** How long the host is asked alone. */
  readonly patienceMs: number;
  /** How often whoever waits for the answer is told that it waits. */
  readonly noticeMs: number;
  /** Every question ends. */
  readonly expiryMs: number;
  /** Of an elicitation: whether an address is to be visited, and whether a call waits until that is done. */
  readonly isUrl?: boolean;
  readonly isRequired?: boolean;
  /** Of sampling: whether no person needs to look, and whether a plugin offers a model. */
  readonly isTrusted?: boolean;
  readonly hasModel?: boolean;
  readonly request?: Uint8Array;
};

/** What a host said, and how to tell it that an address is done with. */
export type HostAnswer = { readonly said: object; readonly complete: (params: Uint8Array) => void };

/** An answer that has won the compare-and-set on the row of its question. */
export type Given = {
  readonly by: string;
  readonly content?: Uint8Array;
  /** It says no more than yes to what was shown, perhaps to an edited request. */
  readonly isWord?: boolean;
  readonly host?: HostAnswer;
};

export type AskContext = {
  readonly spec: AskSpec;
  readonly waitsOn: WaitsOn;
  /** Undefined once nobody is to answer any more, though the question is still waited for. */
  readonly stage: Stage | undefined;
  readonly given: Given | undefined;
  /** Of sampling: what the model is asked, perhaps edited, and what it said. */
  readonly request: Uint8Array | undefined;
  readonly result: Uint8Array | undefined;
};

type HostAnswered = { type: 'host.answered'; answer: HostAnswer };
export type Replied = { type: 'accepted' | 'declined' | 'cancelled'; stage: Stage; given: Given };
export type AskEvent =
  /** The row is on the disk, or cannot be. */
  | { type: 'recorded' }
  /** The ladder has come to them. */
  | { type: 'host.due' }
  | { type: 'bus.due' }
  /** Only a person is left who could answer: whoever waits shall know it. */
  | { type: 'caller.due' }
  | { type: 'host.passed' }
  | HostAnswered
  /** The answer of the host does not fit the question. */
  | { type: 'host.unfit'; problem: string }
  | { type: 'bus.passed' }
  | { type: 'rule.passed' }
  /** What a model said for a trusted server cannot be delivered. */
  | { type: 'model.unfit' }
  | Replied
  /** The server says that what was to be done at the address is done. */
  | { type: 'completed'; params: Uint8Array }
  /** The server does not want to know any more, or the last call that it could matter to has ended. */
  | { type: 'withdrawn' };

export type AskOutcome =
  | 'accepted'
  | 'declined'
  | 'cancelled'
  | 'completed'
  | 'answered'
  | 'rejected'
  | 'approved'
  | 'denied'
  | 'expired'
  | 'withdrawn';

/** `ask` is the actor whose question it is. */
export type PortInput = { readonly ask: object; readonly problem?: string | undefined };

const notProvided = (): never => {
  throw new Error('ask: the ports were not provided');
};

// ── Setup: the words of all three machines ───────────────────────────────────

export const ask = setup({
  types: { context: {} as AskContext, input: {} as AskSpec, events: {} as AskEvent },
  actors: {
    /** One question to the host, withdrawn if the host has not answered when it is stopped. */
    host: fromCallback<AskEvent, PortInput>(notProvided),
    /** The services are listened to until it is stopped. */
    bus: fromCallback<AskEvent, PortInput>(notProvided),
    model: fromPromise<Uint8Array, { readonly ask: object; readonly request: Uint8Array | undefined }>(notProvided),
  },
  actions: {
    /** Writes the row; `recorded` follows. */
    record: () => {},
    /** Tells the log, the bus and the other daemons of a new question. */
    tellOpened: () => {},
    /** What the inbox shows has changed: in the row, and for whoever looks. */
    show: () => {},
    /** The same, and the row can be answered again: the answer that it holds was not the last one. */
    reopen: () => {},
    /** Judges what the host said, and claims the row with it if it fits. */
    judgeHost: (_, _answer: HostAnswer) => {},
    /** The host did not mend its answer: it has left the question alone. */
    cancelForHost: () => {},
    applyRule: () => {},
    /** Tells whoever waits for the answer that it waits for a person. */
    announce: () => {},
    /** The model's answer, claimed as that of a person would be. */
    deliver: () => {},
    reportModel: (_, _error: unknown) => {},
    /** Nobody is to answer any more: the row ends as accepted, and the server is told. The question is kept. */
    consent: () => {},
    tellHostDone: (_, _params: Uint8Array) => {},
    /** Row, news, the answer to the server: the question is over. */
    conclude: (_, _outcome: AskOutcome) => {},
    /** The question was answered long ago, and nothing more is expected of it. */
    forget: () => {},

    /** Whoever waits is told from now on, if that has not begun already. */
    tellCaller: raise({ type: 'caller.due' }),
    waitFor: assign((_, wanted: Pick<AskContext, 'waitsOn' | 'stage'>) => wanted),
    take: assign({ given: ({ event }) => ('given' in event ? event.given : undefined) }),
    edit: assign({ request: ({ context, event }) => ('given' in event && event.given.content) || context.request }),
    keepResult: assign({ result: (_, result: Uint8Array) => result }),
  },
  guards: {
    /** The reply answers an earlier stage of the question. */
    isStale: ({ context, event }) => 'stage' in event && event.stage !== context.stage,
    isUrl: ({ context }) => context.spec.isUrl === true,
    isRequired: ({ context }) => context.spec.isRequired === true,
    isSettled: ({ context }) => context.stage === undefined,
    hasModel: ({ context }) => context.spec.hasModel === true,
    isTrusted: ({ context }) => context.spec.isTrusted === true,
    isTrustedWithModel: ({ context: { spec } }) => spec.isTrusted === true && spec.hasModel === true,
    approvesRequest: ({ event }) => 'given' in event && event.stage === 'request' && event.given.isWord === true,
  },
  delays: {
    record: ({ context }) => context.spec.recordMs,
    patience: ({ context }) => context.spec.patienceMs,
    notice: ({ context }) => context.spec.noticeMs,
    expiry: ({ context }) => context.spec.expiryMs,
  },
});

export const begin = ({ input }: { input: AskSpec }): AskContext => ({
  spec: input,
  waitsOn: 'host',
  stage: 'answer',
  given: undefined,
  request: input.request,
  result: undefined,
});

/** What the inbox shows from now on: who is waited for, and what is wanted of a person meanwhile. */
export const waitFor = (waitsOn: WaitsOn, stage?: Stage) => ({ type: 'waitFor', params: { waitsOn, stage } }) as const;

export const ended = (params: AskOutcome) => ({ type: 'final', entry: { type: 'conclude', params } }) as const;

/** First of all: a reply to what is no longer asked gives the row back. */
export const STALE = { guard: 'isStale', actions: 'reopen' } as const;

// ── States: an open question has four regions ────────────────────────────────

/** Whose turn it is. */
export const LADDER = ask.createStateConfig({
  initial: 'opening',
  states: {
    opening: { entry: 'record', on: { recorded: 'host' }, after: { record: 'host' } },
    host: {
      entry: ['tellOpened', 'show', raise({ type: 'host.due' })],
      on: { 'host.passed': 'bus' },
      after: { patience: 'bus' },
    },
    bus: { entry: [waitFor('bus', 'answer'), 'show', raise({ type: 'bus.due' })], on: { 'bus.passed': 'rule' } },
    rule: {
      entry: [waitFor('rule', 'answer'), 'show', 'applyRule'],
      on: { 'rule.passed': { target: 'inbox', actions: 'tellCaller' } },
    },
    inbox: { entry: [waitFor('inbox', 'answer'), 'show'] },
  },
});

/** What the host was asked and has said. A form that it filled in badly goes back to it once. */
export const HOST = ask.createStateConfig({
  initial: 'unasked',
  states: {
    unasked: { on: { 'host.due': 'asked' } },
    asked: {
      invoke: { id: 'host', src: 'host', input: ({ self }) => ({ ask: self }) },
      on: { 'host.passed': 'passed', 'host.answered': 'heard' },
    },
    heard: {
      entry: { type: 'judgeHost', params: ({ event }) => (event as HostAnswered).answer },
      on: { 'host.passed': 'passed', 'host.unfit': 'askedAgain' },
    },
    askedAgain: {
      invoke: {
        id: 'host',
        src: 'host',
        input: ({ self, event }) => ({ ask: self, problem: 'problem' in event ? event.problem : undefined }),
      },
      on: { 'host.passed': 'passed', 'host.answered': 'heardAgain' },
    },
    heardAgain: {
      entry: { type: 'judgeHost', params: ({ event }) => (event as HostAnswered).answer },
      on: { 'host.passed': 'passed', 'host.unfit': { target: 'passed', actions: 'cancelForHost' } },
    },
    passed: {},
  },
});

/** The services are asked once, and may answer as long as the question is open. */
export const BUS = ask.createStateConfig({
  initial: 'unasked',
  states: {
    unasked: { on: { 'bus.due': 'asked' } },
    asked: { invoke: { id: 'bus', src: 'bus', input: ({ self }) => ({ ask: self }) } },
  },
});

/** Told, and told again: a caller whose patience is renewed by news goes on waiting. */
export const TOLD = ask.createStateConfig({ entry: 'announce', after: { notice: { target: 'told', reenter: true } } });

/** What is known to whoever waits. One whose own host is asked knows of it, and is told only if that takes a while. */
export const CALLER = ask.createStateConfig({
  initial: 'untold',
  states: { untold: { on: { 'caller.due': 'told' }, after: { notice: 'told' } }, told: TOLD },
});
