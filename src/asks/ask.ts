// The words of asks: what somebody is asked, what they say to it, and what the inbox shows. A question is a server's, or about
// a call to one; it belongs to the principal of that call, and only they and the owner of this machine may answer it.

import type { AskOutcome as Ended, HostAnswer, Stage, WaitsOn } from '../../machines/ladder.ts';
import type { Answer, Call } from '../calls/call.ts';
import type { AskKind, SamplingBudget } from '../config/schema.ts';

export type { Stage } from '../../machines/ladder.ts';
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
  /** `message` is the last thing that was said in the conversation. */
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
  /** Named to later answerers, such as `the host` or `troupe answer`. */
  readonly by: string;
  readonly principal?: string;
  /** The stage that they were shown: a yes counts for that one only. Without it a yes is to `answer`, and a no to any stage. */
  readonly stage?: string;
};

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
  readonly waitsOn: WaitsOn;
};

/** How a question ended: `interrupted` when its daemon was killed. */
export type AskOutcome = Ended | 'interrupted';

/** The call that a question is about, while that call waits. */
export type Subject = {
  readonly call: Pick<Call, 'principal' | 'server' | 'name' | 'onAsk' | 'onSignal' | 'requestId' | 'task'>;
  /** Until when the call itself can wait, by the clock of deadlines. */
  readonly latestDeadline: number;
};

/** A question as a host is asked it: a server's in its own bytes. */
export type AskedOfHost = { readonly method: string; readonly params: Buffer };

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
  /** The calls that wait for the answer. */
  readonly waiting: readonly Pick<Call, 'onSignal'>[];
  /** As the server wrote it; the host gets the same bytes. */
  readonly asked?: AskedOfHost;
  readonly expiryMs: number;
  readonly isTrusted: boolean;
  readonly budget: SamplingBudget;
  readonly waiter: Waiter;
};

/** Whoever waits for the answer: the server that asks, or a call. */
export type Waiter = {
  /** The row is on the disk, or cannot be. */
  readonly recorded?: (isOnDisk: boolean) => void;
  /** The person has agreed to visit an address; what happens there may take its time. */
  readonly consented?: () => void;
  /** Told once, unless it was told of a consent; `id` is that of the question. */
  readonly ended: (ending: Ending, id: string) => void;
  /** After a consent: nothing more is expected of the address. */
  readonly left?: () => void;
};
export type Ending = {
  readonly outcome: AskOutcome;
  readonly by: string;
  readonly content?: Buffer;
  /** What a host said, in its own bytes. */
  readonly said?: Answer;
};

/** A reply before it is known whether it stands. */
export type Offer = {
  readonly reply: Reply;
  readonly by: string;
  /** It is an answer to the question itself, not a word on what a model is to say or has said. */
  readonly isWhole: boolean;
  readonly host?: HostAnswer;
};

/** What doors do with asks. */
export type Inbox = {
  /** The open questions, oldest first; only that principal's, if one is named. */
  list(principal?: string): AskView[];
  /**
   * Resolves with how the question ended, or with `open` when more is to come. Throws a TroupeError: `unknownName` for an id that
   * does not exist or is another principal's, `answered` for a question that somebody else has answered, `invalid` for an answer
   * that the question does not allow, naming the field.
   */
  answer(id: string, reply: Reply, answerer: Answerer): Promise<AskOutcome | 'open'>;
  /** Only of an open question that belongs to a task. */
  asked(id: string): AskedOfHost | undefined;
  /** Counts up with each change of the list. */
  readonly version: number;
  /** Resolves when the version is no longer that one, or after some seconds. */
  changed(since: number): Promise<void>;
};
