// One ask as an actor: the chart of its kind (machines/) decides, and what the chart orders is done here. The actor holds all
// that changes: whose turn it is, what is wanted of the inbox, the answer that stands.

import { createActor, fromCallback, fromPromise } from 'xstate';
import { approvalMachine } from '../../machines/approval.ts';
import { elicitationMachine } from '../../machines/elicitation.ts';
import type {
  AskContext,
  AskEvent,
  Given,
  HostAnswer,
  AskOutcome as Outcome,
  PortInput,
} from '../../machines/ladder.ts';
import { samplingMachine } from '../../machines/sampling.ts';
import type { Answer } from '../calls/call.ts';
import type { AskSettings } from '../config/schema.ts';
import { sentence, TroupeError } from '../protocol/failures.ts';
import { clockOf, type World } from '../world/world.ts';
import type {
  AskedOfHost,
  AskOutcome,
  AskView,
  Ending,
  Offer,
  Opening,
  Question,
  Reply,
  Stage,
  Subject,
} from './ask.ts';
import type { Answerers } from './bus.ts';
import { askedAgain, askedOf, spokenBy } from './host.ts';
import type { Models } from './models/models.ts';
import { noticeOf } from './notice.ts';
import { isRequest, ruledReply } from './replies.ts';
import { shown } from './rows.ts';

/** What all asks of a daemon share. */
export type AskPorts = {
  readonly world: World;
  readonly settings: () => AskSettings;
  /** The daemon's name, where it is not the only one on its state directory. */
  readonly instance: string | undefined;
  readonly answerers: Answerers;
  readonly models: Models;
  /** Judges an offer, and lets it stand if it is the first; throws a TroupeError if it is not, or does not fit. */
  readonly accept: (ask: AskActor, offer: Offer) => Promise<AskOutcome | 'open'>;
  /** Many rows come to the disk at once: what is done for each then is done when it is the turn of its server. */
  readonly inTurn: (ask: AskActor, work: () => void) => void;
  /** Resolves when the row is on the disk. */
  readonly record: (ask: AskActor, view: AskView) => Promise<void>;
  readonly opened: (ask: AskActor, view: AskView) => void;
  readonly shown: (ask: AskActor, view: AskView) => void;
  readonly reopened: (ask: AskActor, view: AskView) => void;
  readonly consented: (ask: AskActor, by: string) => void;
  readonly concluded: (ask: AskActor, ending: Ending) => void;
  readonly forgotten: (ask: AskActor) => void;
  readonly onTrouble: (error: unknown) => void;
};

export type AskActor = {
  readonly id: string;
  readonly opening: Opening;
  /** What is wanted of the inbox; nothing when the question is answered, and only waits to be done with. */
  readonly stage: Stage | undefined;
  readonly isOver: boolean;
  readonly outcome: AskOutcome | undefined;
  view(): AskView;
  /** How a host is asked it. */
  asked(): AskedOfHost | undefined;
  /** An event for an ask that is over changes nothing. */
  send(event: AskEvent): void;
  withdraw(): void;
};

/** How long a slow disk keeps a question from being asked. */
const RECORD_MS = 1_000;
/** Well within the time that hosts give a request which nothing is heard of. */
const NOTICE_MS = 15_000;

export function startAsk(ports: AskPorts, opening: Opening): AskActor {
  const { world } = ports;
  const id = world.random(16).toString('hex');
  const openedAt = world.date();
  const actor = createActor(MACHINES[opening.question.kind], { input: specOf(ports, opening), clock: clockOf(world) });
  const ask: AskActor = {
    id,
    opening,
    get stage() {
      return actor.getSnapshot().context.stage;
    },
    get isOver() {
      return actor.getSnapshot().status !== 'active';
    },
    get outcome() {
      const { status, value } = actor.getSnapshot();
      return status === 'done' ? (value as Outcome) : undefined;
    },
    view: () => owner.view(actor.getSnapshot().context),
    asked: () => askedOf(opening.question, opening),
    // XState complains aloud of an event to an actor that is done; here a late one is nothing unusual.
    send: (event) => void (actor.getSnapshot().status === 'active' && actor.send(event)),
    withdraw: () => ask.send({ type: 'withdrawn' }),
  };
  const owner: Owner = { ask, ports, view: (context) => viewOf(id, openedAt, opening, context) };
  owners.set(actor, owner);
  // A bug of ours must not leave a question that never ends.
  const onCrash = (error: unknown): void => {
    ports.onTrouble(error);
    ports.concluded(ask, { outcome: 'withdrawn', by: '' });
  };
  actor.subscribe({ error: onCrash });
  actor.start();
  return ask;
}

function specOf({ settings, models }: AskPorts, { question, expiryMs, isTrusted }: Opening) {
  const times = { recordMs: RECORD_MS, patienceMs: settings().hostMs, noticeMs: NOTICE_MS, expiryMs };
  if (question.kind === 'sampling')
    return { ...times, isTrusted, hasModel: models.hasModel(), request: question.request };
  if (question.kind === 'approval' || question.mode === 'form') return times;
  return { ...times, isUrl: true, isRequired: question.isRequired };
}

function viewOf(id: string, openedAt: number, opening: Opening, context: AskContext): AskView {
  const { question, server, tool, principal, subject, expiryMs } = opening;
  const { stage, waitsOn, request, result } = context;
  const task = subject?.call.task;
  return {
    id,
    server,
    tool,
    principal,
    openedAt,
    expiresAt: openedAt + expiryMs,
    ...(task !== undefined && { task }),
    ...shown(question, request as Buffer | undefined),
    stage: stage ?? 'answer',
    waitsOn,
    ...(result && stage === 'result' && { result: JSON.parse(result.toString()) }),
  };
}

/** The event that an offer is once it stands. */
export function eventOf({ reply, by, isWhole, host }: Offer, stage: Stage): AskEvent {
  const content = reply.action === 'accept' ? reply.content : undefined;
  const isWord = !isWhole && (!content || isRequest(content));
  const given: Given = { by, isWord, ...(content && { content }), ...(host && { host }) };
  return { type: SAID[reply.action], stage, given };
}

const SAID = { accept: 'accepted', decline: 'declined', cancel: 'cancelled' } as const;

// ── What the charts order ────────────────────────────────────────────────────

type Owner = { readonly ask: AskActor; readonly ports: AskPorts; readonly view: (context: AskContext) => AskView };
type Args = { readonly self: object; readonly context: AskContext };

/** Whose actor it is: charts are given their effects once, because that costs more than an actor does. */
const owners = new WeakMap<object, Owner>();
const ownerOf = (actor: object): Owner => owners.get(actor) as Owner;

/** A fault in an effect ends its question, and no other. */
const effect =
  <Params>(work: (owner: Owner, context: AskContext, params: Params) => void) =>
  ({ self, context }: Args, params: Params): void => {
    const owner = ownerOf(self);
    contain(owner, () => work(owner, context, params));
  };

function contain({ ask, ports }: Owner, work: () => void): void {
  try {
    work();
  } catch (error) {
    ports.onTrouble(error);
    ask.withdraw();
  }
}

const actions = {
  record: effect(({ ask, ports, view }, context) => {
    const recorded = (isOnDisk: boolean): void => {
      ask.opening.waiter.recorded?.(isOnDisk);
      ports.inTurn(ask, () => ask.send({ type: 'recorded' }));
    };
    const failed = (error: unknown): boolean => {
      ports.onTrouble(error);
      return false;
    };
    void ports
      .record(ask, view(context))
      .then(() => true, failed)
      .then(recorded)
      .catch(ports.onTrouble);
  }),
  tellOpened: effect(({ ask, ports, view }, context) => ports.opened(ask, view(context))),
  show: effect(({ ask, ports, view }, context) => ports.shown(ask, view(context))),
  reopen: effect(({ ask, ports, view }, context) => ports.reopened(ask, view(context))),
  judgeHost: effect((owner, _, { said, complete }: HostAnswer) => {
    const { ask } = owner;
    const { question } = ask.opening;
    const reply = spokenBy(question, said as Answer);
    if (!reply) return ask.send({ type: 'host.passed' });
    const host = question.kind === 'approval' ? {} : { host: { said, complete } };
    void attempt(owner, { reply, by: HOST, isWhole: true, ...host }).then((problem) => {
      if (problem === undefined) return;
      const isMendable = askedAgain(ask.asked(), problem) !== undefined;
      ask.send(isMendable ? { type: 'host.unfit', problem } : { type: 'host.passed' });
    });
  }),
  cancelForHost: effect((owner) => void attempt(owner, { reply: { action: 'cancel' }, by: HOST, isWhole: true })),
  applyRule: effect((owner) => {
    const { ask, ports } = owner;
    const reply = ruledReply(ports.settings().rules, ask.opening.question, ask.opening);
    const ruled = reply && attempt(owner, { reply, by: 'a rule of the configuration', isWhole: true });
    void Promise.resolve(ruled).then(() => ask.send({ type: 'rule.passed' }));
  }),
  announce: effect(({ ask, ports, view }, context) => {
    const notice = noticeOf(view(context), ports.instance);
    for (const call of ask.opening.waiting) call.onSignal?.(notice);
  }),
  deliver: effect((owner, { result }) => {
    const reply = { action: 'accept', content: result as Buffer } as const;
    void attempt(owner, { reply, by: 'a model', isWhole: true }).then(
      (problem) => problem !== undefined && owner.ask.send({ type: 'model.unfit' }),
    );
  }),
  reportModel: effect(({ ask, ports }, _, error: unknown) => {
    const { server } = ask.opening;
    ports.onTrouble(new TroupeError('rejected', `a model did not answer for ${server}: ${sentence(error)}`));
  }),
  consent: effect(({ ask, ports }, { given }) => {
    ask.opening.waiter.consented?.();
    ports.consented(ask, given?.by ?? '');
  }),
  tellHostDone: effect((_, { given }, params: Uint8Array) => given?.host?.complete(params)),
  conclude: effect(({ ask, ports }, { given, result }, outcome: Outcome) => {
    const content = given?.content ?? (outcome === 'answered' ? result : undefined);
    const said = given?.host?.said as Answer | undefined;
    ports.concluded(ask, {
      outcome,
      by: given?.by ?? '',
      ...(content && { content: content as Buffer }),
      ...(said && { said }),
    });
  }),
  forget: effect(({ ask, ports }) => ports.forgotten(ask)),
};

const HOST = 'the host';

/** The sentence why an offer does not stand, for whoever can mend it; nothing when there is no more to be said. */
async function attempt({ ask, ports }: Owner, offer: Offer): Promise<string | undefined> {
  try {
    await ports.accept(ask, offer);
    return undefined;
  } catch (error) {
    if (error instanceof TroupeError && error.code === 'answered') return undefined;
    if (!(error instanceof TroupeError) || error.code !== 'invalid') ports.onTrouble(error);
    return sentence(error);
  }
}

const actors = {
  host: fromCallback<AskEvent, PortInput>(({ input, sendBack }) => {
    const owner = ownerOf(input.ask);
    const { question, subject } = owner.ask.opening;
    const asked = owner.ask.asked();
    const wanted = input.problem === undefined ? asked : askedAgain(asked, input.problem);
    let isAnswered = false;
    const answer = (said: Answer): void => {
      isAnswered = true;
      const complete = (params: Uint8Array): void => asking?.complete(params as Buffer);
      sendBack({ type: 'host.answered', answer: { said, complete } });
    };
    let asking: ReturnType<NonNullable<Subject['call']['onAsk']>>;
    contain(owner, () => {
      asking = wanted && subject?.call.onAsk?.({ ...wanted, isOurs: question.kind === 'approval', answer });
      if (!asking) sendBack({ type: 'host.passed' });
    });
    // A host that has answered has nothing to forget.
    return () => {
      if (!isAnswered) asking?.withdraw();
    };
  }),
  bus: fromCallback<AskEvent, PortInput>(({ input, sendBack }) => {
    const owner = ownerOf(input.ask);
    const { ask, ports } = owner;
    const over = new AbortController();
    const accept = (reply: Reply) => attempt(owner, { reply, by: 'a service on the bus', isWhole: true });
    void ports.answerers.ask(ask.view(), over.signal, accept).then(() => sendBack({ type: 'bus.passed' }));
    return () => over.abort();
  }),
  model: fromPromise<Uint8Array, { readonly ask: object; readonly request: Uint8Array | undefined }>(
    ({ input, signal }) => {
      const { ask, ports } = ownerOf(input.ask);
      const { server, budget } = ask.opening;
      return ports.models.generate({ server, budget, params: input.request as Buffer, signal });
    },
  ),
};

const elicitation = elicitationMachine.provide({ actions, actors });
/** Charts of one setup differ in their states only. */
const MACHINES: Record<Question['kind'], typeof elicitation> = {
  elicitation,
  sampling: samplingMachine.provide({ actions, actors }) as never,
  approval: approvalMachine.provide({ actions, actors }) as never,
};
