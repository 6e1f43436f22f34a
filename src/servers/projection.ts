// What the machines say of the servers, as the rest of the daemon sees it: each state of a server's actor is written to its
// member and opens or closes its lane. Only the machines decide; a member's state is a copy.

import type { ActorRefFrom, AnyActorRef, SnapshotFrom, Subscription } from 'xstate';
import type { fleetMachine } from '../../machines/fleet.ts';
import type { serverMachine } from '../../machines/server.ts';
import type { Gate } from '../calls/outcomes.ts';
import type { Member } from './member.ts';
import { gate, gateOf, stateOf } from './states.ts';

export type ProjectionOptions = {
  readonly members: ReadonlyMap<string, Member>;
  /** The member has another state. */
  readonly onState: (member: Member) => void;
  /** After that, once its gate says what the state means to calls. */
  readonly onGate: (member: Member) => void;
  /** The fleet's machine has forgotten the server, and its lane refuses all calls. */
  readonly onGone: (member: Member) => void;
};

type Shown = Pick<Member, 'state' | 'why' | 'restarts'>;

export const REMOVED = 'it was removed';

export class Projection {
  readonly #options: ProjectionOptions;
  /** The actors whose states are shown, by the name of their server. */
  readonly #shown = new Map<string, { readonly actor: AnyActorRef; readonly subscription: Subscription }>();

  constructor(options: ProjectionOptions) {
    this.#options = options;
  }

  /** A server's actor may be another one than before; servers that the fleet has buried or forgotten have none. */
  follow({ context, children, status }: SnapshotFrom<typeof fleetMachine>): void {
    // A copy: a pool that is told may start one more process.
    for (const [name, member] of [...this.#options.members]) {
      const known = Object.hasOwn(context.members, name) ? context.members[name] : undefined;
      if (known?.life === 'buried') {
        const why = `its actor crashed ${known.crashes + 1} times: ${known.why}`;
        this.#turn(member, { state: 'failed', why, restarts: member.restarts }, gate('failed', why));
      } else if (!known || status === 'done') this.#forget(member);
      else this.#watch(member, children[name] as ActorRefFrom<typeof serverMachine> | undefined);
    }
  }

  #watch(member: Member, actor: ActorRefFrom<typeof serverMachine> | undefined): void {
    const known = this.#shown.get(member.name);
    if (!actor || known?.actor === actor) return;
    known?.subscription.unsubscribe();
    const project = (snapshot: SnapshotFrom<typeof serverMachine>): void => this.#project(member, snapshot);
    // The fleet's own chart handles a crash.
    const subscription = actor.subscribe({ next: project, error: () => {} });
    this.#shown.set(member.name, { actor, subscription });
    project(actor.getSnapshot());
  }

  #project(member: Member, snapshot: SnapshotFrom<typeof serverMachine>): void {
    if (snapshot.status === 'error') return;
    const { why, restarts } = snapshot.context;
    this.#turn(member, { state: stateOf(snapshot), why, restarts }, gateOf(snapshot));
  }

  /** The state, then the gate, then whoever decides about calls by both. */
  #turn(member: Member, shown: Shown, next: Gate): void {
    const isNews = this.#show(member, shown);
    // An actor tells of every event, also of those that change nothing, such as being wanted once more.
    const { mode, state, why } = member.lane.gate;
    if (next.mode !== mode || next.state !== state || next.why !== why) {
      member.lane.setGate(next);
      member.pool?.pump();
    }
    if (isNews) this.#options.onGate(member);
  }

  /** True when the state is another one. */
  #show(member: Member, { state, why, restarts }: Shown): boolean {
    if (why) member.lastError = why;
    member.why = why;
    member.restarts = restarts;
    if (member.state === state) return false;
    member.state = state;
    member.since = Date.now();
    member.logger[state === 'failed' ? 'error' : why ? 'warn' : 'info']({ state, ...(why && { why }) }, state);
    this.#options.onState(member);
    return true;
  }

  #forget(member: Member): void {
    this.#turn(member, { state: 'stopped', why: '', restarts: member.restarts }, gate('stopped', REMOVED));
    this.#shown.get(member.name)?.subscription.unsubscribe();
    this.#shown.delete(member.name);
    this.#options.onGone(member);
  }
}
