// What `--accept` says to a question without anybody being asked: the JSON that was given, or what needs none.

import type { AskView } from '../asks/ask.ts';
import { defaultsOf, type Form, readForm } from '../asks/forms/form.ts';
import { members, stringOf } from '../protocol/json.ts';
import { textResult } from './answer-messages.ts';
import { argumentsJson } from './arguments.ts';
import { usage } from './output.ts';

/** Nothing where the word alone is the answer. A question that is unknown here is the daemon's to judge. */
export function contentFor(view: AskView | undefined, accept: string | true | undefined): Buffer | undefined {
  const given = typeof accept === 'string' ? jsonOf(accept) : undefined;
  if (!view) return given;
  if (view.kind === 'sampling') return samplingContent(view, given);
  if (view.kind === 'elicitation' && view.mode !== 'url') return given ?? defaultContent(view);
  if (given)
    throw usage(`${view.kind === 'approval' ? 'an approval' : 'an address'} takes no JSON; say --accept alone`);
  return undefined;
}

/** `@file` and `-` are read as for `call --args`, and what is wrong with them is said of this option. */
function jsonOf(accept: string): Buffer {
  try {
    return argumentsJson([], accept, undefined);
  } catch (error) {
    throw error instanceof Error ? usage(error.message.replaceAll('--args', '--accept')) : error;
  }
}

/** `{"text":"…"}` is short for a message that says so. */
function samplingContent({ stage }: AskView, given: Buffer | undefined): Buffer | undefined {
  if (!given && stage === 'answer') throw usage(`a model's answer wants words: --accept '{"text":"…"}'`);
  const [[key, value] = [], ...others] = given ? [...members(given)] : [];
  const text = key === 'text' && others.length === 0 && value ? stringOf(value) : undefined;
  return text === undefined ? given : Buffer.from(JSON.stringify(textResult(text)));
}

function defaultContent({ schema }: AskView): Buffer {
  const form = readForm(schema);
  const content = typeof form === 'string' ? undefined : defaultsOf(form);
  if (content) return Buffer.from(JSON.stringify(content));
  const names = typeof form === 'string' ? [] : missing(form);
  const example = JSON.stringify(Object.fromEntries(names.slice(0, 1).map((name) => [name, '…'])));
  throw usage(`the form wants ${names.join(', ') || 'an answer'}; say --accept '${example}', see troupe inbox --json`);
}

const missing = ({ fields }: Form): string[] =>
  fields.filter((field) => field.isRequired && field.default === undefined).map(({ name }) => name);
