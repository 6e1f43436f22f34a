// The canonical model of a request to a server. It belongs to no connection and to no MCP version:
// doors make calls, servers answer them, and each call ends in exactly one outcome.

import type { TaskStatus } from '../../machines/task.ts';
import type { Failure } from '../protocol/failures.ts';
import type { Task } from '../protocol/tasks.ts';

export type Outcome =
  | { readonly ok: true; readonly result: Buffer; readonly isError: boolean }
  | { readonly ok: false; readonly failure: Failure };

export type Signal =
  | { readonly type: 'progress'; readonly progress: number; readonly total?: number; readonly message?: string }
  | { readonly type: 'log'; readonly level: string; readonly params: Buffer }
  /** Somebody must be asked before the call can go on; told again and again while it waits. The message says how to answer. */
  | {
      readonly type: 'ask';
      readonly id: string;
      readonly kind: string;
      readonly expiresAt: number;
      readonly message: string;
    };

/** A server's question to the caller's side, on behalf of the call it is working on. */
export type Ask = {
  readonly method: string;
  readonly params: Buffer;
  /** It is troupe's own, such as an approval: it says itself which server it is about. */
  readonly isOurs?: boolean;
  /** Called at most once. */
  readonly answer: (answer: Answer) => void;
};
/** A question that a host was asked. */
export type Asking = {
  /** It is answered, or nobody wants to know any more. */
  withdraw(): void;
  /** What the host agreed to visit is done; the params of notifications/elicitation/complete. */
  complete(params: Buffer): void;
};
export type Answer = { readonly ok: true; readonly result: Buffer } | { readonly ok: false; readonly error: Buffer };

/** `nats` is one plain request; `rpc` a whole MCP session over NATS. */
export type Door = 'nats' | 'control' | 'plugin' | 'troupe' | 'http' | 'sse' | 'websocket' | 'stdio' | 'rpc';

/** Why a call is given up that somebody else goes on with: its server is not told to stop. */
export const HANDED_OVER = 'another daemon goes on with it';

/** The state in a failure of a call whose server no longer knows the task that it had made of it. */
export const FORGOTTEN = 'forgotten';

/** A task that a server runs, as it says itself. */
export type UpstreamTask = {
  readonly taskId: string;
  readonly status: TaskStatus;
  readonly statusMessage?: string;
};

export type Call = {
  /** The caller's handle for cancellation and progress events. Unguessable where it is one and the caller chose none. */
  readonly requestId: string;
  readonly server: string;
  readonly method: string;
  /** The tool, prompt or URI, for audit and for the allow list; the empty string where a method has none. */
  readonly name: string;
  /** The whole `params` object as JSON bytes, forwarded unchanged but for the progress token. */
  readonly params: Buffer;
  readonly principal: string;
  readonly door: Door;
  /** Whose state it shares at the server: calls of one holder may go to a process that no other holder shares. */
  readonly holder?: string;
  /** The holder has told the server what holds for one connection, such as a log level: its calls belong in one process. */
  readonly isBound?: boolean;
  readonly timeoutMs?: number;
  /** In place of its server's own bound: a task may take as long as it lives. */
  readonly maxTimeoutMs?: number;
  /** The task that it is: its outcome is kept. */
  readonly task?: string;
  /** What must be in place before it is sent, such as the roots of its host; asked for at once, bounded, and never rejects. */
  readonly ready?: Promise<unknown>;
  /** Asked when it is about to be sent; it is sent only after a yes, and after a no it ends as cancelled. */
  readonly reserve?: () => Promise<boolean>;
  /** Let the server run it as a task of its own, where it can, and how long that may live. */
  readonly ttlMs?: number;
  /** A task of the server's own that this call has become; it is followed, and nothing is sent again. */
  readonly upstream?: string;
  /** The server has made it a task of its own, or says how that one is. */
  readonly onUpstream?: (task: UpstreamTask) => void;
  /** Somebody knows the request id and may cancel by it. */
  readonly isCancellable?: boolean;
  /** Called for progress, logs and questions while the call is in flight, never after its outcome. */
  readonly onSignal?: (signal: Signal) => void;
  /** Whether the caller can be told that somebody is asked; one that cannot waits for that no longer than its time-out. */
  readonly isTold?: ((call: Call) => boolean) | undefined;
  /** Whether nobody hears the caller's answer just now, though the caller may come back for it. */
  readonly isAbsent?: (() => boolean) | undefined;
  /** Takes a question; undefined when this caller cannot answer such a one. */
  readonly onAsk?: (ask: Ask) => Asking | undefined;
  /** The caller knows itself what to do when a server wants an address visited first (-32042). */
  readonly handlesUrls?: boolean;
  /** What a server wanted visited before this call is done; only for who handles that itself, and also after the outcome. */
  readonly onElicited?: (params: Buffer) => void;
  /** Called exactly once. */
  readonly settle: (outcome: Outcome) => void;
};

/** For callers to whom nothing can be said before the answer. */
export const NEVER_TOLD = (): boolean => false;

/** A task as people and NATS see it. */
export type TaskView = Task & {
  readonly server: string;
  readonly tool: string;
  readonly principal: string;
  /** `queued` while nothing has been sent. */
  readonly phase: 'queued' | 'dispatching' | 'ended';
  /** How often it was sent. */
  readonly attempt: number;
  readonly progress?: { readonly progress: number; readonly total?: number; readonly message?: string };
};
