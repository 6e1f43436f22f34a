// What a server asks, read and checked before anybody sees it. What cannot be asked is refused with the code that the
// specification has for it, and the sentence goes back to the server.

import type { SamplingBudget } from '../config/schema.ts';
import { member, members, stringOf, textAt } from '../protocol/json.ts';
import { readAddress } from './address.ts';
import type { Question } from './ask.ts';
import { readForm } from './forms/form.ts';
import { readSampling } from './models/messages.ts';

export type Refusal = { readonly code: number; readonly message: string };

const INVALID = -32602;
export const MESSAGE_CHARACTERS = 4_096;
const ID_CHARACTERS = 1_024;
const EMPTY = Buffer.from('{}');

/** The question, or why it is refused; methods that we do not know are refused too. */
export function readQuestion(method: string, params: Buffer, limits: SamplingBudget): Question | Refusal {
  if (hasRepeatedMember(params)) return invalid('the params have a member twice'); // what is checked must be what is shown
  if (method === 'elicitation/create') return readElicitation(params);
  if (method === 'sampling/createMessage') return readRequest(params, limits);
  return { code: -32601, message: `troupe does not answer ${method.slice(0, 60)}` };
}

export const isRefusal = (read: Question | Refusal): read is Refusal => 'code' in read;

function readElicitation(params: Buffer): Question | Refusal {
  const text = textAt(params, ['message']);
  if (text === undefined) return invalid('an elicitation wants a message');
  const message = text.slice(0, MESSAGE_CHARACTERS);
  const mode = member(params, 'mode');
  const name = mode ? stringOf(mode) : 'form';
  if (name === 'form') return readFormOf(message, member(params, 'requestedSchema') ?? EMPTY);
  if (name !== 'url') return invalid('the mode of an elicitation is form or url');
  return readUrl(message, textAt(params, ['url']), textAt(params, ['elicitationId']), false);
}

function readFormOf(message: string, schema: Buffer): Question | Refusal {
  const form = readForm(schema);
  return typeof form === 'string' ? invalid(form) : { kind: 'elicitation', mode: 'form', message, schema };
}

/** An address that a person shall visit; `isRequired` where a call was refused until then. */
export function readUrl(
  message: string,
  url: string | undefined,
  elicitationId: string | undefined,
  isRequired: boolean,
): Question | Refusal {
  if (!elicitationId || elicitationId.length > ID_CHARACTERS)
    return invalid('a url elicitation wants an elicitationId');
  if (url === undefined || readAddress(url) === undefined)
    return invalid('a url elicitation wants the address of a web page');
  return { kind: 'elicitation', mode: 'url', message, url, elicitationId, isRequired };
}

function readRequest(params: Buffer, { maxIterations }: SamplingBudget): Question | Refusal {
  const read = readSampling(params);
  if (typeof read === 'string') return invalid(read);
  if (read.iterations > maxIterations)
    return { code: -1, message: `this conversation has used tools ${maxIterations} times, which is the limit` };
  return { kind: 'sampling', message: read.message, request: params };
}

function hasRepeatedMember(object: Buffer): boolean {
  const keys = [...members(object)].map(([key]) => key);
  return new Set(keys).size < keys.length;
}

const invalid = (message: string): Refusal => ({ code: INVALID, message });
