// Every open ask of this daemon. Servers' questions come in here, are attributed and checked, and each becomes an actor with
// a row; whoever answers goes through `accept`, where of two answers one stands. Calls that wait for a word open theirs too.

import type { Logger } from 'pino';
import { now } from '../calls/deadlines.ts';
import type { Config } from '../config/schema.ts';
import { sentence } from '../failures.ts';
import type { Attribution, Found } from '../servers/attribution.ts';
import type { Member } from '../servers/member.ts';
import type { Asked } from '../servers/session.ts';
import { createAcceptance } from './acceptance.ts';
import type { Question, Subject } from './ask.ts';
import type { Answerers } from './bus.ts';
import { createInbox } from './inbox.ts';
import { createLive, type Ending, type Given, type Live, type Opening } from './live.ts';
import type { Models } from './models.ts';
import { isRefusal, readQuestion } from './reading.ts';
import { answerOf, nobody, refused } from './replies.ts';
import type { Rows } from './rows.ts';
import type { Validator } from './validator.ts';
import type { OpenAsk } from './waiting.ts';

export type AsksOptions = {
  readonly config: () => Pick<Config, 'asks'>;
  readonly rows: Rows;
  readonly validator: Validator;
  readonly answerers: Answerers;
  readonly models: Models;
  readonly attribution: Attribution;
  /** What a server may know of the directories that people work in. */
  readonly rootsFor: (member: Member) => Buffer;
  readonly onOpened: (live: Live) => void;
  readonly onClosed: (live: Live, ending: Ending) => void;
  /** Another daemon on this state directory has something to read in the rows. */
  readonly nudge: () => void;
  readonly logger: Logger;
};
export type Asks = ReturnType<typeof createAsks>;

/** The server gets its answer this long before its call must end, so that it can make something of it. */
const MARGIN_MS = 2_000;
const TOO_MANY = 'too many questions are open; answer some, see troupe inbox';

export function createAsks(options: AsksOptions) {
  const { config, rows, validator, attribution, logger, onOpened, onClosed } = options;
  const lives = new Map<string, Live>();
  /** Those that wait for an answer; one that was agreed to may live on until the server says that it is done. */
  const open = new Set<string>();
  let isClosed = false;
  const onTrouble = (error: unknown) => logger.warn(sentence(error));
  const acceptance = createAcceptance({ rows, validator, onTrouble });
  const inbox = createInbox({ lives, rows, validator, acceptance, nudge: options.nudge });
  const world = {
    ...{ answerers: options.answerers, models: options.models, onTrouble },
    settings: () => config().asks,
    accept: (live: Live, given: Given) => acceptance.accept(live, given, 'answer'),
    onChanged(live: Live) {
      rows.update(live.view());
      inbox.touch();
    },
  };

  /** A server asks; it is answered once, unless it asks no more. Nothing that it says can do us harm. */
  function take(member: Member, asked: Asked): void {
    try {
      consider(member, asked);
    } catch (error) {
      onTrouble(error);
      asked.answer(refused(-32603, 'troupe could not handle the question; its log says why'));
    }
  }

  function consider(member: Member, asked: Asked): void {
    const { method, params, origin, signal, answer } = asked;
    if (method === 'roots/list') return answer({ ok: true, result: options.rootsFor(member) });
    const question = readQuestion(method, params, member.config.settings.sampling);
    if (isRefusal(question)) return answer(refused(question.code, question.message));
    let withdraw = (): void => {};
    const giveUp = attribution.settle(member, origin, (found) => {
      if (!found) return answer(nobody(question));
      withdraw = serve(member, asked, question, found);
    });
    const withdrawn = (): void => {
      giveUp();
      withdraw();
    };
    signal.addEventListener('abort', withdrawn, { once: true });
  }

  /** Asks on behalf of the calls that were found, which wait as long as they may at all. Returns how to withdraw it. */
  function serve(member: Member, { method, params, answer }: Asked, question: Question, found: Found): () => void {
    const resumes = found.requests.map((request) => member.lane.suspend(request));
    const [request] = found.requests;
    const deadlines = found.requests.map(({ latestDeadline }) => latestDeadline);
    const subject = found.isOne && request ? { call: request.call, latestDeadline: request.latestDeadline } : undefined;
    const live: Live | undefined = ask(member, question, {
      ...{ subject, principal: found.principal, asked: { method, params }, tool: subject?.call.name ?? '' },
      latestDeadline: Math.min(...deadlines, Number.POSITIVE_INFINITY),
      // From here on it is the server's own business, and nobody else's to answer.
      onConsent(by) {
        answer(answerOf(question, 'accepted', undefined));
        if (live) finish(live, { outcome: 'accepted', by });
      },
      onEnded(ending) {
        for (const resume of [...resumes, ...endings]) resume();
        answer(ending.said ?? answerOf(question, ending.outcome, ending.content));
      },
    });
    if (!live) {
      for (const resume of resumes) resume();
      answer(refused(-32603, TOO_MANY));
      return () => {};
    }
    // The last of its calls takes it along, unless the person is at an address, where things may take longer than the call.
    let left = found.requests.length;
    const over = () => --left === 0 && live.stage !== undefined && live.withdraw();
    const endings = found.requests.map((each) => member.lane.whenEnded(each, over));
    return live.withdraw;
  }

  /** A call that has not been sent, or was sent back, waits for a word. */
  const wait: OpenAsk = (question, subject, member, onEnded) => {
    const { call, latestDeadline } = subject;
    const live = ask(member, question, {
      ...{ subject, principal: call.principal, tool: call.name, latestDeadline, onConsent: () => {} },
      onEnded: ({ outcome, by }) => onEnded(outcome, by),
    });
    if (!live) queueMicrotask(() => onEnded('expired', TOO_MANY));
    return () => live?.withdraw();
  };

  type About = Pick<Opening, 'subject' | 'principal' | 'tool' | 'asked' | 'onConsent' | 'onEnded'> &
    Pick<Subject, 'latestDeadline'>;

  function ask(member: Member, question: Question, about: About): Live | undefined {
    const { asks } = config();
    if (open.size >= asks.maxOpen || isClosed) return undefined;
    const mostMs = about.latestDeadline - now();
    const expiryMs = Math.max(1, Math.round(Math.min(asks.timeoutMs, mostMs - Math.min(MARGIN_MS, mostMs / 10))));
    const { trust: isTrusted, sampling: budget } = member.config.settings;
    const live = createLive(world, {
      ...{ question, ...about, server: member.server, instance: member.name, expiryMs, isTrusted, budget },
      onEnded(ending) {
        finish(live, ending);
        lives.delete(live.id);
        about.onEnded(ending);
      },
    });
    lives.set(live.id, live);
    open.add(live.id);
    void begin(live, about.subject);
    return live;
  }

  /** On the disk first; a disk that refuses does not keep a question from being asked. */
  async function begin(live: Live, subject: Subject | undefined): Promise<void> {
    await rows.add(live.view()).catch(onTrouble);
    if (live.isOver) return;
    const { id, kind, expiresAt } = live.view();
    onOpened(live);
    subject?.call.onSignal?.({ type: 'ask', id, kind, expiresAt });
    live.opened();
    inbox.touch();
  }

  /** Nobody can answer it any more. */
  function finish(live: Live, ending: Ending): void {
    if (!open.delete(live.id)) return;
    rows.end(live.id, ending.outcome, ending.by);
    onClosed(live, ending);
    inbox.touch();
  }

  return {
    ...{ take, wait, inbox },
    /** A server says that what was to be done at an address is done. An id that nobody knows is nobody's. */
    completed(member: Member, elicitationId: string, params: Buffer): void {
      for (const live of lives.values()) {
        const { question } = live;
        const isIt =
          question.kind === 'elicitation' && question.mode === 'url' && question.elicitationId === elicitationId;
        if (isIt && live.isOf(member.name)) live.complete(params);
      }
    },
    get open() {
      return open.size;
    },
    /** Nobody is asked any more, and whoever waits for an answer is told that none will come. */
    close(): void {
      isClosed = true;
      for (const live of [...lives.values()]) live.withdraw();
      inbox.close();
      validator.close();
    },
  };
}
