// What the machines say of the servers, as the rest of the daemon sees it: each state of a server's actor is written to its
// member and opens or closes its lane. Only the machines decide; a member's state is a copy.

import type { ActorRefFrom, AnyActorRef, SnapshotFrom, Subscription } from 'xstate';
import type { fleetMachine } from '../../machines/fleet.ts';
import type { serverMachine } from '../../machines/server.ts';
import type { Member } from './member.ts';
import { gate, gateOf, type ServerState, stateOf } from './states.ts';

export type ProjectionOptions = {
  readonly members: ReadonlyMap<string, Member>;
  /** The member has another state. */
  readonly onState: (member: Member) => void;
  /** The fleet's machine has forgotten the server, and its lane refuses all calls. */
  readonly onGone: (member: Member) => void;
};

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
    for (const [name, member] of this.#options.members) {
      const known = Object.hasOwn(context.members, name) ? context.members[name] : undefined;
      if (known?.life === 'buried') {
        this.#show(member, 'failed', `its actor crashed ${known.crashes + 1} times: ${known.why}`, member.restarts);
        member.lane.setGate(gate('failed', member.why));
        member.pool?.pump();
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
    const next = gateOf(snapshot);
    this.#show(member, stateOf(snapshot), why, restarts);
    // An actor tells of every event, also of those that change nothing, such as being wanted once more.
    const { mode, state, why: before } = member.lane.gate;
    if (next.mode === mode && next.state === state && next.why === before) return;
    member.lane.setGate(next);
    member.pool?.pump();
  }

  #show(member: Member, state: ServerState, why: string, restarts: number): void {
    if (why) member.lastError = why;
    member.why = why;
    member.restarts = restarts;
    if (member.state === state) return;
    member.state = state;
    member.since = Date.now();
    member.logger[state === 'failed' ? 'error' : why ? 'warn' : 'info']({ state, ...(why && { why }) }, state);
    this.#options.onState(member);
  }

  #forget(member: Member): void {
    this.#show(member, 'stopped', '', member.restarts);
    member.lane.setGate(gate('stopped', REMOVED));
    this.#shown.get(member.name)?.subscription.unsubscribe();
    this.#shown.delete(member.name);
    this.#options.onGone(member);
  }
}
