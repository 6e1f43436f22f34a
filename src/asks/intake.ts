// Servers' questions as they come in: checked, attributed, asked on behalf of the calls they belong to, and answered once,
// whatever becomes of the call, the server or whoever was asked.

import type { Answer } from '../calls/call.ts';
import { withoutMember } from '../protocol/edit.ts';
import type { Attribution, Found } from '../servers/attribution.ts';
import type { Member } from '../servers/member.ts';
import type { Asked } from '../servers/session.ts';
import type { Question, Subject } from './ask.ts';
import type { Augmented } from './augmented/augmented.ts';
import { plainWay } from './augmented/way.ts';
import type { Wish } from './augmented/wish.ts';
import type { Limits } from './limits.ts';
import type { Live } from './live.ts';
import type { Opening } from './opening.ts';
import { isRefusal, readQuestion } from './reading.ts';
import { answerOf, nobody, refused } from './replies.ts';

export type IntakeOptions = {
  readonly attribution: Attribution;
  readonly augmented: Augmented;
  readonly limits: Limits;
  /** What a server may know of the directories that people work in. */
  readonly rootsFor: (member: Member) => Buffer;
  /** Nothing when no further one can be open. */
  readonly open: (member: Member, question: Question, about: About) => Live | undefined;
  /** Nobody is to answer it any more, though the server may still say that it is done. */
  readonly agreed: (live: Live, by: string) => void;
  readonly onTrouble: (error: unknown) => void;
};
/** What is known of a question that is about to be asked. */
export type About = Pick<Opening, 'subject' | 'principal' | 'tool' | 'asked' | 'onConsent' | 'onEnded'> &
  Pick<Subject, 'latestDeadline'> & {
    /** It is on the disk, or cannot be. */
    readonly onRecorded?: (isOnDisk: boolean) => void;
  };

export const TOO_MANY = 'too many questions are open; answer some, see troupe inbox';

export function createIntake(options: IntakeOptions) {
  const { attribution, augmented, limits, rootsFor, open, agreed, onTrouble } = options;

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
    const { method, origin, signal, answer } = asked;
    if (method === 'roots/list') return answer({ ok: true, result: rootsFor(member) });
    if (augmented.serve(member, asked)) return;
    if (limits.isTooFast(member)) return answer(refused(-32603, 'these are too many questions a second'));
    const params = withoutMember(asked.params, 'task'); // that is between the server and us
    const question = readQuestion(method, params, member.config.settings.sampling);
    if (isRefusal(question)) return answer(refused(question.code, question.message));
    const wish = augmented.wishOf(member, asked.params);
    if (wish && 'code' in wish) return answer(refused(wish.code, wish.message));
    let withdraw = (): void => {};
    const giveUp = attribution.settle(member, origin, (found) => {
      if (!found) return answer(wish ? noTask(nobody(question)) : nobody(question));
      withdraw = serve(member, { ...asked, params }, { question, wish, found });
    });
    const withdrawn = (): void => {
      giveUp();
      withdraw();
    };
    signal.addEventListener('abort', withdrawn, { once: true });
  }

  /** Asks on behalf of the calls that were found, which wait as long as they may at all. Returns how to withdraw it. */
  function serve(member: Member, asked: Asked, { question, wish, found }: Serving): () => void {
    const { method, params, answer } = asked;
    const way = wish ? augmented.begin(member, asked, question, wish) : plainWay(answer);
    if (!way) {
      answer(refused(-32603, TOO_MANY));
      return () => {};
    }
    const resumes = found.requests.map((request) => member.lane.suspend(request));
    const [request] = found.requests;
    const deadlines = found.requests.map(({ latestDeadline }) => latestDeadline);
    const subject = found.isOne && request ? { call: request.call, latestDeadline: request.latestDeadline } : undefined;
    const live: Live | undefined = open(member, question, {
      ...{ subject, principal: found.principal, asked: { method, params }, tool: subject?.call.name ?? '' },
      latestDeadline: Math.min(...deadlines, way.latestDeadline),
      onRecorded: way.recorded,
      // From here on it is the server's own business, and nobody else's to answer.
      onConsent(by) {
        way.answer(answerOf(question, 'accepted', undefined), 'accepted');
        if (live) agreed(live, by);
      },
      onEnded(ending) {
        for (const resume of [...resumes, ...endings]) resume();
        way.answer(ending.said ?? answerOf(question, ending.outcome, ending.content), ending.outcome);
      },
    });
    if (!live) {
      for (const resume of resumes) resume();
      way.refused(refused(-32603, TOO_MANY));
      return () => {};
    }
    way.opened(live.withdraw);
    // The last of its calls takes it along, unless the person is at an address, where things may take longer than the call.
    let left = found.requests.length;
    const over = () => --left === 0 && live.stage !== undefined && live.withdraw();
    const endings = found.requests.map((each) => member.lane.whenEnded(each, over));
    return live.withdraw;
  }

  return take;
}

type Serving = { readonly question: Question; readonly wish: Wish | undefined; readonly found: Found };

/** Who wants a task takes nothing else for one, so that a result which comes at once is an error there. */
const noTask = (answer: Answer): Answer =>
  answer.ok ? refused(-32603, 'nobody can be asked on whose behalf this was requested') : answer;
