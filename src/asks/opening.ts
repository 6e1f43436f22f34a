// What an ask is opened with, what it needs of the world, and what it ends in.

import type { Answer } from '../calls/call.ts';
import type { AskSettings, SamplingBudget } from '../config/schema.ts';
import type { AskOutcome, Question, Reply, Subject } from './ask.ts';
import type { Answerers } from './bus.ts';
import type { Live } from './live.ts';
import type { Models } from './models/models.ts';

/** A question about to be asked. */
export type Opening = {
  readonly question: Question;
  readonly server: string;
  /** The process that asks. */
  readonly instance: string;
  readonly principal: string;
  readonly tool: string;
  /** The call it is about, where its host may be asked. */
  readonly subject: Subject | undefined;
  /** As the server wrote it; the host gets the same bytes. */
  readonly asked?: { readonly method: string; readonly params: Buffer };
  readonly expiryMs: number;
  readonly isTrusted: boolean;
  readonly budget: SamplingBudget;
  /** The person has agreed to visit an address; what happens there may take its time. */
  readonly onConsent: (by: string) => void;
  readonly onEnded: (ending: Ending) => void;
};
export type Ending = {
  readonly outcome: AskOutcome;
  readonly by: string;
  readonly content?: Buffer;
  /** What a host said, in its own bytes. */
  readonly said?: Answer;
};

export type LiveWorld = {
  readonly settings: () => AskSettings;
  readonly answerers: Answerers;
  readonly models: Models;
  /** Judges a reply, and lets it stand if it is the first; throws a TroupeError if it is not, or is none. */
  readonly accept: (live: Live, given: Given) => Promise<AskOutcome | 'open'>;
  /** What the inbox shows of it has changed. */
  readonly onChanged: (live: Live) => void;
  readonly onTrouble: (error: unknown) => void;
};
export type Given = {
  readonly reply: Reply;
  readonly by: string;
  readonly said?: Answer;
  /** It is an answer to the question itself, not a word on what a model is to say or has said. */
  readonly isWhole: boolean;
};
