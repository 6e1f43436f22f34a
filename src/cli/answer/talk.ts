// What every talk about a question has: the person at the terminal, the question, and how the answer gets to the daemon. While
// the person types, the question is watched: it may be answered elsewhere, or move on to its next stage.

import type { AskView, Stage } from '../../asks/ask.ts';
import { TroupeError } from '../../protocol/failures.ts';
import type { Control } from '../control.ts';
import type { Dialog } from '../terminal/dialog.ts';
import { oneLine } from '../terminal/words.ts';
import { openAsks } from './inbox.ts';

export type Said = { readonly action: 'accept' | 'decline' | 'cancel'; readonly content?: Buffer };

export type Talk = {
  readonly dialog: Dialog;
  readonly view: AskView;
  readonly env: NodeJS.ProcessEnv;
  /** Resolves with how the question ended, or with `open`. `stage` is the stage that is answered, that of the view by default. */
  readonly send: (said: Said, stage?: Stage) => Promise<string>;
  /** The question as the inbox has it now. */
  readonly again: () => Promise<AskView | undefined>;
  /** The question once a model has answered, or has failed to; rejects when the talk ends before. */
  readonly modelled: () => Promise<AskView>;
  /** The command that opens this question again. */
  readonly command: string;
};

/** How the question ended; nothing when the person leaves it for later. */
export type Talked = Promise<string | undefined>;

export const accepted = (content: Buffer): Said => ({ action: 'accept', content });
export const DECLINE: Said = { action: 'decline' };

/** Asks again, with the daemon's complaint, until the answer is one that the question allows. */
export async function untilValid({ dialog, send }: Talk, said: (complaint?: string) => Promise<Said>): Promise<string> {
  let complaint: string | undefined;
  for (;;) {
    const reply = await said(complaint);
    try {
      return await send(reply);
    } catch (error) {
      if (!(error instanceof TroupeError) || error.code !== 'invalid') throw error;
      complaint = error.message;
      dialog.complain(complaint);
    }
  }
}

type Meant = { readonly id: string; readonly stage?: Stage | 'over' };

/** Sends an answer with the stage that was seen: approving the request of a model does not approve its result. */
export async function sent(control: Control, { id, stage }: Meant, { action, content }: Said): Promise<Buffer> {
  const seen = stage === undefined ? '' : `,"stage":${JSON.stringify(stage)}`;
  const head = `{"id":${JSON.stringify(id)},"action":"${action}"${seen}`;
  const body = content ? [Buffer.from(`${head},"content":`), content, Buffer.from('}')] : [Buffer.from(`${head}}`)];
  try {
    return await control.request('answer', Buffer.concat(body)).result;
  } catch (error) {
    if (!(error instanceof TroupeError) || error.code !== 'timeout') throw error;
    throw new TroupeError('timeout', error.message.replace('did not answer answer', 'did not take the answer'));
  }
}

export const outcomeOf = (reply: Buffer): string => String(JSON.parse(reply.toString()).outcome);

/** Who has answered a question, or how else it ended, if the daemon knows. */
export async function fateOf(control: Control, id: string): Promise<string | undefined> {
  try {
    // No question has this stage, so that the daemon refuses, and its refusal says how the question ended.
    await sent(control, { id, stage: 'over' }, { action: 'cancel' });
  } catch (error) {
    if (error instanceof TroupeError && error.code === 'answered') return error.message;
  }
  return undefined;
}

/** How far a talk has come. */
type Exchange = {
  /** The stage that the person looks at; nothing while an answer is on its way or a model thinks. */
  seen: Stage | undefined;
  /** Whether the last answer closes the question: it was sent, not refused, and no further stage follows. */
  isOurs: boolean;
  /** Whether any answer was sent. */
  isSent: boolean;
  /** Of the last answer. */
  action: Said['action'];
};

/** Sends the answers of a talk, and keeps how far it has come. */
export function exchange(control: Control, view: AskView, dialog: Dialog) {
  const state: Exchange = { seen: view.stage, isOurs: false, isSent: false, action: 'accept' };

  async function send(said: Said, stage: Stage = state.seen ?? view.stage): Promise<string> {
    state.seen = undefined;
    state.isOurs = true;
    state.action = said.action;
    const reply = sent(control, { id: view.id, stage }, said).then(outcomeOf);
    void reply.then(
      (outcome) => {
        state.isOurs = outcome !== 'open';
        state.isSent = true;
      },
      () => {
        state.isOurs = false;
        state.seen = stage;
      },
    );
    return Promise.race([reply, dialog.ended]);
  }

  async function modelled(): Promise<AskView> {
    const next = await Promise.race([untilModelled(control, view.id), dialog.ended]);
    state.seen = next?.stage;
    return next ?? dialog.ended; // a question that is gone ends the talk, with the reason
  }

  return { state: state as Readonly<Exchange>, send, modelled };
}

type Watched = { readonly version: number; readonly view: AskView; readonly state: Readonly<Exchange> };

/** Resolves when the question is gone or has moved on, so that the person does not type in vain or approve something unseen. */
export async function untilGone(control: Control, watched: Watched): Promise<TroupeError> {
  const { view, state } = watched;
  const name = oneLine(view.server);
  const nothing = (why: string): string => (state.isSent ? why : `${why}; nothing was sent`);
  try {
    const why = await changeOf(control, watched);
    if (why === 'moved on')
      return new TroupeError('answered', `the question of ${name} has moved on; look at it again`);
    const fate = state.isOurs ? undefined : await fateOf(control, view.id);
    return new TroupeError('answered', nothing(fate ?? `the question of ${name} is no longer open`));
  } catch (error) {
    if (!(error instanceof TroupeError) || error.code !== 'lost') throw error;
    return new TroupeError('unavailable', nothing('troupe went away'));
  }
}

async function changeOf(control: Control, { version, view, state }: Watched): Promise<'gone' | 'moved on'> {
  for (let since = version; ; ) {
    const now = await openAsks(control, since);
    since = now.version;
    const ask = now.asks.find(({ id }) => id === view.id);
    if (!ask) return 'gone';
    if (state.seen !== undefined && ask.stage !== state.seen && view.mode !== 'url') return 'moved on';
  }
}

/** The question once a model has answered it, or has failed to; nothing if it is gone. */
async function untilModelled(control: Control, id: string): Promise<AskView | undefined> {
  for (let now = await openAsks(control); ; now = await openAsks(control, now.version)) {
    const ask = now.asks.find((each) => each.id === id);
    if (!ask || ask.stage === 'result' || (ask.stage === 'answer' && ask.waitsOn === 'inbox')) return ask;
  }
}
