// One open ask: its actor, who is being asked, and the answer that stands. It ends once, in the way its machine says.

import { randomBytes } from 'node:crypto';
import type { Answer, Asking } from '../calls/call.ts';
import type { AskSettings, SamplingBudget } from '../config/types.ts';
import { sentence, TroupeError } from '../failures.ts';
import { actorFor, type Ports } from './actors.ts';
import type { AskOutcome, AskView, Question, Reply, Stage, Subject } from './ask.ts';
import type { Answerers } from './bus.ts';
import { askedOf, spokenBy } from './host.ts';
import type { Models } from './models.ts';
import { isRequest } from './replies.ts';
import { ruledReply } from './rules.ts';
import { shown } from './views.ts';

/** A question about to be asked. */
export type Opening = {
  readonly question: Question;
  readonly server: string;
  /** The process that asks. */
  readonly instance: string;
  readonly principal: string;
  readonly tool: string;
  /** The call it is about, where its host may be asked. */
  readonly subject: Subject | undefined;
  /** As the server wrote it; the host gets the same bytes. */
  readonly asked?: { readonly method: string; readonly params: Buffer };
  readonly expiryMs: number;
  readonly isTrusted: boolean;
  readonly budget: SamplingBudget;
  /** The person has agreed to visit an address; what happens there may take its time. */
  readonly onConsent: (by: string) => void;
  readonly onEnded: (ending: Ending) => void;
};
export type Ending = {
  readonly outcome: AskOutcome;
  readonly by: string;
  readonly content?: Buffer;
  /** What a host said, in its own bytes. */
  readonly said?: Answer;
};

export type LiveWorld = {
  readonly settings: () => AskSettings;
  readonly answerers: Answerers;
  readonly models: Models;
  /** Judges a reply, and lets it stand if it is the first; throws a TroupeError if it is not, or is none. */
  readonly accept: (live: Live, given: Given) => Promise<AskOutcome | 'open'>;
  /** What the inbox shows of it has changed. */
  readonly onChanged: (live: Live) => void;
  readonly onTrouble: (error: unknown) => void;
};
export type Given = {
  readonly reply: Reply;
  readonly by: string;
  readonly said?: Answer;
  /** It is an answer to the question itself, not a word on what a model is to say or has said. */
  readonly isWhole: boolean;
};
export type Live = ReturnType<typeof createLive>;

export function createLive(world: LiveWorld, opening: Opening) {
  const { question, server, tool, principal, subject, onEnded } = opening;
  const id = randomBytes(16).toString('hex');
  const openedAt = Date.now();
  const over = new AbortController();
  let given: Given | undefined;
  let asking: Asking | undefined;
  let hasSpoken = false;
  let request = question.kind === 'sampling' ? question.request : undefined;
  let result: Buffer | undefined;
  let outcome: AskOutcome | undefined;
  let generating: AbortController | undefined;

  const ports: Ports = {
    askHost() {
      const ask = askedOf(question, opening);
      asking = subject?.call.onAsk?.({ ...ask, answer: heard });
      if (!asking) actor.send({ type: 'host.passed' });
    },
    askBus() {
      const accept = (reply: Reply) => tryTo({ reply, by: 'a service on the bus', isWhole: true });
      const passed = () => step('bus.passed');
      world.answerers.ask(view(), over.signal, accept).catch(world.onTrouble).then(passed, world.onTrouble);
    },
    applyRule() {
      const reply = ruledReply(world.settings().rules, question, { server, tool });
      const ruled = reply ? tryTo({ reply, by: 'a rule of the configuration', isWhole: true }) : undefined;
      void Promise.resolve(ruled).then(() => step('rule.passed'));
    },
    consent() {
      if (!hasSpoken) asking?.withdraw();
      opening.onConsent(given?.by ?? '');
    },
    hasModel: () => world.models.hasModel(),
    generate: () => void generate(),
    stopGenerating: () => generating?.abort(),
    conclude(ended) {
      outcome = ended;
      over.abort();
      if (!hasSpoken) asking?.withdraw();
      const { by = '', reply, said } = given ?? {};
      const content = reply?.action === 'accept' ? (reply.content ?? result) : undefined;
      onEnded({ outcome: ended, by, ...(content && { content }), ...(said && { said }) });
    },
    onCrash: world.onTrouble,
  };
  const { hostMs: patienceMs } = world.settings();
  const spec = { patienceMs, expiryMs: opening.expiryMs, isTrusted: opening.isTrusted };
  const actor = actorFor(question, spec, ports);

  /** The host has spoken. What it cannot answer, and what does not answer the question, is for the next in line. */
  function heard(answer: Answer): void {
    hasSpoken = true;
    const reply = spokenBy(question, answer);
    if (!reply) return step('host.passed');
    const said = question.kind === 'approval' ? {} : { said: answer };
    void tryTo({ reply, by: 'the host', isWhole: true, ...said }).then((problem) => problem && step('host.passed'));
  }

  /** The sentence why it does not stand, for whoever can mend it; nothing when there is no more to be said. */
  async function tryTo(answer: Given): Promise<string | undefined> {
    try {
      await world.accept(live, answer);
      return undefined;
    } catch (error) {
      if (error instanceof TroupeError && error.code === 'answered') return undefined;
      if (!(error instanceof TroupeError) || error.code !== 'invalid') world.onTrouble(error);
      return sentence(error);
    }
  }

  async function generate(): Promise<void> {
    const params = request;
    generating = new AbortController();
    const { signal } = generating;
    if (!params) return;
    try {
      result = await world.models.generate({ server, budget: opening.budget, params, signal });
      if (!signal.aborted && opening.isTrusted) given = { reply: { action: 'accept' }, by: 'a model', isWhole: true };
      if (!signal.aborted) step('generated');
    } catch (error) {
      if (signal.aborted) return;
      world.onTrouble(new TroupeError('rejected', `a model did not answer for ${server}: ${sentence(error)}`));
      step('failed');
    }
  }

  function step(type: 'host.passed' | 'bus.passed' | 'rule.passed' | 'generated' | 'failed'): void {
    if (actor.isOver()) return;
    actor.send({ type });
    if (!actor.isOver()) world.onChanged(live);
  }

  function view(): AskView {
    return {
      ...{ id, server, tool, principal, openedAt, expiresAt: openedAt + opening.expiryMs },
      ...{ ...shown(question, request), stage: actor.stage() ?? 'answer', waitsOn: actor.waitsOn() },
      ...(result && actor.stage() === 'result' && { result: JSON.parse(result.toString()) }),
    };
  }

  const live = {
    ...{ id, question, principal, view },
    get stage(): Stage | undefined {
      return actor.stage();
    },
    get isOver(): boolean {
      return actor.isOver();
    },
    get outcome(): AskOutcome | undefined {
      return outcome;
    },
    /** Whether that process asked it. */
    isOf: (instance: string): boolean => opening.instance === instance,
    opened: () => actor.send({ type: 'opened' }),
    /** The answer stands. False when it had ended before. */
    take(answer: Given): boolean {
      if (actor.isOver()) return false;
      const content = answer.reply.action === 'accept' ? answer.reply.content : undefined;
      const event = actor.eventOf(answer.reply, answer.isWhole);
      if (event.type === 'approved' && content && isRequest(content)) request = content;
      given = event.type === 'approved' && actor.stage() === 'request' ? undefined : answer;
      actor.send(event);
      return true;
    },
    withdraw: () => actor.send({ type: 'withdrawn' }),
    /** The server says that what was to be done at the address is done. */
    complete(params: Buffer): void {
      if (given?.said) asking?.complete(params);
      actor.send({ type: 'completed' });
    },
  };
  actor.start();
  return live;
}
