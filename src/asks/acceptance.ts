// Of all answers to a question the first that the question allows stands: decided by the row, so that it holds between the
// daemons on a state directory too. Whoever comes second hears who was first.

import { TroupeError } from '../protocol/failures.ts';
import type { AskOutcome, Question, Reply, Stage } from './ask.ts';
import type { Validator } from './forms/validator.ts';
import type { Live } from './live.ts';
import type { Given } from './opening.ts';
import { problemOf } from './replies.ts';
import type { Loser, Rows } from './rows.ts';

export type AcceptanceOptions = {
  readonly rows: Rows;
  readonly validator: Validator;
  readonly onTrouble: (error: unknown) => void;
};
export type Acceptance = ReturnType<typeof createAcceptance>;

export function createAcceptance({ rows, validator, onTrouble }: AcceptanceOptions) {
  /** Claimed here this moment: nothing to be read in the rows. */
  const claiming = new Set<string>();

  async function mustFit(question: Question, stage: Stage, reply: Reply, server: string): Promise<void> {
    const problem = await problemOf(question, stage, reply, { validator, server });
    if (problem) throw new TroupeError('invalid', problem);
  }

  async function accept(live: Live, given: Given, stage: Stage | undefined): Promise<AskOutcome | 'open'> {
    if (live.isOver || stage === undefined) throw tooLate(live.id);
    await mustFit(live.question, stage, given.reply, live.view().server);
    claiming.add(live.id);
    try {
      const meant = await claim(live, given, stage);
      return settle(live, given, meant);
    } finally {
      claiming.delete(live.id);
    }
  }

  /** Resolves with the stage it was claimed at: a whole answer counts at any, until there is nothing left to answer. */
  async function claim(live: Live, given: Given, stage: Stage): Promise<Stage> {
    for (;;) {
      const meant = given.isWhole ? live.stage : stage;
      if (meant === undefined || live.isOver) throw tooLate(live.id);
      if (given.isWhole && meant === 'done') throw movedOn(live.id); // no answer says that an address was visited
      // A disk that refuses cannot be asked who was first; then it is whoever comes first here.
      const loser = await rows.claim(live.id, meant, given.reply, given.by).catch(onTrouble);
      if (!loser) return meant;
      if (loser.status !== 'open') throw tooLate(live.id, loser);
      if (!given.isWhole || live.stage === meant) throw movedOn(live.id);
    }
  }

  /** The answer stands, if what it is an answer to is still what is asked. */
  function settle(live: Live, given: Given, stage: Stage): AskOutcome | 'open' {
    if (live.isOver || live.stage === undefined) throw tooLate(live.id);
    if (live.stage !== stage) {
      rows.reopen(live.view(), live.asked()); // it was claimed for nothing
      throw movedOn(live.id);
    }
    live.take(given);
    if (live.outcome) return live.outcome;
    if (live.stage === undefined) return 'accepted';
    rows.reopen(live.view(), live.asked());
    return 'open';
  }

  function tooLate(id: string, found: Loser | undefined = rows.find(id)): TroupeError {
    const who = found?.answered_by;
    const name = id.slice(0, 8);
    if (who) return new TroupeError('answered', `question ${name} was already answered by ${who}`);
    const how = found?.outcome ? ENDED[found.outcome] : undefined;
    return new TroupeError('answered', `question ${name} is over: ${how ?? 'its call has ended'}`);
  }

  /** Answers that came through another daemon. */
  function collect(lives: ReadonlyMap<string, Live>): void {
    for (const { id, stage, reply, by } of rows.answered()) {
      const live = lives.get(id);
      if (!live || claiming.has(id)) continue;
      try {
        settle(live, { reply, by, isWhole: false }, stage);
      } catch (error) {
        onTrouble(error); // it ended this very moment
      }
    }
  }

  return { accept, mustFit, tooLate, collect };
}

export const movedOn = (id: string): TroupeError =>
  new TroupeError('answered', `question ${id.slice(0, 8)} has moved on; look at it again`);

const ENDED: Record<string, string> = {
  expired: 'nobody answered in time',
  withdrawn: 'its call has ended',
  interrupted: 'troupe was restarted, and its call is lost',
};
