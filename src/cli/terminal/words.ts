// How questions are written on a terminal. A server's words stand behind its name and a bar at the margin, without control
// characters, so that they cannot be taken for troupe's own.

import type { AskView } from '../../asks/ask.ts';
import { answerCommand as commandFor } from '../../asks/notice.ts';
import { printable } from '../../telemetry/printable.ts';
import type { Output } from '../verb.ts';
import { flat, fold } from './table.ts';

const OWNER = '_';
const MOST_LINES = 200;

export const shortId = (id: string): string => clean(id).slice(0, 8);

export const answerCommand = (id: string, instance: string | undefined): string => commandFor(clean(id), instance);

/** `form`, `url`, `sampling`, `approval`; and what is wanted where it is not simply an answer. */
export function kindOf({ kind, mode, stage }: AskView): string {
  const name = kind === 'elicitation' ? (mode ?? 'form') : kind;
  return stage === 'answer' ? name : `${name} ${stage}`;
}

/** The question in one line, behind the name of the server. */
export function gist({ kind, stage, server, message, arguments: given, result }: AskView): string {
  const name = oneLine(server);
  if (kind === 'approval') return `${name} would be called with ${oneLine(JSON.stringify(given ?? {}))}`;
  if (stage === 'result') return `a model would tell ${name}: ${oneLine(spoken(result))}`;
  return `${name} asks${kind === 'sampling' ? ' a model' : ''}: ${oneLine(message)}`;
}

function spoken(result: AskView['result']): string {
  const { content } = (result ?? {}) as { content?: unknown };
  const blocks = [content].flat() as ({ text?: unknown } | undefined)[];
  return blocks.flatMap((block) => (typeof block?.text === 'string' ? [block.text] : [])).join(' ') || '…';
}

/** The principal of the call: the owner of this machine is `you`. */
export const whose = ({ principal }: AskView): string => (principal === OWNER ? 'you' : oneLine(principal));

export const clean = printable;
export const oneLine = flat;

/** A sentence of ours that begins with a server's or a principal's name. */
export function stated(output: Output, name: string, rest: string): string {
  const shown = oneLine(name);
  return folded(`${shown}${rest}`, output.width)
    .join('\n')
    .replace(shown, () => output.paint('bold', shown));
}

/** The call during which a question is asked. */
export const occasion = (view: AskView): string =>
  view.tool ? `, while it runs ${oneLine(view.tool)} for ${whose(view)}` : `, on behalf of ${whose(view)}`;

/** A server's words, folded, each line behind a bar; further lines are only counted. */
export function quoted(output: Output, text: string): string {
  const lines = folded(text, output.width - 4);
  const shown = lines.slice(0, MOST_LINES).map((line) => `  ${output.paint('dim', '│')} ${line}`.trimEnd());
  const rest = lines.length - MOST_LINES;
  return [...shown, ...(rest > 0 ? [`  … ${rest} more lines; troupe inbox --json has them`] : [])].join('\n');
}

/** Cleaned, and in lines of at most that many columns, broken between words where there are any. */
export function folded(text: string, width: number): string[] {
  return clean(text)
    .replaceAll('\t', '  ')
    .trimEnd()
    .split('\n')
    .flatMap((line) => fold(line, width));
}
