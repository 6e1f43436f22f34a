// The words of asks: what somebody is asked, what they say to it, and what the inbox shows. A question is a server's, or about
// a call to one; it belongs to the principal of that call, and only they and the owner of this machine may answer it.

import type { Call } from '../calls/call.ts';
import type { AskKind } from '../config/schema.ts';

export type { AskKind } from '../config/schema.ts';

/** What is asked, after it was checked. Buffers are JSON, as it came. */
export type Question =
  | { readonly kind: 'elicitation'; readonly mode: 'form'; readonly message: string; readonly schema: Buffer }
  | {
      readonly kind: 'elicitation';
      readonly mode: 'url';
      readonly message: string;
      readonly url: string;
      readonly elicitationId: string;
      /** The call waits for it to be done, because the server refused the call with -32042; else the server waits itself. */
      readonly isRequired: boolean;
    }
  /** `message` is the last thing said in it. */
  | { readonly kind: 'sampling'; readonly message: string; readonly request: Buffer }
  | { readonly kind: 'approval'; readonly message: string; readonly arguments: Buffer };

/**
 * What an answerer says. `content` is JSON: of a form what was filled in; of sampling a CreateMessageResult, or at the stage
 * `request` the edited params of sampling/createMessage; of an address and an approval nothing.
 */
export type Reply =
  | { readonly action: 'accept'; readonly content?: Buffer }
  | { readonly action: 'decline' }
  | { readonly action: 'cancel' };

/** Who answers. Without a principal it is the owner of this machine, who may answer everything. */
export type Answerer = {
  /** For those who come too late, such as `the host` or `troupe answer`. */
  readonly by: string;
  readonly principal?: string;
  /** What they were shown: a yes on one stage is none on the next. If they do not say: a yes is to `answer`, a no to any. */
  readonly stage?: string;
};

/**
 * What is wanted of the inbox: an answer; a word on a model's request or on its result; or the word that what was to be done
 * at an address is done.
 */
export type Stage = 'answer' | 'request' | 'result' | 'done';

/** A question as `troupe inbox --json` shows it. */
export type AskView = {
  readonly id: string;
  readonly kind: AskKind;
  readonly mode?: 'form' | 'url';
  readonly stage: Stage;
  readonly server: string;
  /** The tool, prompt or URI of the call it is about; empty where there is none. */
  readonly tool: string;
  readonly principal: string;
  /** The task whose call it is about; whoever fetches its result may be asked. */
  readonly task?: string;
  readonly message: string;
  readonly schema?: object;
  readonly url?: string;
  /** Of an approval: what the tool would be called with. */
  readonly arguments?: object;
  /** Of sampling: the params of sampling/createMessage; and at the stage `result` what the model said. */
  readonly request?: object;
  readonly result?: object;
  /** Milliseconds since 1970. */
  readonly openedAt: number;
  readonly expiresAt: number;
  /** Who was asked last and has not answered; `inbox` when nobody but a person is left. */
  readonly waitsOn: 'host' | 'bus' | 'rule' | 'model' | 'inbox';
};

/** How it ended: `interrupted` when its daemon was killed. */
export type AskOutcome =
  | 'accepted'
  | 'declined'
  | 'cancelled'
  | 'completed'
  | 'answered'
  | 'rejected'
  | 'approved'
  | 'denied'
  | 'expired'
  | 'withdrawn'
  | 'interrupted';

/** The call that a question is about, while that call waits. */
export type Subject = {
  readonly call: Pick<Call, 'principal' | 'server' | 'name' | 'onAsk' | 'onSignal' | 'requestId' | 'task'>;
  /** Until when the call itself can wait, by the clock of deadlines. */
  readonly latestDeadline: number;
};

/** What doors do with asks. */
export type Inbox = {
  /** Open ones, oldest first; only that principal's, if one is named. */
  list(principal?: string): AskView[];
  /**
   * Resolves with how it ended, or with `open` when more is to come. Throws a TroupeError: `unknownName` for an id that is
   * none (or another principal's), `answered` for one that somebody was quicker with, `invalid` for an answer that the
   * question does not allow, naming the field.
   */
  answer(id: string, reply: Reply, answerer: Answerer): Promise<AskOutcome | 'open'>;
  /** An open question as a host is asked it, in the server's own bytes; only of those that belong to a task. */
  asked(id: string): { readonly method: string; readonly params: Buffer } | undefined;
  /** Counts up with each change of the list; whoever waits is woken. */
  readonly version: number;
  /** Resolves when the version is no longer that one, or after some seconds. */
  changed(since: number): Promise<void>;
};
