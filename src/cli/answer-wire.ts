// What `answer` says to the daemon and hears from it: the answer itself, what became of a question, and when one that
// somebody looks at is gone, has moved on, or has what a model said of it.

import type { AskView, Stage } from '../asks/ask.ts';
import { TroupeError } from '../protocol/failures.ts';
import type { Said } from './answer-talk.ts';
import { oneLine } from './answer-words.ts';
import type { Control } from './control.ts';
import { openAsks } from './inbox.ts';

export type Meant = { readonly id: string; readonly stage?: Stage | 'over' };

/** A word on what a model is to hear is none on what it says: so the daemon is told what was seen. */
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

/** Who has answered it, or how else it ended, if the daemon knows. */
export async function fateOf(control: Control, id: string): Promise<string | undefined> {
  try {
    // No question has this stage, so that this is refused even if the question is there again by now.
    await sent(control, { id, stage: 'over' }, { action: 'cancel' });
  } catch (error) {
    if (error instanceof TroupeError && error.code === 'answered') return error.message;
  }
  return undefined;
}

export type Watched = {
  readonly version: number;
  readonly view: AskView;
  /** The stage that the person looks at; nothing while a word of theirs is on its way or a model thinks. */
  readonly seen: () => Stage | undefined;
  /** The last word was ours, so that nobody needs to be told who had it. */
  readonly isOurs: () => boolean;
  /** For the end of the sentence. */
  readonly isSent: () => boolean;
};

/** Whoever types must not type for nothing, nor approve what somebody else has changed meanwhile. */
export async function untilGone(control: Control, watched: Watched): Promise<TroupeError> {
  const { view, isOurs, isSent } = watched;
  const name = oneLine(view.server);
  const nothing = (why: string): string => (isSent() ? why : `${why}; nothing was sent`);
  try {
    const why = await changeOf(control, watched);
    if (why === 'moved on')
      return new TroupeError('answered', `the question of ${name} has moved on; look at it again`);
    const fate = isOurs() ? undefined : await fateOf(control, view.id);
    return new TroupeError('answered', nothing(fate ?? `the question of ${name} is no longer open`));
  } catch (error) {
    if (!(error instanceof TroupeError) || error.code !== 'lost') throw error;
    return new TroupeError('unavailable', nothing('troupe went away'));
  }
}

async function changeOf(control: Control, { version, view, seen }: Watched): Promise<'gone' | 'moved on'> {
  for (let since = version; ; ) {
    const now = await openAsks(control, since);
    since = now.version;
    const ask = now.asks.find(({ id }) => id === view.id);
    if (!ask) return 'gone';
    const stage = seen();
    if (stage !== undefined && ask.stage !== stage && view.mode !== 'url') return 'moved on';
  }
}

/** The question when a model has said something to it, or will not; nothing if it is gone. */
export async function untilModelled(control: Control, id: string): Promise<AskView | undefined> {
  for (let now = await openAsks(control); ; now = await openAsks(control, now.version)) {
    const ask = now.asks.find((each) => each.id === id);
    if (!ask || ask.stage === 'result' || (ask.stage === 'answer' && ask.waitsOn === 'inbox')) return ask;
  }
}
