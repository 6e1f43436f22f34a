// `answer`: says something to one question. With a flag it is for scripts; without one it talks to whoever is at the terminal,
// and nothing leaves before they have said so.

import type { AskView, Stage } from '../asks/ask.ts';
import { TroupeError } from '../failures.ts';
import { talkApproval } from './answer-approval.ts';
import { hasPerson, openDialog } from './answer-dialog.ts';
import { talkSampling } from './answer-sampling.ts';
import { contentFor } from './answer-script.ts';
import type { Said, Talk, Talked } from './answer-talk.ts';
import { talkUrl } from './answer-url.ts';
import { answerCommand, oneLine } from './answer-words.ts';
import { type Control, withControl } from './control.ts';
import { talkForm } from './form.ts';
import { type Listed, openAsks } from './inbox.ts';
import { usage } from './output.ts';
import { type Cli, INTERRUPTED, OK } from './verb.ts';

export type AnswerOptions = {
  /** `true` without JSON. */
  readonly accept?: string | true;
  readonly decline?: boolean;
  readonly cancel?: boolean;
};

const SHORTEST = 4;
const WHOLE = 32;
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
    else output.print(outcomeText(outcomeOf(raw), view?.server ?? 'the server'));
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

/** Who has answered it, or how else it ended, if the daemon knows. */
async function fateOf(control: Control, id: string): Promise<string | undefined> {
  try {
    // No question has this stage, so that this is refused even if the question is there again by now.
    await sent(control, { id, stage: 'over' }, { action: 'cancel' });
  } catch (error) {
    if (error instanceof TroupeError && error.code === 'answered') return error.message;
  }
  return undefined;
}

type Meant = { readonly id: string; readonly stage?: Stage | 'over' };

/** A word on what a model is to hear is none on what it says: so the daemon is told what was seen. */
async function sent(control: Control, { id, stage }: Meant, { action, content }: Said): Promise<Buffer> {
  const seen = stage === undefined ? '' : `,"stage":${JSON.stringify(stage)}`;
  const head = `{"id":${JSON.stringify(id)},"action":"${action}"${seen}`;
  const body = content ? [Buffer.from(`${head},"content":`), content, Buffer.from('}')] : [Buffer.from(`${head}}`)];
  return control.request('answer', Buffer.concat(body)).result;
}

async function talk(cli: Cli, control: Control, { version }: Listed, view: AskView): Promise<number> {
  const { output, env, paths } = cli;
  const dialog = openDialog(output);
  // From here on a question that is gone is gone by our own answer, unless that is refused or more is to come.
  let hasLeft = false;
  const send = async (said: Said, stage = view.stage): Promise<string> => {
    hasLeft = true;
    const reply = sent(control, { id: view.id, stage }, said).then(outcomeOf);
    const isFinal = reply.then(
      (outcome) => outcome !== 'open',
      () => false,
    );
    void isFinal.then((isSo) => {
      hasLeft = isSo;
    });
    return Promise.race([reply, dialog.ended]);
  };
  const again = async () => (await openAsks(control)).asks.find(({ id }) => id === view.id);
  void untilGone(control, { version, view, isOurs: () => hasLeft }).then(
    (why) => hasLeft || dialog.end(why),
    () => {}, // a daemon that is gone is met when something is sent
  );
  try {
    const outcome = await talkOf(view)({ dialog, view, env, send, again });
    if (outcome !== undefined) output.print(outcomeText(outcome, view.server));
    return OK;
  } catch (error) {
    if (!dialog.isInterrupted()) throw error;
    const isOpen = `nothing was sent; the question is still open: ${answerCommand(view.id, paths.instance)}`;
    output.say(`\n${hasLeft ? 'the answer was on its way; `troupe inbox` shows whether it arrived' : isOpen}`);
    return INTERRUPTED;
  } finally {
    dialog.close();
  }
}

function talkOf({ kind, mode }: AskView): (talk: Talk) => Talked {
  if (kind === 'sampling') return talkSampling;
  if (kind === 'approval') return talkApproval;
  return mode === 'url' ? talkUrl : talkForm;
}

type Watched = { readonly version: number; readonly view: AskView; readonly isOurs: () => boolean };

/** Whoever types must not type for nothing, nor approve what somebody else has changed meanwhile. */
async function untilGone(control: Control, { version, view, isOurs }: Watched): Promise<TroupeError> {
  const { id, server, mode, stage } = view;
  for (let since = version; ; ) {
    const now = await openAsks(control, since);
    since = now.version;
    const ask = now.asks.find((each) => each.id === id);
    if (!ask) {
      const why =
        (isOurs() ? undefined : await fateOf(control, id)) ?? `the question of ${oneLine(server)} is no longer open`;
      return new TroupeError('answered', `${why}; nothing was sent`);
    }
    if (ask.stage !== stage && mode !== 'url')
      return new TroupeError('answered', `the question of ${oneLine(server)} has moved on; look at it again`);
  }
}

const outcomeOf = (reply: Buffer): string => String(JSON.parse(reply.toString()).outcome);

function outcomeText(outcome: string, server: string): string {
  const name = oneLine(server);
  const sentences: Record<string, string> = {
    accepted: `${name} has your answer`,
    answered: `${name} has your answer`,
    completed: `${name} can go on`,
    consented: `${name} is told that you agreed`,
    gone: `${name} no longer waits for it`,
    declined: `${name} is told that you declined`,
    rejected: `${name} is told that you declined`,
    cancelled: `${name} is told that nothing came of it`,
    approved: `the call to ${name} goes on`,
    denied: `the call to ${name} is not made`,
    open: 'noted; `troupe inbox` shows what is still to be said',
  };
  return sentences[outcome] ?? outcome;
}
