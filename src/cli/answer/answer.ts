// `answer`: answers one question. With --accept, --decline or --cancel it is for scripts; without one it talks to the person
// at the terminal, and nothing is sent before that person has said so.

import type { AskView } from '../../asks/ask.ts';
import { defaultsOf, type Form, readForm } from '../../asks/forms/form.ts';
import { TroupeError } from '../../protocol/failures.ts';
import { members, stringOf } from '../../protocol/json.ts';
import { argumentsJson } from '../calls/arguments.ts';
import { type Control, withControl } from '../control.ts';
import { hasPerson, openDialog } from '../terminal/dialog.ts';
import { answerCommand, folded, oneLine } from '../terminal/words.ts';
import { type Cli, INTERRUPTED, OK, type Output, usage } from '../verb.ts';
import { talkApproval, talkUrl } from './consent.ts';
import { talkForm } from './form.ts';
import { type Listed, openAsks } from './inbox.ts';
import { talkSampling, textResult } from './sampling.ts';
import { exchange, fateOf, outcomeOf, type Said, sent, type Talk, type Talked, untilGone } from './talk.ts';

type AnswerOptions = {
  /** `true` without JSON. */
  readonly accept?: string | true;
  readonly decline?: boolean;
  readonly cancel?: boolean;
};

const SHORTEST = 4;
const WHOLE = 32;
/** Stands before every error that is printed, and so counts for its width. */
const PREFIX = 'troupe: ';
const FLAGS = "say --accept, --accept '<json>', --decline or --cancel";

export async function answer(cli: Cli, id: string, options: AnswerOptions): Promise<number> {
  const { output, paths } = cli;
  const flags = (['accept', 'decline', 'cancel'] as const).filter((each) => options[each]);
  const [action] = flags;
  if (flags.length > 1) throw usage(`--${flags.join(' and --')} cannot both be said; choose one`);
  if (!action && !hasPerson(output)) throw usage(`nobody can be asked without a terminal; ${FLAGS}`);
  if (id.length < SHORTEST) throw usage(`'${id}' is too short for an id; at least ${SHORTEST} characters tell which`);
  return withControl(paths.socket, async (control) => {
    const listed = await openAsks(control);
    const view = found(listed.asks, id);
    if (!action) return talk(cli, control, listed, view ?? (await gone(control, id)));
    const content = action === 'accept' ? contentFor(view, options.accept) : undefined;
    const raw = await sent(control, view ?? { id }, { action, ...(content && { content }) });
    if (output.json) output.print(raw);
    else if (outcomeOf(raw) === 'open')
      output.print(`open; answer again: ${answerCommand(view?.id ?? id, paths.instance)}`);
    else output.print(outcomeText(outcomeOf(raw), view?.server ?? 'the server', action));
    return OK;
  });
}

/** The question that is meant; nothing for a whole id that is not listed, of which the daemon knows how it ended. */
function found(asks: readonly AskView[], id: string): AskView | undefined {
  const fitting = asks.filter((ask) => ask.id.startsWith(id.toLowerCase()));
  const [view] = fitting;
  if (fitting.length > 1) throw usage(`${fitting.length} questions begin with ${id}; write more of the id`);
  if (view ?? id.length >= WHOLE) return view;
  throw unknown(id);
}

const unknown = (id: string): TroupeError =>
  new TroupeError('unknownName', `no open question begins with ${id}; \`troupe inbox\` lists them`);

async function gone(control: Control, id: string): Promise<never> {
  const why = await fateOf(control, id);
  throw why === undefined ? unknown(id) : new TroupeError('answered', why);
}

async function talk(cli: Cli, control: Control, { version }: Listed, view: AskView): Promise<number> {
  const { output, env } = cli;
  const dialog = openDialog(output);
  const { state, send, modelled } = exchange(control, view, dialog);
  const again = async () => (await openAsks(control)).asks.find(({ id }) => id === view.id);
  void untilGone(control, { version, view, state }).then(
    (why) => state.isOurs || dialog.end(why),
    () => {}, // a daemon that does not answer is noticed when something is sent
  );
  try {
    const outcome = await talkOf(view)({ dialog, view, env, send, again, modelled, command: commandFor(cli, view) });
    if (outcome !== undefined) output.print(outcomeText(outcome, view.server, state.action));
    return OK;
  } catch (error) {
    if (!dialog.isInterrupted()) throw inLines(output, error);
    const isOpen = `${state.isSent ? '' : 'nothing was sent; '}the question is still open: ${commandFor(cli, view)}`;
    output.say(`\n${state.isOurs ? 'the answer was on its way; `troupe inbox` shows whether it arrived' : isOpen}`);
    return INTERRUPTED;
  } finally {
    dialog.close();
  }
}

const commandFor = ({ paths }: Cli, { id }: AskView): string => answerCommand(id, paths.instance);

/** The message of an error, folded between words: the terminal would break within one. */
function inLines({ width }: Output, error: unknown): unknown {
  if (!(error instanceof TroupeError)) return error;
  const lines = folded(`${PREFIX}${error.message}`, width);
  return new TroupeError(error.code, lines.join('\n').slice(PREFIX.length), { cause: error.cause });
}

function talkOf({ kind, mode }: AskView): (talk: Talk) => Talked {
  if (kind === 'sampling') return talkSampling;
  if (kind === 'approval') return talkApproval;
  return mode === 'url' ? talkUrl : talkForm;
}

function outcomeText(outcome: string, server: string, action: Said['action']): string {
  const name = oneLine(server);
  const sentences: Record<string, string> = {
    accepted: `${name} has your answer`,
    answered: `${name} has your answer`,
    completed: `${name} can go on`,
    consented: `${name} is told that you agreed`,
    gone: `${name} no longer waits for it`,
    declined: `${name} is told that you declined`,
    rejected: `${name} is told that you ${action === 'cancel' ? 'cancelled' : 'declined'}`,
    cancelled: `${name} is told that nothing came of it`,
    approved: `the call to ${name} goes on, if its caller is still there`,
    denied: `the call to ${name} is not made`,
  };
  return sentences[outcome] ?? outcome;
}

/** The JSON that `--accept` sends; nothing where accepting is the whole answer. Of an unknown question the daemon judges. */
function contentFor(view: AskView | undefined, accept: string | true | undefined): Buffer | undefined {
  const given = typeof accept === 'string' ? jsonOf(accept) : undefined;
  if (!view) return given;
  if (view.kind === 'sampling') return samplingContent(view, given);
  if (view.kind === 'elicitation' && view.mode !== 'url') return given ?? defaultContent(view);
  if (given)
    throw usage(`${view.kind === 'approval' ? 'an approval' : 'an address'} takes no JSON; say --accept alone`);
  return undefined;
}

/** `@file` and `-` are read as for `call --args`; a complaint names this option instead. */
function jsonOf(accept: string): Buffer {
  try {
    return argumentsJson([], accept, undefined);
  } catch (error) {
    throw error instanceof Error ? usage(error.message.replaceAll('--args', '--accept')) : error;
  }
}

/** `{"text":"…"}` is short for a whole message with that text. */
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
