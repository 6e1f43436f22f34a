// What the configuration answers by itself: the first rule that fits the question. An address is never agreed to by a rule,
// and no rule speaks for a model.

import { glob } from '../catalog/naming.ts';
import type { AskRule } from '../config/schema.ts';
import type { Question, Reply } from './ask.ts';
import { defaultsOf, readForm } from './forms/form.ts';

export type About = { readonly server: string; readonly tool: string };

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

function defaultsFor(question: Question): Reply | undefined {
  if (question.kind === 'approval') return { action: 'accept' };
  if (question.kind !== 'elicitation' || question.mode !== 'form') return undefined;
  const form = readForm(question.schema);
  const content = typeof form === 'string' ? undefined : defaultsOf(form);
  return content && { action: 'accept', content: Buffer.from(JSON.stringify(content)) };
}
