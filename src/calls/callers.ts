// The callers that a server may still be talking about although their calls have ended: those it answered a moment ago, and
// those whose calls were given up while it worked on them. What it says or asks then is not given to anybody else.

import type { World } from '../world/world.ts';
import type { Call } from './call.ts';

export type Caller = Pick<Call, 'principal' | 'holder'>;
type Settled = { readonly by: Caller; at: number };

/** As long as a call may last at all, if nothing else is configured. */
const ABANDONED_MS = 600_000;
const MAX_ABANDONED = 1_000;

export class Callers {
  readonly #world: World;
  /** The last caller who was answered, and the last one before that who is somebody else. */
  #last: Settled | undefined;
  #before: Settled | undefined;
  /** By our id of the call. */
  readonly #abandoned = new Map<string, { readonly by: Caller; readonly until: number }>();

  constructor(world: World) {
    this.#world = world;
  }

  settled(by: Caller, at: number): void {
    if (this.#last && isSame(by, this.#last.by)) {
      this.#last.at = at;
      return;
    }
    this.#before = this.#last;
    this.#last = { by: callerOf(by), at };
  }

  /** A line that the server logs just after an answer is about the call that it has answered. */
  recent(withinMs: number): Caller[] {
    const since = this.#world.now() - withinMs;
    return [this.#last, this.#before].flatMap((each) => (each && each.at > since ? [each.by] : []));
  }

  /** The call was cancelled or is out of time. The server may not have noticed, and may still ask on its behalf. */
  abandon(id: string, by: Caller): void {
    const [oldest] = this.#abandoned.keys();
    if (this.#abandoned.size >= MAX_ABANDONED && oldest !== undefined) this.#abandoned.delete(oldest);
    this.#abandoned.set(id, { by: callerOf(by), until: this.#world.now() + ABANDONED_MS });
  }

  /** The server has answered an abandoned call after all. */
  answered(id: string): void {
    this.#abandoned.delete(id);
  }

  /** A new process has never heard of the calls that the last one was given. */
  forgetAbandoned(): void {
    this.#abandoned.clear();
  }

  abandoned(): Caller[] {
    const at = this.#world.now();
    for (const [id, { until }] of this.#abandoned) if (until < at) this.#abandoned.delete(id);
    return [...this.#abandoned.values()].map(({ by }) => by);
  }
}

/** A call itself would be kept with all that hangs on it until the server answers another one. */
const callerOf = ({ principal, holder }: Caller): Caller =>
  holder === undefined ? { principal } : { principal, holder };

const isSame = (a: Caller, b: Caller): boolean => a.principal === b.principal && a.holder === b.holder;
