// From what an answerer says to what the server hears. Whether an answer fits its question is judged here, the same way for
// hosts, services, rules and people; one that does not is the answerer's to mend, and the server never sees it.

import type { Answer } from '../calls/call.ts';
import { glob } from '../catalog/patterns.ts';
import type { AskRule } from '../config/schema.ts';
import { TroupeError } from '../protocol/failures.ts';
import { isJsonObject, member, spansOf, textAt } from '../protocol/json.ts';
import type { AskKind, AskOutcome, Question, Reply, Stage } from './ask.ts';
import { defaultsOf, readForm } from './forms/form.ts';
import type { Validator } from './forms/validator.ts';
import { checkResult, readSampling } from './models/messages.ts';

/** `server` is the one whose schema is checked: its slow schemas hold up no other server's. */
export type Judge = { readonly validator: Validator; readonly server: string };

const NOTHING = Buffer.from('{}');

/** What is wrong with a reply, naming the field; nothing when it may stand. */
export async function problemOf(
  question: Question,
  stage: Stage,
  reply: Reply,
  { validator, server }: Judge,
): Promise<string | undefined> {
  if (reply.action !== 'accept') return undefined;
  const { content } = reply;
  if (content && !isJsonObject(content)) return 'the content must be a JSON object';
  if (question.kind === 'elicitation' && question.mode === 'form')
    return validator.check(question.schema, content ?? NOTHING, server);
  if (question.kind !== 'sampling') return undefined;
  if (!content) return stage === 'answer' ? 'the content must be the message that answers' : undefined;
  if (stage === 'request' && isRequest(content)) {
    const read = readSampling(content);
    return typeof read === 'string' ? read : undefined;
  }
  return checkResult(question.request, content);
}

/**
 * What somebody says to a question: an action, and its content as it came; to sampling also the message alone.
 * Throws a TroupeError that says what to send.
 */
export function replyOf(body: Buffer, kind: AskKind | undefined): Reply {
  if (!isJsonObject(body)) throw new TroupeError('malformed', `the body must be a JSON object such as ${EXAMPLE}`);
  if (kind === 'sampling' && isMessage(body)) return { action: 'accept', content: body };
  const action = textAt(body, ['action']);
  if (action === 'decline' || action === 'cancel') return { action };
  if (action !== 'accept') throw new TroupeError('invalid', `action must be accept, decline or cancel: ${EXAMPLE}`);
  const [span, another] = spansOf(body, 'content');
  // Readers of JSON disagree on which of the two counts.
  if (another) throw new TroupeError('invalid', 'content is given twice; send one');
  return span ? { action, content: body.subarray(span.from, span.to) } : { action };
}

/** A CreateMessageResult without an action around it. */
export const isMessage = (body: Buffer): boolean =>
  isJsonObject(body) &&
  spansOf(body, 'action').length === 0 &&
  member(body, 'role') !== undefined &&
  member(body, 'content') !== undefined;

const EXAMPLE = '{"action":"accept","content":{…}}';

/** Edited params have messages; a result has none. */
export const isRequest = (content: Buffer): boolean => member(content, 'messages') !== undefined;

/**
 * What the configuration answers by itself: the first rule that fits the question. An address is never agreed to by a rule, and
 * no rule speaks for a model.
 */
export function ruledReply(rules: readonly AskRule[], question: Question, { server, tool }: About): Reply | undefined {
  const rule = rules.find(
    (each) =>
      (each.server === undefined || glob(each.server)(server)) &&
      (each.tool === undefined || glob(each.tool)(tool)) &&
      (each.kind === undefined || each.kind === question.kind),
  );
  if (!rule) return undefined;
  return rule.answer === 'defaults' ? defaultsFor(question) : { action: rule.answer };
}

type About = { readonly server: string; readonly tool: string };

function defaultsFor(question: Question): Reply | undefined {
  if (question.kind === 'approval') return { action: 'accept' };
  if (question.kind !== 'elicitation' || question.mode !== 'form') return undefined;
  const form = readForm(question.schema);
  const content = typeof form === 'string' ? undefined : defaultsOf(form);
  return content && { action: 'accept', content: Buffer.from(JSON.stringify(content)) };
}

/** What a server is told when its question has ended. */
export function answerOf(question: Question, outcome: AskOutcome, content: Buffer | undefined): Answer {
  if (question.kind === 'sampling')
    return outcome === 'answered' && content ? { ok: true, result: content } : rejected(WHY[outcome] ?? WHY.rejected);
  if (question.kind === 'elicitation' && question.mode === 'form' && outcome === 'accepted')
    return result(`{"action":"accept","content":${content ?? NOTHING}}`);
  return result(JSON.stringify({ action: ACTIONS[outcome] ?? 'cancel' }));
}

/** What a server is told when it is not known on whose behalf it asks. */
export const nobody = (question: Question): Answer =>
  question.kind === 'sampling' ? rejected(WHY.nobody) : result('{"action":"cancel"}');

export const refused = (code: number, message: string): Answer => ({
  ok: false,
  error: Buffer.from(JSON.stringify({ code, message })),
});

const rejected = (message: string): Answer => refused(-1, message);
const result = (text: string): Answer => ({ ok: true, result: Buffer.from(text) });

const ACTIONS: Partial<Record<AskOutcome, string>> = { accepted: 'accept', completed: 'accept', declined: 'decline' };

const WHY = {
  rejected: 'User rejected sampling request',
  expired: 'nobody answered the sampling request in time',
  withdrawn: 'the call it was asked for is over',
  nobody: 'nobody can be asked on whose behalf this was requested',
} as Partial<Record<AskOutcome, string>> & { readonly rejected: string; readonly nobody: string };
