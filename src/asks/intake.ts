// Servers' questions as they come in: within limits, checked, attributed, asked on behalf of the calls they belong to, and
// answered once, whatever becomes of the call, the server or whoever was asked.

import type { Answer } from '../calls/call.ts';
import { asksUntil, isUnheard } from '../calls/request.ts';
import { withoutMember } from '../protocol/edit.ts';
import type { Attribution, Found } from '../servers/attribution.ts';
import type { Asked } from '../servers/connection/session.ts';
import type { Member } from '../servers/member.ts';
import { type Allowance, allowance } from '../telemetry/allowance.ts';
import type { AskActor } from './actor.ts';
import type { Opening, Question, Subject } from './ask.ts';
import type { Pace } from './pace.ts';
import { plainReply, type ServerReply, type TaskWanted } from './question-task.ts';
import type { QuestionTasks } from './question-tasks.ts';
import { isRefusal, readQuestion } from './reading.ts';
import { answerOf, nobody, refused } from './replies.ts';

export type IntakeOptions = {
  readonly attribution: Attribution;
  readonly tasks: QuestionTasks;
  readonly limits: Limits;
  /** By the name of the process. */
  readonly pace: Pace<string>;
  /** What a server may know of the directories that people work in. */
  readonly rootsFor: (member: Member) => Buffer;
  /** Nothing when no further ask can be open. */
  readonly open: (member: Member, question: Question, about: About) => AskActor | undefined;
  /** The command that answers the question of that id. */
  readonly commandFor: (id: string) => string;
  readonly onTrouble: (error: unknown) => void;
};
/** What is known of a question that is about to be asked. */
export type About = Pick<Opening, 'subject' | 'waiting' | 'principal' | 'tool' | 'asked' | 'waiter'> &
  Pick<Subject, 'latestDeadline'>;

export const TOO_MANY = 'too many questions are open; answer some, see troupe inbox';

export function createIntake(options: IntakeOptions) {
  const { attribution, tasks, limits, rootsFor, onTrouble } = options;

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
    if (tasks.serve(member, asked)) return;
    if (limits.isTooFast(member)) return answer(refused(-32603, 'these are too many questions a second'));
    const params = withoutMember(asked.params, 'task'); // that is between the server and us
    const question = readQuestion(method, params, member.config.settings.sampling);
    if (isRefusal(question)) return answer(refused(question.code, question.message));
    const task = tasks.wanted(member, asked.params);
    if (task && 'code' in task) return answer(refused(task.code, task.message));
    let withdraw = (): void => {};
    const giveUp = attribution.settle(member, origin, (found) => {
      if (!found || isForNobody(member, found)) return answer(task ? noTask(nobody(question)) : nobody(question));
      if (!limits.enter(member)) return answer(refused(-32603, TOO_MANY));
      withdraw = serve(options, member, { asked: { ...asked, params }, question, task, found });
    });
    const withdrawn = (): void => {
      giveUp();
      withdraw();
    };
    signal.addEventListener('abort', withdrawn, { once: true });
  }

  return take;
}

/** The callers of all these calls have left. What waits for the answer to a question would never go on, so it is given up. */
function isForNobody({ lane }: Member, { requests }: Found): boolean {
  if (requests.length === 0 || !requests.every(isUnheard)) return false;
  for (const request of requests) lane.cancel(request, 'its caller went away, and it asks something');
  return true;
}

type Serving = {
  readonly asked: Asked;
  readonly question: Question;
  readonly task: TaskWanted | undefined;
  readonly found: Found;
};

/**
 * Asks on behalf of the calls that were found, which wait as long as they may at all: at once, or when it is the server's turn.
 * Returns how to withdraw it.
 */
function serve(options: IntakeOptions, member: Member, { asked, question, task, found }: Serving): () => void {
  const { tasks, open, commandFor, limits, pace, onTrouble } = options;
  let ask: AskActor | undefined;
  let isOver = false;
  const withdraw = (): void => (ask ? ask.withdraw() : end((to) => to.answer(...WITHDRAWN(question))));
  const reply = task ? tasks.begin(member, asked, { ...task, question, withdraw }) : plainReply(asked.answer);
  if (!reply) {
    limits.leave(member);
    asked.answer(refused(-32603, TOO_MANY));
    return () => {};
  }
  const letGo = holdCalls(member, found, () => (!ask || ask.stage !== undefined) && withdraw());
  const release = (): void => {
    letGo();
    limits.leave(member);
  };
  /** Nobody was asked. */
  function end(say: (to: ServerReply) => void): void {
    if (isOver || !reply) return;
    isOver = true;
    release();
    say(reply);
  }
  pace.run(member.name, () => {
    if (isOver) return;
    try {
      ask = open(member, question, aboutOf(question, asked, found, reply, release));
    } catch (error) {
      onTrouble(error);
    }
    if (ask) for (const request of found.requests) request.question = commandFor(ask.id);
    else end((to) => to.refused(refused(-32603, TOO_MANY)));
  });
  return withdraw;
}

/** What a server hears of a question that was withdrawn before anybody was asked. */
const WITHDRAWN = (question: Question) => [answerOf(question, 'withdrawn', undefined), 'withdrawn'] as const;

function aboutOf(question: Question, asked: Asked, found: Found, reply: ServerReply, release: () => void): About {
  const { requests, principal, isOne } = found;
  const [request] = requests;
  const subject = isOne && request ? { call: request.call, latestDeadline: asksUntil(request) } : undefined;
  return {
    subject,
    waiting: requests.map(({ call }) => call),
    principal,
    tool: subject?.call.name ?? '',
    asked: { method: asked.method, params: asked.params },
    latestDeadline: Math.min(...requests.map(asksUntil), reply.latestDeadline),
    waiter: {
      recorded: reply.recorded,
      // From here on it is the server's own business, and nobody else's to answer.
      consented: () => reply.answer(answerOf(question, 'accepted', undefined), 'accepted'),
      ended({ outcome, content, said }) {
        if (outcome !== 'expired') for (const each of requests) each.question = '';
        release();
        reply.answer(said ?? answerOf(question, outcome, content), outcome);
      },
      left: release,
    },
  };
}

/**
 * The last of its calls takes a question along, unless the person is at an address, where things may take longer than the call.
 * Returns how to let the calls go on with their time.
 */
function holdCalls({ lane }: Member, { requests }: Found, onLastEnded: () => void): () => void {
  const resumes = requests.map((request) => lane.suspend(request));
  const running = new Set(requests);
  const stops = requests.map((request) =>
    lane.whenEnded(request, () => {
      running.delete(request);
      if (running.size === 0) onLastEnded();
    }),
  );
  return () => {
    for (const letGo of [...resumes, ...stops]) letGo();
  };
}

/** A server that wants a task takes nothing else for one, so that a result which comes at once is an error there. */
const noTask = (answer: Answer): Answer =>
  answer.ok ? refused(-32603, 'nobody can be asked on whose behalf this was requested') : answer;

// ── What servers may have open ───────────────────────────────────────────────

export type Limits = ReturnType<typeof createLimits>;

/** Far more than people answer; hosts that answer by themselves are no flood yet. */
const PER_SECOND = 1_000;
const MAX_BYTES = 16 * 2 ** 20;
/** One process leaves room for the questions of others, and its end takes not too many along at once. */
const MAX_OF_PROCESS = 250;

/** A server that asks too much is refused before it costs anybody else anything. */
export function createLimits(maxOpen: () => number) {
  const paces = new WeakMap<Member, Allowance>();
  const openOf = new WeakMap<Member, number>();
  const bytesOf = new Map<string, number>();
  let open = 0;

  return {
    /** Whether a process asks too fast. Asking counts, whatever becomes of it. */
    isTooFast(member: Member): boolean {
      const pace = paces.get(member) ?? allowance(PER_SECOND);
      paces.set(member, pace);
      return !pace.take();
    },
    /** Takes room for one more question of that process, which counts until it is over; false when there is none. */
    enter(member: Member): boolean {
      const open = openOf.get(member) ?? 0;
      if (open >= MAX_OF_PROCESS) return false;
      openOf.set(member, open + 1);
      return true;
    },
    leave(member: Member): void {
      openOf.set(member, (openOf.get(member) ?? 1) - 1);
    },
    /** Takes room for one more question of that server; false when there is none. */
    take(server: string, bytes: number): boolean {
      const held = bytesOf.get(server) ?? 0;
      if (open >= maxOpen() || (held > 0 && held + bytes > MAX_BYTES)) return false;
      bytesOf.set(server, held + bytes);
      open++;
      return true;
    },
    /** Gives the room of one question back. */
    release(server: string, bytes: number): void {
      open--;
      const left = (bytesOf.get(server) ?? bytes) - bytes;
      if (left > 0) bytesOf.set(server, left);
      else bytesOf.delete(server);
    },
  };
}
