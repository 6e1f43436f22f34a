// The fleet: every server with its lane and its actor. Doors submit calls here, and each call is settled here; the fleet's
// machine decides which servers live, and every change of a server's state is told to the rest of the daemon.

import type { Logger } from 'pino';
import { type ActorRefFrom, createActor, toPromise } from 'xstate';
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
import { type ConnectionWorld, serverConnection } from './connection/connection.ts';
import { configFor, Instances } from './instances.ts';
import { type Member, newMember } from './member.ts';
import { refusal } from './policy.ts';
import { createInteractive, createPools } from './pools.ts';
import { Projection, REMOVED } from './projection.ts';
import { meaningOf, specOf } from './states.ts';
import { Suspects } from './suspects.ts';

/** The permission that a call needs, as the layer of questions knows it. `member` is the process that the call would go to. */
export type Permissions = {
  needOf(member: Member, call: Call): 'clear' | 'defer' | 'ask';
  awaitList(member: Member, request: InFlight, tell: Tell): void;
  askApproval(member: Member, request: InFlight, tell: Tell): void;
  wantsVisits(request: InFlight): boolean;
  askVisits(member: Member, request: InFlight, tell: Tell): void;
  /** A call has ended in an error; when a person has visited the address that it names, its host may be told. */
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
  /** How many processes the machine has room for. */
  readonly maxProcesses?: number;
  /** How many bytes of calls may wait for their answers. */
  readonly maxCallBytes?: number;
  readonly onState: (member: Member) => void;
  /** The server has new settings and keeps its process. */
  readonly onRetuned: (member: Member) => void;
  readonly onCrash: (why: string) => void;
};

/** Other numbers than a server's own restarts: the two levels multiply. */
const CRASH_LIMIT = { intensity: 3, periodMs: 300_000 };

export class Fleet {
  readonly #options: FleetOptions;
  readonly #members = new Map<string, Member>();
  readonly #actor: ActorRefFrom<typeof fleetMachine>;
  readonly #suspects = new Map<string, Suspects>();
  readonly #watchers = new Set<(member: Member) => void>();
  readonly #requests: ReturnType<typeof createRequests>;
  readonly #instances: Instances;
  readonly #pools: ReturnType<typeof createPools>;

  constructor(options: FleetOptions) {
    this.#options = options;
    const { logger, driver, store, world = realWorld } = options;
    const remove = (name: string): void => this.#remove(name);
    this.#requests = createRequests({
      driver,
      world,
      onCrash: (error) => logger.error(`a request in flight: ${sentence(error)}`),
      ...(options.maxCallBytes !== undefined && { maxBytes: options.maxCallBytes }),
    });
    this.#instances = new Instances({
      members: this.#members,
      launch: (name, config, onBehalfOf, first) => this.#launch(name, config, onBehalfOf, first),
      remove,
      now: world.now,
      ...(options.maxProcesses !== undefined && { most: options.maxProcesses }),
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
    const projection = new Projection({
      members: this.#members,
      onState: (member) => this.#changed(member),
      onGate: (member) => {
        if (!member.first) options.permissions.changed(member);
      },
      onGone: (member) => this.#gone(member),
    });
    this.#actor.subscribe({
      next: (snapshot) => projection.follow(snapshot),
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

  /** The caller of a call in flight is back, or has left for good. */
  callerIs(where: 'back' | 'gone', principal: string, requestId: string): void {
    this.#requests.callerIs(where, principal, requestId);
  }

  isInFlight(principal: string, requestId: string): boolean {
    return this.#requests.isInFlight(principal, requestId);
  }

  /** Whether a call would reach its server at once, if `ahead` others were submitted before it. */
  isClear(call: Call, ahead: number): boolean {
    const member = this.#instances.memberFor(call.server, call.principal, call.holder);
    if (!member || member.pool || member.lane.queued > 0) return false;
    return member.lane.room > ahead && this.#options.permissions.needOf(member, call) === 'clear';
  }

  refusalOf(call: Call, member: Member): Failure | undefined {
    return refusal(member, this.#options.catalog, call);
  }

  /** First what its caller has to put in place, then whether somebody's word is needed. */
  #awaitReady(member: Member, request: InFlight, tell: Tell): void {
    const { permissions } = this.#options;
    const { call } = request;
    if (!call.ready) return permissions.awaitList(member, request, tell);
    let isOver = false;
    request.withdraw = () => {
      isOver = true;
    };
    const goOn = (): void => {
      if (isOver) return;
      const need = permissions.needOf(member, call);
      if (need === 'defer') permissions.awaitList(member, request, tell);
      else tell(need);
    };
    void call.ready.then(goOn, goOn);
  }

  /** Gives an admitted request to the process that shall have it. */
  #place(from: Member, request: InFlight, how: 'here' | 'anew' | 'back'): void {
    const { call } = request;
    let member: Member | undefined = from;
    // A process that sent a call back until an address is visited knows what was done there.
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
    else ((member.pool && member.homes.of(call.holder)) ?? member).lane.admit(request);
  }

  #settled(member: Member, request: InFlight, outcome: Outcome, isRecorded: boolean): void {
    const { call } = request;
    if (call.onElicited && !outcome.ok) this.#options.permissions.noteVisits(member, call, outcome);
    call.settle(outcome);
    if (outcome.ok && member.suspects.size > 0) member.suspects.acquit(call);
    if (call.door !== 'troupe') {
      if (member.config.transport === 'stdio' && isGivenUp(outcome)) member.givenUp.add(request.id, call);
      // A server with other calls in flight may be too busy to answer a ping, and those calls have deadlines of their own.
      if (!outcome.ok && outcome.failure.code === 'timeout' && member.lane.inFlight === 0) member.doubt?.();
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

  /** The same, but no process is started. */
  knownFor(server: string, principal: string, holder?: string): Member | undefined {
    return this.#instances.knownFor(server, principal, holder);
  }

  /** The process that a session is at home in: what it tells the server, and every call of it from now on, goes there. */
  homeFor(server: string, principal: string, session: string): Member | undefined {
    const first = this.#instances.memberFor(server, principal, session);
    if (first?.pool) return first.pool.homeOf(session);
    first?.homes.give(session, first);
    return first;
  }

  /** Whether what a process says without being asked may concern that session: any of its tenant's, until it has a home. */
  isHeardBy(process: Member, principal: string, session: string): boolean {
    const first = process.first ?? process;
    if (this.#instances.knownFor(process.server, principal, session) !== first) return false;
    const home = first.homes.of(session);
    return home === undefined || home === process;
  }

  /** The processes that served one holder alone go with it, and it is at home nowhere any more. */
  release(holder: string): void {
    this.#instances.release(holder);
    for (const { homes } of this.#members.values()) homes.forget(holder);
  }

  /** A command to the first process of a pool is meant for all: further ones are stopped, and come again when they are needed. */
  tell(name: string, command: Told): void {
    const member = this.#members.get(name);
    if (command.type === 'start' || command.type === 'restart') member?.suspects.clear();
    if (command.type === 'stop' || command.type === 'restart') if (member && !member.first) member.pool?.alone();
    this.#tell(name, command);
  }

  /** Somebody wants the server: one that sleeps wakes up, and one in an outage is tried at once. */
  want({ name, state }: Member): void {
    if (state !== 'ready' && state !== 'opening') this.#tell(name, { type: 'wanted' });
  }

  /** Somebody is here who may want it soon: one that sleeps sleeps on. */
  expect(member: Member): void {
    const { isAtRest, isLeaving } = meaningOf(member.state);
    if (!isAtRest && !isLeaving) this.want(member);
  }

  launch(config: ServerConfig): Member {
    return this.#launch(config.name, config);
  }

  apply({ added, removed, relaunched, retuned }: Difference): void {
    const processesOf = (server: string): Member[] => this.#instances.of(server);
    for (const { name, server } of removed.flatMap(processesOf)) {
      this.#remove(name);
      if (name === server) this.#options.catalog.forget(name);
    }
    for (const config of added) this.launch(config);
    for (const config of relaunched)
      for (const { name, first } of processesOf(config.name))
        if (first) this.#remove(name);
        else this.#launch(name, configFor(name, config));
    for (const config of retuned)
      for (const { name } of processesOf(config.name))
        if (name !== config.name && config.settings.share === 'all') this.#remove(name);
        else this.#retune(name, configFor(name, config));
  }

  #remove(name: string): void {
    this.#actor.send({ type: 'server.removed', name });
  }

  #tell(name: string, command: Told): void {
    this.#actor.send({ type: 'server.told', name, command });
  }

  #launch(name: string, config: ServerConfig, onBehalfOf?: string, first?: Member): Member {
    const member = this.#members.get(name) ?? this.#enlist(name, config, onBehalfOf, first);
    if (member.config !== config && !first) member.suspects.clear();
    member.config = config;
    member.lane.retune(config.settings);
    this.#pools.review(member);
    this.#actor.send({ type: 'server.set', launch: { spec: specOf(name, config), start: config.settings.enabled } });
    return member;
  }

  #enlist(name: string, config: ServerConfig, onBehalfOf: string | undefined, first: Member | undefined): Member {
    const laneOptions = this.#laneOptions(config, () => member);
    const logger = this.#options.logger.child({ server: name });
    const lane = createLane(laneOptions);
    const suspects = this.#suspectsOf(config.name);
    const member: Member = newMember({ name, config, lane, logger, suspects, onBehalfOf, first });
    this.#members.set(name, member);
    if (!first)
      this.#pools.admit(member, () =>
        createLane({ ...laneOptions, settings: member.config.settings, onWanted: () => {} }),
      );
    return member;
  }

  #suspectsOf(server: string): Suspects {
    const known = this.#suspects.get(server) ?? new Suspects(this.#options.world ?? realWorld);
    this.#suspects.set(server, known);
    return known;
  }

  #laneOptions(config: ServerConfig, member: () => Member): LaneOptions {
    const { permissions, catalog } = this.#options;
    return {
      server: config.name,
      settings: config.settings,
      requests: this.#requests,
      refusalOf: (call) => refusal(member(), catalog, call),
      permits: {
        needOf: (call) => (call.ready ? 'defer' : permissions.needOf(member(), call)),
        awaitList: (request, tell) => this.#awaitReady(member(), request, tell),
        askApproval: (request, tell) => permissions.askApproval(member(), request, tell),
        wantsVisits: permissions.wantsVisits,
        askVisits: (request, tell) => permissions.askVisits(member(), request, tell),
      },
      place: (request, how) => this.#place(member(), request, how),
      onSettled: (request, outcome, isRecorded) => this.#settled(member(), request, outcome, isRecorded),
      onAttempt: (request, outcome) => this.#record(member(), request, outcome),
      onLeft: () => member().pool?.pump(),
      onWanted: () => this.want(member()),
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

  // ── News of the machines ───────────────────────────────────────────────────

  #changed(member: Member): void {
    const { catalog, onState } = this.#options;
    for (const watcher of this.#watchers) watcher(member);
    if (member.first) return; // the first process of a pool stands for them all
    if (member.state !== 'ready') catalog.expire(member.name);
    onState(member);
  }

  #gone(member: Member): void {
    const { name, server, first, pool } = member;
    this.#members.delete(name);
    pool?.pump();
    if (name === server) this.#suspects.delete(server);
    if (name === server) this.#requests.sendAway(name, REMOVED);
    if (isInstance(name) && !first) this.#options.catalog.forget(name); // the lists of a tenant that has left are of no use
  }
}

/** Its caller waits no longer, and the server may not have noticed. */
const isGivenUp = (outcome: Outcome): boolean =>
  !outcome.ok &&
  outcome.failure.delivery === 'outcome unknown' &&
  (outcome.failure.code === 'timeout' || outcome.failure.code === 'cancelled');
