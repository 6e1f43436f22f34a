// A question as the inbox shows it, and a question again from what the inbox shows: that is how another daemon on the same
// state directory knows it.

import type { AskView, Question } from './ask.ts';

type Asked = Pick<AskView, 'kind' | 'mode' | 'message' | 'schema' | 'url' | 'arguments' | 'request'>;

export function shown(question: Question, request: Buffer | undefined): Asked {
  const { kind, message } = question;
  switch (question.kind) {
    case 'elicitation':
      return question.mode === 'form'
        ? { kind, message, mode: 'form', schema: parsed(question.schema) }
        : { kind, message, mode: 'url', url: question.url };
    case 'sampling':
      return { kind, message, request: parsed(request ?? question.request) };
    case 'approval':
      return { kind, message, arguments: parsed(question.arguments) };
  }
}

/** What another daemon needs of it to judge an answer. */
export function questionOf({ kind, mode, message, schema, url = '', request, arguments: given }: AskView): Question {
  if (kind === 'sampling') return { kind, message, request: json(request) };
  if (kind === 'approval') return { kind, message, arguments: json(given) };
  if (mode === 'url') return { kind, mode, message, url, elicitationId: '', isRequired: false };
  return { kind, mode: 'form', message, schema: json(schema) };
}

const parsed = (bytes: Buffer): object => JSON.parse(bytes.toString());
const json = (value: object = {}): Buffer => Buffer.from(JSON.stringify(value));
