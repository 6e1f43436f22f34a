// One open ask: its actor, who is being asked, and the answer that stands. It ends once, in the way its machine says.

import { randomBytes } from 'node:crypto';
import type { Answer, Asking } from '../calls/call.ts';
import { sentence, TroupeError } from '../protocol/failures.ts';
import { actorFor, type Ports } from './actors.ts';
import type { AskOutcome, AskView, Reply, Stage } from './ask.ts';
import { type Asked, askedAgain, askedOf, spokenBy } from './host.ts';
import type { Given, LiveWorld, Opening } from './opening.ts';
import { isRequest } from './replies.ts';
import { ruledReply } from './rules.ts';
import { shown } from './views.ts';

export type Live = ReturnType<typeof createLive>;

export function createLive(world: LiveWorld, opening: Opening) {
  const { question, server, tool, principal, subject, onEnded } = opening;
  const id = randomBytes(16).toString('hex');
  const openedAt = Date.now();
  const over = new AbortController();
  let given: Given | undefined;
  let asking: Asking | undefined;
  let hasSpoken = false;
  let wasSentBack = false;
  let isAnnounced = false;
  let request = question.kind === 'sampling' ? question.request : undefined;
  let result: Buffer | undefined;
  let outcome: AskOutcome | undefined;
  let parsed: { readonly request: Buffer | undefined; readonly fields: ReturnType<typeof shown> } | undefined;
  let generating: AbortController | undefined;

  const ports: Ports = {
    askHost() {
      if (!askHost(askedOf(question, opening))) actor.send({ type: 'host.passed' });
    },
    askBus() {
      const accept = (reply: Reply) => tryTo({ reply, by: 'a service on the bus', isWhole: true });
      void world.answerers.ask(view(), over.signal, accept).then(() => step('bus.passed'));
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
    // A bug of ours must not leave a question that never ends.
    onCrash(error) {
      world.onTrouble(error);
      if (outcome === undefined) ports.conclude('withdrawn');
    },
  };
  const { hostMs: patienceMs } = world.settings();
  const spec = { patienceMs, expiryMs: opening.expiryMs, isTrusted: opening.isTrusted };
  const actor = actorFor(question, spec, ports);

  function askHost(ask: Asked | undefined): boolean {
    const isOurs = question.kind === 'approval';
    hasSpoken = false;
    asking = ask && subject?.call.onAsk?.({ ...ask, isOurs, answer: heard });
    return asking !== undefined;
  }

  /** The host has spoken. What it cannot answer is for the next in line. */
  function heard(answer: Answer): void {
    hasSpoken = true;
    const reply = spokenBy(question, answer);
    if (!reply) return step('host.passed');
    const said = question.kind === 'approval' ? {} : { said: answer };
    void tryTo({ reply, by: 'the host', isWhole: true, ...said }).then((problem) => problem && sendBack(problem));
  }

  /** A form that was not filled in as it wants to be goes back once, with what is wrong; then it counts as left alone. */
  function sendBack(problem: string): void {
    const again = wasSentBack ? undefined : askedAgain(askedOf(question, opening), problem);
    if (wasSentBack) void tryTo({ reply: { action: 'cancel' }, by: 'the host', isWhole: true });
    else if (!again || actor.isOver() || !askHost(again)) step('host.passed');
    wasSentBack = true;
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
      const content = await world.models.generate({ server, budget: opening.budget, params, signal });
      if (signal.aborted) return;
      if (opening.isTrusted)
        return void (await tryTo({ reply: { action: 'accept', content }, by: 'a model', isWhole: true }));
      result = content;
      step('generated');
    } catch (error) {
      if (signal.aborted) return;
      world.onTrouble(new TroupeError('rejected', `a model did not answer for ${server}: ${sentence(error)}`));
      step('failed');
    }
  }

  function step(type: 'opened' | 'host.passed' | 'bus.passed' | 'rule.passed' | 'generated' | 'failed'): void {
    if (actor.isOver()) return;
    actor.send({ type });
    if (actor.isOver()) return;
    world.onChanged(live);
    if (isAnnounced || actor.waitsOn() !== 'inbox') return;
    isAnnounced = true; // only a person is left who could answer, so the caller is told
    subject?.call.onSignal?.({ type: 'ask', id, kind: question.kind, expiresAt: openedAt + opening.expiryMs });
  }

  /** Read once: a request may hold pictures, and the inbox is listed often. */
  function fields(): ReturnType<typeof shown> {
    if (parsed?.request !== request) parsed = undefined;
    parsed ??= { request, fields: shown(question, request) };
    return parsed.fields;
  }

  function view(): AskView {
    const task = subject?.call.task;
    return {
      ...{ id, server, tool, principal, openedAt, expiresAt: openedAt + opening.expiryMs },
      ...(task !== undefined && { task }),
      ...{ ...fields(), stage: actor.stage() ?? 'answer', waitsOn: actor.waitsOn() },
      ...(result && actor.stage() === 'result' && { result: JSON.parse(result.toString()) }),
    };
  }

  const live = {
    ...{ id, question, principal, view },
    /** How a host is asked it. */
    asked: () => askedOf(question, opening),
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
    opened: () => step('opened'),
    /** The answer stands. */
    take(answer: Given): void {
      const content = answer.reply.action === 'accept' ? answer.reply.content : undefined;
      const event = actor.eventOf(answer.reply, answer.isWhole);
      if (event.type === 'approved' && content && isRequest(content)) request = content;
      given = event.type === 'approved' && actor.stage() === 'request' ? undefined : answer;
      actor.send(event);
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
