// What every talk about a question has: who is talked to, what about, and how the answer gets to the daemon.

import type { AskView, Stage } from '../asks/ask.ts';
import { TroupeError } from '../protocol/failures.ts';
import type { Dialog } from './answer-dialog.ts';

export type Said = { readonly action: 'accept' | 'decline' | 'cancel'; readonly content?: Buffer };

export type Talk = {
  readonly dialog: Dialog;
  readonly view: AskView;
  readonly env: NodeJS.ProcessEnv;
  /** Resolves with how the question ended, or with `open`. The stage is that of the view, unless it is another by now. */
  readonly send: (said: Said, stage?: Stage) => Promise<string>;
  /** The question as the inbox has it now. */
  readonly again: () => Promise<AskView | undefined>;
  /** The same once a model has answered, or has failed to; rejects when the talk ends before. */
  readonly modelled: () => Promise<AskView>;
  /** What to type to come back to it. */
  readonly command: string;
};

/** What became of it; nothing when the person leaves it for later. */
export type Talked = Promise<string | undefined>;

export const accepted = (content: Buffer): Said => ({ action: 'accept', content });
export const DECLINE: Said = { action: 'decline' };

/** Asks again with the daemon's complaint for as long as the answer is not what the question allows. */
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
