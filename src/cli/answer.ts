// `answer`: says something to one question. With a flag it is for scripts; without one it talks to whoever is at the terminal,
// and nothing leaves before they have said so.

import type { AskView, Stage } from '../asks/ask.ts';
import { TroupeError } from '../protocol/failures.ts';
import { talkApproval } from './answer-approval.ts';
import { hasPerson, openDialog } from './answer-dialog.ts';
import { talkSampling } from './answer-sampling.ts';
import { contentFor } from './answer-script.ts';
import type { Said, Talk, Talked } from './answer-talk.ts';
import { talkUrl } from './answer-url.ts';
import { fateOf, outcomeOf, sent, untilGone, untilModelled } from './answer-wire.ts';
import { answerCommand, folded, oneLine } from './answer-words.ts';
import { type Control, withControl } from './control.ts';
import { talkForm } from './form.ts';
import { type Listed, openAsks } from './inbox.ts';
import { type Output, usage } from './output.ts';
import { type Cli, INTERRUPTED, OK } from './verb.ts';

export type AnswerOptions = {
  /** `true` without JSON. */
  readonly accept?: string | true;
  readonly decline?: boolean;
  readonly cancel?: boolean;
};

const SHORTEST = 4;
const WHOLE = 32;
/** Before every error. */
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

/** Nothing for a whole id that is not listed: of that one the daemon says itself what became of it. */
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
  // From here on a question that is gone is gone by our own answer, unless that is refused or more is to come.
  let hasLeft = false;
  let isSent = false;
  let seen: Stage | undefined = view.stage;
  let action: Said['action'] = 'accept';
  const send = async (said: Said, stage: Stage = seen ?? view.stage): Promise<string> => {
    [hasLeft, seen, action] = [true, undefined, said.action];
    const reply = sent(control, { id: view.id, stage }, said).then(outcomeOf);
    void reply.then(
      (outcome) => {
        hasLeft = outcome !== 'open';
        isSent = true;
      },
      () => {
        [hasLeft, seen] = [false, stage];
      },
    );
    return Promise.race([reply, dialog.ended]);
  };
  const again = async () => (await openAsks(control)).asks.find(({ id }) => id === view.id);
  const modelled = async (): Promise<AskView> => {
    const next = await Promise.race([untilModelled(control, view.id), dialog.ended]);
    seen = next?.stage;
    return next ?? dialog.ended; // one that is gone ends the talk, with the reason
  };
  void untilGone(control, { version, view, seen: () => seen, isOurs: () => hasLeft, isSent: () => isSent }).then(
    (why) => hasLeft || dialog.end(why),
    () => {}, // a daemon that is silent is met when something is sent
  );
  try {
    const outcome = await talkOf(view)({ dialog, view, env, send, again, modelled, command: commandFor(cli, view) });
    if (outcome !== undefined) output.print(outcomeText(outcome, view.server, action));
    return OK;
  } catch (error) {
    if (!dialog.isInterrupted()) throw inLines(output, error);
    const isOpen = `${isSent ? '' : 'nothing was sent; '}the question is still open: ${commandFor(cli, view)}`;
    output.say(`\n${hasLeft ? 'the answer was on its way; `troupe inbox` shows whether it arrived' : isOpen}`);
    return INTERRUPTED;
  } finally {
    dialog.close();
  }
}

const commandFor = ({ paths }: Cli, { id }: AskView): string => answerCommand(id, paths.instance);

/** Broken between words, where the terminal would break within one. */
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
    approved: `the call to ${name} goes on`,
    denied: `the call to ${name} is not made`,
  };
  return sentences[outcome] ?? outcome;
}
