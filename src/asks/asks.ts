// Every open ask of this daemon. Servers' questions come in here, are attributed and checked, and each becomes an actor with
// a row; whoever answers goes through `accept`, where of two answers one stands. Calls that wait for a word open theirs too.

import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Call, Outcome } from '../calls/call.ts';
import { now } from '../calls/deadlines.ts';
import type { Config } from '../config/schema.ts';
import { sentence } from '../protocol/failures.ts';
import type { Attribution } from '../servers/attribution.ts';
import type { Member } from '../servers/member.ts';
import { createAcceptance } from './acceptance.ts';
import type { Question } from './ask.ts';
import { createAugmented } from './augmented/augmented.ts';
import type { Answerers } from './bus.ts';
import type { Validator } from './forms/validator.ts';
import { createInbox } from './inbox.ts';
import { type About, createIntake, TOO_MANY } from './intake.ts';
import { createLimits } from './limits.ts';
import { createLive, type Live } from './live.ts';
import type { Models } from './models/models.ts';
import type { Ending, Given } from './opening.ts';
import type { Rows } from './rows.ts';
import type { OpenAsk } from './waiting/permissions.ts';
import { createVisits } from './waiting/visits.ts';

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
const ON_DISK_MS = 1_000;
/** Addresses that people have agreed to visit, and of which nothing was heard since. */
const MAX_AGREED = 1_000;

export function createAsks(options: AsksOptions) {
  const { config, rows, validator, logger, onOpened, onClosed } = options;
  const lives = new Map<string, Live>();
  /** Those that wait for an answer; one that was agreed to may live on until the server says that it is done. */
  const open = new Map<string, () => void>();
  const limits = createLimits(() => config().asks.maxOpen);
  const visits = createVisits();
  let isClosed = false;
  const onTrouble = (error: unknown) => logger.warn(sentence(error));
  const acceptance = createAcceptance({ rows, validator, onTrouble });
  const inbox = createInbox({ lives, rows, acceptance, nudge: options.nudge });
  const world = {
    ...{ answerers: options.answerers, models: options.models, onTrouble },
    settings: () => config().asks,
    accept: (live: Live, given: Given) => acceptance.accept(live, given, 'answer'),
    onChanged(live: Live) {
      rows.update(live.view(), live.asked());
      inbox.touch();
    },
  };

  const take = createIntake({
    ...{ attribution: options.attribution, limits, rootsFor: options.rootsFor, open: ask, agreed, onTrouble },
    augmented: createAugmented(() => config().asks),
  });

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

  function ask(member: Member, question: Question, about: About): Live | undefined {
    const { asks } = config();
    const release = isClosed ? undefined : limits.take(member.server, sizeOf(question));
    if (!release) return undefined;
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
    open.set(live.id, release);
    void begin(live, about.onRecorded);
    return live;
  }

  /** On the disk first; a disk that refuses, or is slow, does not keep a question from being asked. */
  async function begin(live: Live, onRecorded: About['onRecorded']): Promise<void> {
    const added = rows.add(live.view(), live.asked()).then(() => true, onTrouble);
    added.then((isOnDisk) => onRecorded?.(isOnDisk === true)).catch(onTrouble);
    await Promise.race([added, sleep(ON_DISK_MS, undefined, { ref: false })]);
    if (live.isOver) return;
    onOpened(live);
    live.opened();
  }

  /** An address that somebody visits lives on until the server says that it is done, but not for ever. */
  function agreed(live: Live, by: string): void {
    finish(live, { outcome: 'accepted', by });
    if (lives.size - open.size > MAX_AGREED) [...lives.values()].find(({ stage }) => stage === undefined)?.withdraw();
  }

  /** Nobody can answer it any more. */
  function finish(live: Live, ending: Ending): void {
    const release = open.get(live.id);
    if (!release) return;
    open.delete(live.id);
    release();
    rows.end(live.id, ending.outcome, ending.by);
    onClosed(live, ending);
    inbox.touch();
  }

  return {
    ...{ take, wait, inbox },
    /** A server says that what was to be done at an address is done. An id that nobody knows is nobody's. */
    completed(member: Member, elicitationId: string, params: Buffer): void {
      visits.done(member.name, elicitationId, params);
      for (const live of lives.values()) {
        const { question } = live;
        const isIt =
          question.kind === 'elicitation' && question.mode === 'url' && question.elicitationId === elicitationId;
        if (isIt && live.isOf(member.name)) live.complete(params);
      }
    },
    noteVisits: (member: Member, call: Call, outcome: Outcome): void => visits.note(member.name, call, outcome),
    /** How many wait for an answer, here and in the daemons beside us. */
    count: (): number => open.size + rows.countOthers(),
    /** Nobody is asked any more, and whoever waits for an answer is told that none will come. */
    close(): void {
      isClosed = true;
      for (const live of [...lives.values()]) live.withdraw();
      inbox.close();
      validator.close();
    },
  };
}

const sizeOf = (question: Question): number => {
  if (question.kind === 'sampling') return question.request.length;
  if (question.kind === 'approval') return question.arguments.length;
  return question.mode === 'form' ? question.schema.length : question.url.length;
};
