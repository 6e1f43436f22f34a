// The machines of asks as one kind of thing: what each of them makes of a reply, and what it wants of the inbox now.

import { type AnyStateMachine, createActor, type Snapshot } from 'xstate';
import { type ApprovalEvent, approvalMachine } from '../../machines/approval.ts';
import { type ElicitationEvent, elicitationMachine } from '../../machines/elicitation.ts';
import type { AskSpec } from '../../machines/ladder.ts';
import { type SamplingEvent, samplingMachine } from '../../machines/sampling.ts';
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

export type AskEvent = { readonly type: (ElicitationEvent | SamplingEvent | ApprovalEvent)['type'] };

/** Whose actor it is: machines are given their ports once, because that costs more than an actor does. */
const owners = new WeakMap<object, Ports>();
const portsOf = ({ self }: { self: object }): Ports => owners.get(self) as Ports;
const ladder = {
  askHost: (args: { self: object }) => portsOf(args).askHost(),
  askBus: (args: { self: object }) => portsOf(args).askBus(),
  applyRule: (args: { self: object }) => portsOf(args).applyRule(),
  conclude: (args: { self: object }, outcome: AskOutcome) => portsOf(args).conclude(outcome),
};
const elicitation = elicitationMachine.provide({
  actions: { ...ladder, consent: (args) => portsOf(args).consent() },
});
const sampling = samplingMachine.provide({
  actions: {
    ...ladder,
    generate: (args) => portsOf(args).generate(),
    stopGenerating: (args) => portsOf(args).stopGenerating(),
  },
});
const approval = approvalMachine.provide({ actions: ladder });

export function actorFor(question: Question, spec: AskSpec & { readonly isTrusted: boolean }, ports: Ports): AskActor {
  if (question.kind === 'sampling') return samplingActor(spec, ports);
  if (question.kind === 'approval') return approvalActor(spec, ports);
  return elicitationActor(question, spec, ports);
}

function elicitationActor(question: Question & { kind: 'elicitation' }, spec: AskSpec, ports: Ports): AskActor {
  const isRequired = question.mode === 'url' && question.isRequired;
  const actor = running(elicitation, { ...spec, mode: question.mode }, ports);
  const hasAgreed = () => actor.leaf() === 'consented';
  return {
    ...actor,
    eventOf: ({ action }) => ({ type: hasAgreed() && action === 'accept' ? 'completed' : SAID[action] }),
    stage: () => (hasAgreed() ? (isRequired ? 'done' : undefined) : 'answer'),
  };
}

function samplingActor(spec: AskSpec & { readonly isTrusted: boolean }, ports: Ports): AskActor {
  const actor = running(sampling, { ...spec, hasModel: ports.hasModel() }, ports);
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
  const actor = running(approval, spec, ports);
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

function running(machine: AnyStateMachine, input: object, ports: Ports) {
  const actor = createActor(machine, { input });
  owners.set(actor, ports);
  const leaf = (): string => leafOf((actor.getSnapshot() as Snapshot<unknown> & { value: unknown }).value);
  actor.subscribe({ error: ports.onCrash });
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
