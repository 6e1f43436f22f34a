// The machines of asks as one kind of thing: what each of them makes of a reply, and what it wants of the inbox now.

import { type AnyStateMachine, createActor, type Snapshot } from 'xstate';
import { approvalMachine } from '../../machines/approval.ts';
import { elicitationMachine } from '../../machines/elicitation.ts';
import type { AskSpec } from '../../machines/ladder.ts';
import { samplingMachine } from '../../machines/sampling.ts';
import type { AskOutcome, AskView, Question, Reply, Stage } from './ask.ts';
import { isRequest } from './replies.ts';

/** What a machine does to the world. */
export type Ports = {
  askHost(): void;
  askBus(): void;
  applyRule(): void;
  /** The person agreed to visit the address. */
  consent(): void;
  generate(): void;
  stopGenerating(): void;
  hasModel(): boolean;
  conclude(outcome: AskOutcome): void;
  onCrash(error: unknown): void;
};

export type AskActor = {
  start(): void;
  send(event: AskEvent): void;
  /** The event that a reply is; `isWhole` says that it is an answer, whatever the inbox was asked for. */
  eventOf(reply: Reply, isWhole: boolean): AskEvent;
  /** What is wanted of the inbox; nothing when the question only waits to be done with. */
  stage(): Stage | undefined;
  waitsOn(): AskView['waitsOn'];
  isOver(): boolean;
};

export type AskEvent = {
  readonly type:
    | 'opened'
    | 'host.passed'
    | 'bus.passed'
    | 'rule.passed'
    | 'withdrawn'
    | 'accepted'
    | 'declined'
    | 'cancelled'
    | 'completed'
    | 'answered'
    | 'rejected'
    | 'approved'
    | 'generated'
    | 'failed';
};

export function actorFor(question: Question, spec: AskSpec & { readonly isTrusted: boolean }, ports: Ports): AskActor {
  if (question.kind === 'sampling') return samplingActor(spec, ports);
  if (question.kind === 'approval') return approvalActor(spec, ports);
  return elicitationActor(question, spec, ports);
}

function elicitationActor(question: Question & { kind: 'elicitation' }, spec: AskSpec, ports: Ports): AskActor {
  const { askHost, askBus, applyRule, consent } = ports;
  const conclude = (_: unknown, outcome: AskOutcome) => ports.conclude(outcome);
  const machine = elicitationMachine.provide({ actions: { askHost, askBus, applyRule, consent, conclude } });
  const isRequired = question.mode === 'url' && question.isRequired;
  const actor = running(machine, { ...spec, mode: question.mode }, ports);
  const hasAgreed = () => actor.leaf() === 'consented';
  return {
    ...actor,
    eventOf: ({ action }) => ({ type: hasAgreed() && action === 'accept' ? 'completed' : SAID[action] }),
    stage: () => (hasAgreed() ? (isRequired ? 'done' : undefined) : 'answer'),
  };
}

function samplingActor(spec: AskSpec & { readonly isTrusted: boolean }, ports: Ports): AskActor {
  const { askHost, askBus, applyRule, generate, stopGenerating, hasModel } = ports;
  const conclude = (_: unknown, outcome: AskOutcome) => ports.conclude(outcome);
  const actions = { askHost, askBus, applyRule, generate, stopGenerating, conclude };
  const actor = running(samplingMachine.provide({ actions, guards: { hasModel } }), spec, ports);
  const stage = (): Stage => REVIEWS[actor.leaf()] ?? 'answer';
  return {
    ...actor,
    stage,
    eventOf(reply, isWhole) {
      if (reply.action !== 'accept') return { type: 'rejected' };
      const isWord = !isWhole && stage() !== 'answer' && (!reply.content || isRequest(reply.content));
      return { type: isWord ? 'approved' : 'answered' };
    },
  };
}

function approvalActor(spec: AskSpec, ports: Ports): AskActor {
  const { askHost, askBus, applyRule } = ports;
  const conclude = (_: unknown, outcome: AskOutcome) => ports.conclude(outcome);
  const actor = running(approvalMachine.provide({ actions: { askHost, askBus, applyRule, conclude } }), spec, ports);
  return { ...actor, stage: () => 'answer', eventOf: ({ action }) => ({ type: SAID[action] }) };
}

const SAID = { accept: 'accepted', decline: 'declined', cancel: 'cancelled' } as const;
const REVIEWS: Record<string, Stage> = { reviewing: 'request', checking: 'result' };
const WAITS: Record<string, AskView['waitsOn']> = {
  opening: 'host',
  host: 'host',
  bus: 'bus',
  rule: 'rule',
  generating: 'model',
};

function running(machine: AnyStateMachine, input: object, { onCrash }: Ports) {
  const actor = createActor(machine, { input });
  const leaf = (): string => leafOf((actor.getSnapshot() as Snapshot<unknown> & { value: unknown }).value);
  actor.subscribe({ error: onCrash });
  return {
    leaf,
    start: () => void actor.start(),
    // XState complains aloud of an event to an actor that is done; here a late one is nothing unusual.
    send: (event: AskEvent) => void (actor.getSnapshot().status === 'active' && actor.send(event)),
    waitsOn: () => WAITS[leaf()] ?? 'inbox',
    isOver: () => actor.getSnapshot().status !== 'active',
  };
}

const leafOf = (value: unknown): string =>
  typeof value === 'string' ? value : leafOf(Object.values(value as Record<string, unknown>)[0]);
