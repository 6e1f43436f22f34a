// The inbox: every question that is open on this state directory, whichever daemon asks it, and the way to answer one. Of all
// answers to a question the first that fits stands: decided by the row, so that it holds between the daemons on a state
// directory too. A second answerer hears who was first.

import { TroupeError } from '../protocol/failures.ts';
import type { AskRow } from '../store/rows.ts';
import type { World } from '../world/world.ts';
import { type AskActor, eventOf } from './actor.ts';
import type { Answerer, AskOutcome, AskView, Inbox, Offer, Question, Reply, Stage } from './ask.ts';
import type { Validator } from './forms/validator.ts';
import { problemOf } from './replies.ts';
import { type AskRows, type Loser, questionOf } from './rows.ts';

export type InboxOptions = {
  readonly asks: ReadonlyMap<string, AskActor>;
  readonly rows: AskRows;
  readonly validator: Validator;
  readonly world: World;
  /** Tells the other daemons that there is something to read in the rows. */
  readonly nudge: () => void;
  readonly onTrouble: (error: unknown) => void;
};

/** How long a watcher of the inbox waits, and whoever answers a question of another daemon. */
const PATIENCE_MS = 10_000;
const LOOK_MS = 1_000;
const POLL_MS = 25;

export function createInbox(options: InboxOptions) {
  const { asks, rows, world, nudge } = options;
  const changes = createChanges(world);
  const judge = createJudge(options);
  // Where the bus does not tell of an answer that came through another daemon, the rows do.
  const stopLooking = world.every(LOOK_MS, () => asks.size > 0 && judge.collect());

  async function answer(id: string, reply: Reply, { by, principal, stage }: Answerer): Promise<AskOutcome | 'open'> {
    const ask = asks.get(id);
    const row = ask ? undefined : rows.find(id);
    const whose = ask?.opening.principal ?? row?.principal;
    if (whose === undefined || (principal !== undefined && principal !== whose)) throw unknown(id);
    const wanted = ask ? ask.stage : row?.status === 'open' ? row.stage : undefined;
    // A no counts for all stages that are still to come; a yes only for what was seen.
    const seen = stage ?? (reply.action === 'accept' ? 'answer' : wanted);
    if (wanted !== undefined && wanted !== seen) throw movedOn(id);
    if (ask) return judge.accept(ask, { reply, by, isWhole: false }, ask.stage);
    return answerThere(row as AskRow, reply, by);
  }

  /** Another daemon asks it: the row carries the answer there. */
  async function answerThere(row: AskRow, reply: Reply, by: string): Promise<AskOutcome | 'open'> {
    const view = row.status === 'open' ? rows.viewOf(row) : undefined;
    if (!view || !rows.isServed(row)) throw judge.tooLate(row.id, row);
    await judge.mustFit(questionOf(view), view.stage, reply, row.server);
    const loser = await rows.claim(row.id, view.stage, reply, by);
    if (loser) throw loser.status === 'open' ? movedOn(row.id) : judge.tooLate(row.id, loser);
    nudge();
    const deadline = world.now() + PATIENCE_MS;
    while (world.now() < deadline) {
      const found = rows.find(row.id);
      if (found?.status === 'ended') return found.outcome as AskOutcome;
      if (found?.status === 'open') return 'open';
      await new Promise<void>((resolve) => void world.after(POLL_MS, resolve));
    }
    throw new TroupeError('unavailable', `the daemon that asked ${row.id.slice(0, 8)} does not take the answer`);
  }

  function list(principal?: string): AskView[] {
    const ours = [...asks.values()].filter(({ stage }) => stage !== undefined).map((ask) => ask.view());
    return [...ours, ...rows.ofOthers()]
      .filter((view) => principal === undefined || view.principal === principal)
      .sort((a, b) => a.openedAt - b.openedAt);
  }

  return {
    list,
    answer,
    asked(id: string) {
      const ask = asks.get(id);
      const row = ask ? undefined : rows.find(id);
      return ask ? ask.asked() : row?.status === 'open' ? rows.askedOf(row) : undefined;
    },
    get version() {
      return changes.version();
    },
    changed: changes.after,
    touch: changes.touch,
    /** An answer of a host, a service, a rule or a model. */
    accept: (ask: AskActor, offer: Offer) => judge.accept(ask, offer, 'answer'),
    /** Another daemon has opened, answered or closed something. */
    look(): void {
      judge.collect();
      changes.touch();
    },
    close(): void {
      stopLooking();
      changes.touch();
    },
  } satisfies Inbox & Record<string, unknown>;
}

/** Counts the changes of the list, and wakes whoever waits for the next one. */
function createChanges(world: World) {
  const waiting = new Set<() => void>();
  let version = 1;
  return {
    version: () => version,
    touch(): void {
      version++;
      for (const wake of [...waiting]) wake();
    },
    async after(since: number): Promise<void> {
      if (since !== version) return;
      await new Promise<void>((resolve) => {
        const wake = (): void => {
          cancel();
          waiting.delete(wake);
          resolve();
        };
        const cancel = world.after(PATIENCE_MS, wake);
        waiting.add(wake);
      });
    },
  };
}

type JudgeOptions = Pick<InboxOptions, 'asks' | 'rows' | 'validator' | 'onTrouble'>;

function createJudge({ asks, rows, validator, onTrouble }: JudgeOptions) {
  async function mustFit(question: Question, stage: Stage, reply: Reply, server: string): Promise<void> {
    const problem = await problemOf(question, stage, reply, { validator, server });
    if (problem) throw new TroupeError('invalid', problem);
  }

  async function accept(ask: AskActor, offer: Offer, stage: Stage | undefined): Promise<AskOutcome | 'open'> {
    if (ask.isOver || stage === undefined) throw tooLate(ask.id);
    await mustFit(ask.opening.question, stage, offer.reply, ask.opening.server);
    return settle(ask, offer, await claim(ask, offer, stage));
  }

  /** Resolves with the stage at which the row was claimed: a whole answer counts at any, until there is none left. */
  async function claim(ask: AskActor, { reply, by, isWhole }: Offer, stage: Stage): Promise<Stage> {
    for (;;) {
      const meant = isWhole ? ask.stage : stage;
      if (meant === undefined || ask.isOver) throw tooLate(ask.id);
      if (isWhole && meant === 'done') throw movedOn(ask.id); // no answer says that an address was visited
      // A disk that refuses cannot be asked who was first; then it is whoever comes first here.
      const loser = await rows.claim(ask.id, meant, reply, by).catch(onTrouble);
      if (!loser) return meant;
      if (loser.status !== 'open') throw tooLate(ask.id, loser);
      if (!isWhole || ask.stage === meant) throw movedOn(ask.id);
    }
  }

  /** The offer has won the row. If the question has moved on meanwhile, its chart gives the row back. */
  function settle(ask: AskActor, offer: Offer, stage: Stage): AskOutcome | 'open' {
    if (ask.isOver || ask.stage === undefined) throw tooLate(ask.id);
    const isStale = ask.stage !== stage;
    ask.send(eventOf(offer, stage));
    if (isStale) throw movedOn(ask.id);
    return ask.outcome ?? (ask.stage === undefined ? 'accepted' : 'open');
  }

  function tooLate(id: string, found: Loser | undefined = rows.find(id)): TroupeError {
    const who = found?.answered_by;
    const name = id.slice(0, 8);
    if (who) return new TroupeError('answered', `question ${name} was already answered by ${who}`);
    const how = found?.outcome ? ENDED[found.outcome] : undefined;
    return new TroupeError('answered', `question ${name} is over: ${how ?? 'its call has ended'}`);
  }

  /** Takes the answers that came through another daemon. */
  function collect(): void {
    for (const { id, stage, reply, by } of rows.answered()) {
      const ask = asks.get(id);
      if (!ask) continue;
      try {
        settle(ask, { reply, by, isWhole: false }, stage);
      } catch (error) {
        onTrouble(error); // it ended this very moment
      }
    }
  }

  return { accept, mustFit, tooLate, collect };
}

const ENDED: Record<string, string> = {
  expired: 'nobody answered in time',
  withdrawn: 'its call has ended',
  interrupted: 'troupe was restarted, and its call is lost',
};

const movedOn = (id: string): TroupeError =>
  new TroupeError('answered', `question ${id.slice(0, 8)} has moved on; look at it again`);

const unknown = (id: string): TroupeError =>
  new TroupeError('unknownName', `there is no question ${id.slice(0, 64)}; troupe inbox lists those that are open`);
