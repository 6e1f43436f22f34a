// A server that refuses a call until an address was visited (-32042, URL elicitation required) for a caller that does not know
// how to handle that: a person is asked instead, and when all is done the call is made once more.

import type { Call, Outcome } from '../../calls/call.ts';
import { elements, member, textAt } from '../../protocol/json.ts';
import { mayAsk } from '../../protocol/methods.ts';
import type { AskOutcome, Question } from '../ask.ts';
import { isRefusal, MESSAGE_CHARACTERS, readUrl } from '../reading.ts';

type UrlQuestion = Extract<Question, { mode: 'url' }>;

const REQUIRED = '-32042';
export const MAX_ELICITATIONS = 10;

/** What must be visited, each once; undefined when the outcome is for the caller as it is. */
export function requiredOf({ method, door, handlesUrls }: Call, outcome: Outcome): UrlQuestion[] | undefined {
  if (outcome.ok || handlesUrls || door === 'troupe' || !mayAsk(method)) return undefined;
  const list = elicitationsOf(outcome);
  return list && list.length <= MAX_ELICITATIONS ? questionsOf(list) : undefined;
}

/** What a server that refuses a call so wants visited; undefined when it refuses it for another reason. */
export function elicitationsOf(outcome: Outcome): Buffer[] | undefined {
  const error = outcome.ok ? undefined : outcome.failure.error;
  if (!error || member(error, 'code')?.toString('latin1') !== REQUIRED) return undefined;
  const data = member(error, 'data');
  const list = data && member(data, 'elicitations');
  const found = list ? [...elements(list)] : [];
  return found.length > 0 ? found : undefined;
}

function questionsOf(list: readonly Buffer[]): UrlQuestion[] | undefined {
  const questions = new Map<string, UrlQuestion>();
  for (const each of list) {
    const question = questionOf(each);
    if (!question) return undefined;
    questions.set(question.elicitationId, question);
  }
  return [...questions.values()];
}

function questionOf(elicitation: Buffer): UrlQuestion | undefined {
  const message = textAt(elicitation, ['message'])?.slice(0, MESSAGE_CHARACTERS);
  if (message === undefined || textAt(elicitation, ['mode']) !== 'url') return undefined;
  const read = readUrl(message, textAt(elicitation, ['url']), textAt(elicitation, ['elicitationId']), true);
  return !isRefusal(read) && read.kind === 'elicitation' && read.mode === 'url' ? read : undefined;
}

export type OpenOne = (question: Question, onEnded: (outcome: AskOutcome) => void) => () => void;

/** Told once whether all was done; the first that was not ends the others. Returns how to withdraw them all. */
export function askAll(questions: readonly Question[], open: OpenOne, onDone: (isDone: boolean) => void): () => void {
  const withdrawals = new Set<() => void>();
  let left = questions.length;
  let isOver = false;
  const withdraw = (): void => {
    isOver = true;
    for (const each of [...withdrawals]) each();
  };
  const ended = (outcome: AskOutcome): void => {
    if (isOver || (outcome === 'completed' && --left > 0)) return;
    withdraw();
    onDone(outcome === 'completed');
  };
  for (const question of questions) {
    if (isOver) break;
    let isOpen = true;
    const close = open(question, (outcome) => {
      isOpen = false;
      withdrawals.delete(close);
      ended(outcome);
    });
    if (isOpen) withdrawals.add(close);
  }
  return withdraw;
}
