// Which calls are suspected of ending their server: those that were at it when its process died, and those that were given up
// shortly before, which it may have been working on. A call that was there twice is not sent a third time, and a death that is such
// a call's doing is not counted against the server.

import { createHash } from 'node:crypto';
import type { Call } from '../calls/call.ts';
import { withoutMember } from '../protocol/edit.ts';
import type { World } from '../world/world.ts';

type Accused = Pick<Call, 'method' | 'params'>;
type Suspicion = { readonly deaths: number; readonly at: number };

const GUILTY_AFTER = 2;
const FORGOTTEN_AFTER_MS = 600_000;
const MAX_SUSPECTS = 256;

/** The suspects of one server, whichever of its processes died. */
export class Suspects {
  readonly #world: Pick<World, 'now'>;
  /** By digest, the latest last. */
  readonly #known = new Map<string, Suspicion>();

  constructor(world: Pick<World, 'now'>) {
    this.#world = world;
  }

  /** For one process of the server. */
  ofProcess(): GivenUp {
    return new GivenUp(this.#world);
  }

  /** Most servers have none, and their calls are not looked at. */
  get size(): number {
    return this.#known.size;
  }

  /**
   * A process died with these calls at it, and after those were given up. True when one of them is to blame: it was there alone, or
   * not for the first time.
   */
  died(calls: readonly Accused[], givenUp: readonly string[] = []): boolean {
    this.#forgetOld();
    const digests = new Set([...calls.slice(0, MAX_SUSPECTS).map(digestOf), ...givenUp]);
    let isRepeated = false;
    for (const digest of digests) {
      const deaths = this.#known.get(digest)?.deaths ?? 0;
      isRepeated ||= deaths > 0;
      this.#known.delete(digest);
      this.#known.set(digest, { deaths: deaths + 1, at: this.#world.now() });
    }
    for (const oldest of this.#known.keys()) if (this.#known.size > MAX_SUSPECTS) this.#known.delete(oldest);
    return isRepeated || digests.size === 1;
  }

  isGuilty(call: Accused): boolean {
    this.#forgetOld();
    const { deaths = 0 } = this.#known.get(digestOf(call)) ?? {};
    return deaths >= GUILTY_AFTER;
  }

  /** The server has answered such a call, so it was there by chance. */
  acquit(call: Accused): void {
    this.#known.delete(digestOf(call));
  }

  /** The server is another one now, or somebody has mended it. */
  clear(): void {
    this.#known.clear();
  }

  #forgetOld(): void {
    const now = this.#world.now();
    for (const [digest, { at }] of this.#known) {
      if (now - at < FORGOTTEN_AFTER_MS) return;
      this.#known.delete(digest);
    }
  }
}

/** A process that has not answered a call so long after it was given up is not taken to work on it any more. */
const WORKED_ON_MS = 30_000;

/** The calls of one process that were cancelled or out of time, and that it has not answered since. */
export class GivenUp {
  readonly #world: Pick<World, 'now'>;
  /** By our id of the call, the latest last. Digests: the calls themselves may be large. */
  readonly #calls = new Map<string, { readonly digest: string; readonly at: number }>();

  constructor(world: Pick<World, 'now'>) {
    this.#world = world;
  }

  add(id: string, call: Accused): void {
    const [oldest] = this.#calls.keys();
    if (this.#calls.size >= MAX_SUSPECTS && oldest !== undefined) this.#calls.delete(oldest);
    this.#calls.set(id, { digest: digestOf(call), at: this.#world.now() });
  }

  answered(id: string): void {
    this.#calls.delete(id);
  }

  recent(): string[] {
    const since = this.#world.now() - WORKED_ON_MS;
    return [...this.#calls.values()].filter(({ at }) => at > since).map(({ digest }) => digest);
  }

  /** Another process has never heard of them. */
  clear(): void {
    this.#calls.clear();
  }
}

/** What its caller says beside it, such as a progress token, is another one each time. */
const digestOf = ({ method, params }: Accused): string =>
  createHash('sha256').update(`${method} `).update(withoutMember(params, '_meta')).digest('base64url');
