// A server that refuses a call until an address was visited (-32042, URL elicitation required). A caller that does not know how
// to handle that has a person asked in its stead, and when all is done the call is made once more; a host that knows is told
// when what happens there is done, long after its call was refused.

import type { Call, Outcome } from '../../calls/call.ts';
import { elements, member, textAt } from '../../protocol/json.ts';
import { mayAsk } from '../../protocol/methods.ts';
import type { Question } from '../ask.ts';
import { isRefusal, MESSAGE_CHARACTERS, readUrl } from '../reading.ts';

type UrlQuestion = Extract<Question, { mode: 'url' }>;

const REQUIRED = '-32042';
const MAX_ELICITATIONS = 10;
const MAX_VISITS = 1_000;

/** What must be visited, each once; undefined when the server's error is for the caller as it is. */
export function requiredBy({ method, door, handlesUrls }: Call, error: Buffer): UrlQuestion[] | undefined {
  if (handlesUrls || door === 'troupe' || !mayAsk(method)) return undefined;
  const list = elicitationsOf(error);
  return list && list.length <= MAX_ELICITATIONS ? questionsOf(list) : undefined;
}

/** What a server that refuses a call so wants visited; undefined when it refuses it for another reason. */
function elicitationsOf(error: Buffer): Buffer[] | undefined {
  if (member(error, 'code')?.toString('latin1') !== REQUIRED) return undefined;
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

/** Hosts that will be told when what a server wanted visited is done. */
export function createVisits() {
  const tells = new Map<string, (params: Buffer) => void>();
  const keyOf = (instance: string, id: string) => `${instance} ${id}`;

  return {
    /** A call has failed; if for that reason, its host will be told. */
    note(instance: string, { onElicited }: Call, outcome: Outcome): void {
      const error = outcome.ok ? undefined : outcome.failure.error;
      if (!onElicited || !error) return;
      for (const each of elicitationsOf(error)?.slice(0, MAX_ELICITATIONS) ?? []) {
        const id = textAt(each, ['elicitationId']);
        if (id) tells.set(keyOf(instance, id), onElicited);
        const [oldest] = tells.keys();
        if (tells.size > MAX_VISITS && oldest !== undefined) tells.delete(oldest);
      }
    },
    done(instance: string, id: string, params: Buffer): void {
      const key = keyOf(instance, id);
      tells.get(key)?.(params);
      tells.delete(key);
    },
  };
}
