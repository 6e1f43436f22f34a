// Every open ask of this daemon. Servers' questions come in here, are attributed and checked, and each becomes an actor with
// a row; calls that wait for a word open theirs too. What the charts of asks order for the whole daemon (rows, news, room) is
// done here.

import type { Logger } from 'pino';
import type { Call, Outcome } from '../calls/call.ts';
import type { Config } from '../config/schema.ts';
import { sentence } from '../protocol/failures.ts';
import type { Attribution } from '../servers/attribution.ts';
import type { Member } from '../servers/member.ts';
import type { World } from '../world/world.ts';
import { type AskActor, type AskPorts, startAsk } from './actor.ts';
import type { AskView, Ending, Question } from './ask.ts';
import type { Answerers } from './bus.ts';
import type { Validator } from './forms/validator.ts';
import { createInbox } from './inbox.ts';
import { type About, createIntake, createLimits, TOO_MANY } from './intake.ts';
import type { Models } from './models/models.ts';
import { answerCommand } from './notice.ts';
import { createPace, type Pace } from './pace.ts';
import { createQuestionTasks } from './question-tasks.ts';
import type { AskRows } from './rows.ts';
import type { OpenAsk } from './waiting/permissions.ts';
import { createVisits } from './waiting/visits.ts';

export type AsksOptions = {
  readonly config: () => Pick<Config, 'asks'>;
  /** The daemon's name, where it is not the only one on its state directory. */
  readonly instance?: string | undefined;
  readonly world: World;
  readonly rows: AskRows;
  readonly validator: Validator;
  readonly answerers: Answerers;
  readonly models: Models;
  readonly attribution: Attribution;
  /** What a server may know of the directories that people work in. */
  readonly rootsFor: (member: Member) => Buffer;
  readonly onOpened: (view: AskView) => void;
  readonly onClosed: (view: AskView, ending: Ending) => void;
  /** Another daemon on this state directory has something to read in the rows. */
  readonly nudge: () => void;
  readonly logger: Logger;
};
export type Asks = ReturnType<typeof createAsks>;

/** The server gets its answer this long before its call must end, so that it can make something of it. */
const MARGIN_MS = 2_000;
/** To open an ask takes about a millisecond, and so does its way to the inbox once it is on the disk. */
const STEPS_PER_TURN = 8;
/** Addresses that people have agreed to visit, and of which nothing was heard since. */
const MAX_VISITED = 1_000;

export function createAsks(options: AsksOptions) {
  const { config, world, rows, validator, logger, nudge } = options;
  const asks = new Map<string, AskActor>();
  const limits = createLimits(() => config().asks.maxOpen);
  const visits = createVisits();
  const onTrouble = (error: unknown) => logger.warn(sentence(error));
  const inbox = createInbox({ asks, rows, validator, world, nudge, onTrouble });
  const pace = createPace<string>(STEPS_PER_TURN, world);
  const ports = portsOf(options, { asks, limits, inbox, pace, onTrouble });
  const closing = new AbortController();
  const commandFor = (id: string): string => answerCommand(id, options.instance);

  function ask(member: Member, question: Question, about: About): AskActor | undefined {
    const { server, name: instance } = member;
    if (closing.signal.aborted || !limits.take(server, sizeOf(question))) return undefined;
    const { trust: isTrusted, sampling: budget } = member.config.settings;
    const expiryMs = expiryOf(config().asks.timeoutMs, about.latestDeadline - world.now());
    const opened = startAsk(ports, { question, ...about, server, instance, expiryMs, isTrusted, budget });
    asks.set(opened.id, opened);
    return opened;
  }

  const take = createIntake({
    attribution: options.attribution,
    tasks: createQuestionTasks(() => config().asks, world),
    limits,
    pace,
    rootsFor: options.rootsFor,
    open: ask,
    commandFor,
    onTrouble,
  });

  /** A call that has not been sent, or was sent back, waits for a word. */
  const wait: OpenAsk = (question, subject, member, onEnded) => {
    const { call, latestDeadline } = subject;
    const waiter = {
      ended: ({ outcome, by }: Ending, id: string) => onEnded(outcome, by, commandFor(id)),
    };
    const opened = ask(member, question, {
      subject,
      waiting: [call],
      principal: call.principal,
      tool: call.name,
      latestDeadline,
      waiter,
    });
    if (!opened) queueMicrotask(() => onEnded('expired', TOO_MANY, ''));
    return () => opened?.withdraw();
  };

  /** A server says that what was to be done at an address is done. An id that belongs to no question of it is ignored. */
  function completed(member: Member, elicitationId: string, params: Buffer): void {
    visits.done(member.name, elicitationId, params);
    for (const { opening, send } of asks.values()) {
      const { question, instance } = opening;
      if (question.kind !== 'elicitation' || question.mode !== 'url' || instance !== member.name) continue;
      if (question.elicitationId === elicitationId) send({ type: 'completed', params });
    }
  }

  return {
    take,
    wait,
    inbox,
    completed,
    noteVisits: (member: Member, call: Call, outcome: Outcome): void => visits.note(member.name, call, outcome),
    /** How many wait for an answer, here and in the daemons beside us. */
    count: (): number => [...asks.values()].filter(({ stage }) => stage !== undefined).length + rows.countOthers(),
    /** Nobody is asked any more, and whoever waits for an answer is told that none will come. */
    close(): void {
      closing.abort();
      for (const each of [...asks.values()]) each.withdraw();
      inbox.close();
      validator.close();
    },
  };
}

type Parts = {
  readonly asks: Map<string, AskActor>;
  readonly limits: ReturnType<typeof createLimits>;
  readonly inbox: ReturnType<typeof createInbox>;
  readonly pace: Pace<string>;
  readonly onTrouble: (error: unknown) => void;
};

/** What the chart of an ask orders, as far as it is about more than that one ask. */
function portsOf(options: AsksOptions, { asks, limits, inbox, pace, onTrouble }: Parts): AskPorts {
  const { config, world, answerers, models, rows, onOpened, onClosed } = options;

  /** Nobody can answer the ask any more. */
  function close(ask: AskActor, ending: Ending): void {
    limits.release(ask.opening.server, sizeOf(ask.opening.question));
    rows.end(ask.id, ending.outcome, ending.by);
    onClosed(ask.view(), ending);
    inbox.touch();
  }

  return {
    world,
    settings: () => config().asks,
    instance: options.instance,
    answerers,
    models,
    accept: inbox.accept,
    inTurn: ({ opening }, work) => pace.run(opening.instance, work),
    record: (ask, view) => rows.add(view, ask.asked()),
    opened: (_, view) => onOpened(view),
    shown(ask, view) {
      rows.update(view, ask.asked());
      inbox.touch();
    },
    reopened(ask, view) {
      rows.reopen(view, ask.asked());
      inbox.touch();
    },
    /** An address that somebody visits is kept until the server says that it is done, but not for ever. */
    consented(ask, by) {
      close(ask, { outcome: 'accepted', by });
      const visited = [...asks.values()].filter(({ stage }) => stage === undefined);
      if (visited.length > MAX_VISITED) visited[0]?.withdraw();
    },
    /** The waiter is told whatever becomes of the row and the news. */
    concluded(ask, ending) {
      asks.delete(ask.id);
      try {
        close(ask, ending);
      } finally {
        ask.opening.waiter.ended(ending, ask.id);
      }
    },
    forgotten(ask) {
      asks.delete(ask.id);
      ask.opening.waiter.left?.();
    },
    onTrouble,
  };
}

/** A little before the call itself must end. */
function expiryOf(timeoutMs: number, mostMs: number): number {
  return Math.max(1, Math.round(Math.min(timeoutMs, mostMs - Math.min(MARGIN_MS, mostMs / 10))));
}

const sizeOf = (question: Question): number => {
  if (question.kind === 'sampling') return question.request.length;
  if (question.kind === 'approval') return question.arguments.length;
  return question.mode === 'form' ? question.schema.length : question.url.length;
};
