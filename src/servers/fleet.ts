// The fleet: every server with its lane and its actor. Doors give calls here, and here they come back to; the fleet's machine
// decides which servers live, and each change of a server's state opens or closes its lane and is told to whoever listens.

import type { Logger } from 'pino';
import {
  type ActorRefFrom,
  type AnyActorRef,
  createActor,
  type SnapshotFrom,
  type Subscription,
  toPromise,
} from 'xstate';
import { contained } from '../../machines/contained.ts';
import { fleetMachine, type Told } from '../../machines/fleet.ts';
import { serverMachine } from '../../machines/server.ts';
import type { Call, Outcome } from '../calls/call.ts';
import { createLane, type LaneOptions } from '../calls/lane.ts';
import type { Tell } from '../calls/permits.ts';
import type { Recorder } from '../calls/record.ts';
import { canAsk, type InFlight } from '../calls/request.ts';
import { createRequests } from '../calls/requests.ts';
import type { Catalog } from '../catalog/catalog.ts';
import type { Difference } from '../config/difference.ts';
import { isInstance } from '../config/names.ts';
import type { ServerConfig } from '../config/schema.ts';
import { type Failure, failureOf, sentence } from '../protocol/failures.ts';
import { realWorld, type World } from '../world/world.ts';
import { type ConnectionWorld, serverConnection } from './connection.ts';
import { createInstances, fitting } from './instances.ts';
import { createInteractive } from './interactive.ts';
import { type Member, newMember } from './member.ts';
import { refusal } from './policy.ts';
import { createPools } from './pools.ts';
import { gate, gateOf, type ServerState, specOf, stateOf } from './states.ts';

/** Whose word a call needs, as the layer of questions knows it. Each is told of the process that the call would go to. */
export type Permissions = {
  needOf(member: Member, call: Call): 'clear' | 'defer' | 'ask';
  awaitList(member: Member, request: InFlight, tell: Tell): void;
  askApproval(member: Member, request: InFlight, tell: Tell): void;
  wantsVisits(request: InFlight): boolean;
  askVisits(member: Member, request: InFlight, tell: Tell): void;
  /** A call has ended in an error; its host may be told later that what the server wanted visited is done. */
  noteVisits(member: Member, call: Call, outcome: Outcome): void;
  /** The server has another state, or has said what it offers. */
  changed(member: Member): void;
};

export type FleetOptions = Omit<ConnectionWorld, 'memberOf'> & {
  readonly catalog: Catalog;
  readonly logger: Logger;
  readonly driver: 'table' | 'actor';
  readonly record: Recorder;
  readonly permissions: Permissions;
  readonly world?: World;
  readonly onState: (member: Member) => void;
  /** It has new settings and keeps its process. */
  readonly onRetuned: (member: Member) => void;
  readonly onCrash: (why: string) => void;
};

/** Other numbers than a server's own restarts: the two levels multiply. */
const CRASH_LIMIT = { intensity: 3, periodMs: 300_000 };
const REMOVED = 'it was removed';

export const createFleet = (options: FleetOptions): Fleet => new Fleet(options);

export class Fleet {
  readonly #options: FleetOptions;
  readonly #members = new Map<string, Member>();
  readonly #actor: ActorRefFrom<typeof fleetMachine>;
  /** The actors whose states are shown, by the name of their server. */
  readonly #shown = new Map<string, { readonly actor: AnyActorRef; readonly subscription: Subscription }>();
  readonly #watchers = new Set<(member: Member) => void>();
  readonly #requests: ReturnType<typeof createRequests>;
  readonly #instances: ReturnType<typeof createInstances>;
  readonly #pools: ReturnType<typeof createPools>;

  constructor(options: FleetOptions) {
    this.#options = options;
    const { logger, driver, store, world = realWorld } = options;
    const remove = (name: string): void => this.#actor.send({ type: 'server.removed', name });
    this.#requests = createRequests({
      driver,
      world,
      onCrash: (error) => logger.error(`a request in flight: ${sentence(error)}`),
    });
    this.#instances = createInstances({
      members: this.#members,
      launch: (name, config, onBehalfOf, first) => this.#launch(name, config, onBehalfOf, first),
      remove,
    });
    this.#pools = createPools({
      instances: this.#instances,
      remove,
      tell: (name, command) => this.#tell(name, command),
      interactive: createInteractive(store, (error) => logger.warn(sentence(error))),
    });
    const connection = serverConnection({ ...options, memberOf: (name) => this.#members.get(name) as Member });
    const server = contained(serverMachine.provide({ actors: { connection } }));
    this.#actor = createActor(fleetMachine.provide({ actors: { server } }), { input: CRASH_LIMIT });
    this.#actor.subscribe({
      next: (snapshot) => this.#follow(snapshot),
      error: (error) => options.onCrash(sentence(error)),
    });
  }

  // ── Calls ──────────────────────────────────────────────────────────────────

  /** Takes a call for a server that exists, and answers it exactly once. False when there is no such server. */
  submit(call: Call): boolean {
    const member = this.#instances.memberFor(call.server, call.principal, call.holder);
    if (!member) return false;
    member.lane.submit(call);
    return true;
  }

  /** False when that principal has no such call in flight. */
  cancel(principal: string, requestId: string, why: string): boolean {
    return this.#requests.cancel(principal, requestId, why);
  }

  isInFlight(principal: string, requestId: string): boolean {
    return this.#requests.isInFlight(principal, requestId);
  }

  /** Whether a call would reach its server at once, if it came now, behind so many others that are about to. */
  isClear(call: Call, ahead: number): boolean {
    const member = this.#instances.memberFor(call.server, call.principal, call.holder);
    if (!member || member.pool || member.lane.queued > 0) return false;
    return member.lane.room > ahead && this.#options.permissions.needOf(member, call) === 'clear';
  }

  refusalOf(call: Call, member: Member): Failure | undefined {
    return refusal(member, this.#options.catalog, call);
  }

  /** Gives an admitted request to the process that shall have it. */
  #place(from: Member, request: InFlight, how: 'here' | 'anew' | 'back'): void {
    const { call } = request;
    let member: Member | undefined = from;
    // The process that sent a call back knows what was done at the address.
    if (how === 'anew' || (how === 'back' && this.#members.get(from.name) !== from))
      try {
        member = this.#instances.memberFor(call.server, call.principal, call.holder);
      } catch (error) {
        const failure = failureOf(error, (fault) => from.logger.error(sentence(fault)));
        request.refusal = { ...failure, server: from.server };
        return void this.#requests.drive(request, 'refuse');
      }
    if (!member) {
      request.why = REMOVED;
      this.#requests.drive(request, 'gone');
    } else if (member.pool && canAsk(call)) member.pool.admit(request, member);
    else member.lane.admit(request);
  }

  #settled(member: Member, request: InFlight, outcome: Outcome, isRecorded: boolean): void {
    const { call } = request;
    if (call.onElicited && !outcome.ok) this.#options.permissions.noteVisits(member, call, outcome);
    call.settle(outcome);
    if (call.door !== 'troupe') {
      // A server that still works on other calls may be deaf, and they have deadlines of their own.
      if (!outcome.ok && outcome.failure.code === 'timeout' && member.lane.inFlight === 0) member.probe?.();
      if (!isRecorded) this.#record(member, request, outcome);
    }
    member.pool?.pump();
  }

  #record(member: Member, request: InFlight, outcome: Outcome): void {
    member.calls++;
    if (!outcome.ok) member.errors++;
    this.#options.record(request, outcome, member.logger);
  }

  // ── Servers ────────────────────────────────────────────────────────────────

  start(): void {
    this.#actor.start();
  }

  /** Resolves when the last server has said goodbye. */
  async stop(): Promise<void> {
    this.#actor.send({ type: 'stop' });
    await toPromise(this.#actor);
  }

  /** Tells of every change of a state, also of the further processes of a pool. Returns how to hear no more of it. */
  readonly watch = (listener: (member: Member) => void): (() => void) => {
    this.#watchers.add(listener);
    return () => this.#watchers.delete(listener);
  };

  members(): Member[] {
    return [...this.#members.values()];
  }

  member(name: string): Member | undefined {
    return this.#members.get(name);
  }

  /** The process that serves these calls; throws when there is no room for one. */
  memberFor(server: string, principal: string, holder?: string): Member | undefined {
    return this.#instances.memberFor(server, principal, holder);
  }

  /** The same, but nobody is started for it. */
  knownFor(server: string, principal: string, holder?: string): Member | undefined {
    return this.#instances.knownFor(server, principal, holder);
  }

  /** The processes that served one holder alone go with it. */
  release(holder: string): void {
    this.#instances.release(holder);
  }

  /** What is told to the first process of a pool is meant for all; those that it stops come again when they are needed. */
  tell(name: string, command: Told): void {
    const member = this.#members.get(name);
    if (command.type === 'stop' || command.type === 'restart') if (member && !member.first) member.pool?.alone();
    this.#tell(name, command);
  }

  launch(config: ServerConfig): Member {
    return this.#launch(config.name, config);
  }

  apply({ added, removed, relaunched, retuned }: Difference): void {
    const { of } = this.#instances;
    for (const { name, server } of removed.flatMap(of)) {
      this.#actor.send({ type: 'server.removed', name });
      if (name === server) this.#options.catalog.forget(name);
    }
    for (const config of added) this.launch(config);
    for (const config of relaunched)
      for (const { name, first } of of(config.name))
        if (first) this.#actor.send({ type: 'server.removed', name });
        else this.#launch(name, fitting(name, config));
    for (const config of retuned)
      for (const { name } of of(config.name)) {
        if (name !== config.name && config.settings.share === 'all') this.#actor.send({ type: 'server.removed', name });
        else this.#retune(name, fitting(name, config));
      }
  }

  #tell(name: string, command: Told): void {
    this.#actor.send({ type: 'server.told', name, command });
  }

  #launch(name: string, config: ServerConfig, onBehalfOf?: string, first?: Member): Member {
    const member = this.#members.get(name) ?? this.#enlist(name, config, onBehalfOf, first);
    member.config = config;
    member.lane.retune(config.settings);
    this.#pools.review(member);
    this.#actor.send({ type: 'server.set', launch: { spec: specOf(name, config), start: config.settings.enabled } });
    return member;
  }

  #enlist(name: string, config: ServerConfig, onBehalfOf: string | undefined, first: Member | undefined): Member {
    const laneOptions = this.#laneOptions(name, config, () => member);
    const logger = this.#options.logger.child({ server: name });
    const member: Member = newMember({ name, config, lane: createLane(laneOptions), logger, onBehalfOf, first });
    this.#members.set(name, member);
    if (!first)
      this.#pools.admit(member, () =>
        createLane({ ...laneOptions, settings: member.config.settings, onWanted: () => {} }),
      );
    return member;
  }

  #laneOptions(name: string, config: ServerConfig, member: () => Member): LaneOptions {
    const { permissions, catalog } = this.#options;
    return {
      server: config.name,
      settings: config.settings,
      requests: this.#requests,
      refusalOf: (call) => refusal(member(), catalog, call),
      permits: {
        needOf: (call) => permissions.needOf(member(), call),
        awaitList: (request, tell) => permissions.awaitList(member(), request, tell),
        askApproval: (request, tell) => permissions.askApproval(member(), request, tell),
        wantsVisits: permissions.wantsVisits,
        askVisits: (request, tell) => permissions.askVisits(member(), request, tell),
      },
      place: (request, how) => this.#place(member(), request, how),
      onSettled: (request, outcome, isRecorded) => this.#settled(member(), request, outcome, isRecorded),
      onAttempt: (request, outcome) => this.#record(member(), request, outcome),
      onWanted: () => {
        if (member().state !== 'opening') this.#tell(name, { type: 'wanted' });
      },
    };
  }

  #retune(name: string, config: ServerConfig): void {
    const member = this.#members.get(name);
    if (!member) return;
    member.config = config;
    member.lane.retune(config.settings);
    this.#pools.review(member);
    if (member.first) return;
    this.#options.catalog.expire(name); // which tools are shown may be one of the settings
    this.#options.onRetuned(member);
  }

  // ── What the machines say ──────────────────────────────────────────────────

  /** A server's actor may be another one than before; those that the fleet has buried or forgotten have none. */
  #follow({ context, children, status }: SnapshotFrom<typeof fleetMachine>): void {
    for (const [name, member] of this.#members) {
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
    const project = (snapshot: SnapshotFrom<typeof serverMachine>): void => {
      if (snapshot.status === 'error') return;
      const { why, restarts } = snapshot.context;
      const next = gateOf(snapshot);
      this.#show(member, stateOf(snapshot), why, restarts);
      // Its actor tells of every event, also of those that change nothing, such as being wanted once more.
      const { mode, state, why: before } = member.lane.gate;
      if (next.mode === mode && next.state === state && next.why === before) return;
      member.lane.setGate(next);
      member.pool?.pump();
    };
    // The fleet's own chart handles a crash.
    const subscription = actor.subscribe({ next: project, error: () => {} });
    this.#shown.set(member.name, { actor, subscription });
    project(actor.getSnapshot());
  }

  #show(member: Member, state: ServerState, why: string, restarts: number): void {
    if (why) member.lastError = why;
    member.why = why;
    member.restarts = restarts;
    if (member.state === state) return;
    member.state = state;
    member.since = Date.now();
    member.logger[state === 'failed' ? 'error' : why ? 'warn' : 'info']({ state, ...(why && { why }) }, state);
    for (const watcher of this.#watchers) watcher(member);
    if (member.first) return; // the first process of a pool stands for them all
    if (state !== 'ready') this.#options.catalog.expire(member.name);
    this.#options.permissions.changed(member);
    this.#options.onState(member);
  }

  #forget(member: Member): void {
    const { name, server } = member;
    this.#show(member, 'stopped', '', member.restarts);
    member.lane.setGate(gate('stopped', REMOVED));
    this.#members.delete(name);
    this.#shown.get(name)?.subscription.unsubscribe();
    this.#shown.delete(name);
    member.pool?.pump();
    if (name === server) this.#requests.sendAway(name, REMOVED);
    if (isInstance(name) && !member.first) this.#options.catalog.forget(name); // nobody asks for a departed principal's lists
  }
}
