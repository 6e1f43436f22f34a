// The fleet: every server with its lane and its actor. Doors give calls here; the fleet's machine decides who lives, and
// each change of a state opens or closes the lane of that server and is told to whoever listens.

import type { Logger } from 'pino';
import { type AnyActorRef, createActor, type InspectionEvent, type SnapshotFrom, waitFor } from 'xstate';
import { contained } from '../../machines/contained.ts';
import { fleetMachine, type Launch, type Told } from '../../machines/fleet.ts';
import { serverMachine } from '../../machines/server.ts';
import type { OpenAsk } from '../asks/waiting/waiting.ts';
import type { Call } from '../calls/call.ts';
import { createLane } from '../calls/lane.ts';
import type { LaneOptions } from '../calls/peer.ts';
import type { Recorder } from '../calls/record.ts';
import type { Catalog } from '../catalog/catalog.ts';
import type { Difference } from '../config/difference.ts';
import { isInstance } from '../config/names.ts';
import type { ServerConfig } from '../config/schema.ts';
import { type Failure, sentence } from '../protocol/failures.ts';
import { type ConnectionWorld, serverConnection } from './connection.ts';
import { createInstances, fitting } from './instances.ts';
import { createInteractive } from './interactive.ts';
import { type Member, newMember } from './member.ts';
import { refusal } from './policy.ts';
import { createPools } from './pools.ts';
import { createReception, type ReceptionOptions } from './reception.ts';
import { gateOf, latestOnly, type ServerSnapshot, specOf, stateOf } from './states.ts';

export type FleetOptions = Omit<ConnectionWorld, 'memberOf'> & {
  readonly catalog: Catalog;
  readonly logger: Logger;
  readonly driver: 'table' | 'actor';
  readonly record: Recorder;
  /** Calls that wait for somebody's word ask for it there. */
  readonly openAsk: OpenAsk;
  readonly noteVisits?: ReceptionOptions['noteVisits'];
  readonly onState: (member: Member) => void;
  /** It has new settings and keeps its process. */
  readonly onRetuned: (member: Member) => void;
  readonly onCrash: (why: string) => void;
};

export type Fleet = ReturnType<typeof createFleet>;

/** Other numbers than a server's own restarts: the two levels multiply. */
const CRASH_LIMIT = { intensity: 3, periodMs: 300_000 };

export function createFleet(options: FleetOptions) {
  const { catalog, logger, driver, onState, onCrash } = options;
  const members = new Map<string, Member>();
  const isLatest = latestOnly();
  const watchers = new Set<(member: Member) => void>();

  const connection = serverConnection({ ...options, memberOf: (name) => members.get(name) as Member });
  const server = contained(serverMachine.provide({ actors: { connection } }));
  const fleet = createActor(fleetMachine.provide({ actors: { server } }), { input: CRASH_LIMIT, inspect });
  fleet.subscribe({ next: settle, error: (error) => onCrash(sentence(error)) });

  function inspect(event: InspectionEvent): void {
    if (event.type !== '@xstate.snapshot' || event.actorRef === fleet) return;
    const actor = event.actorRef as AnyActorRef;
    const member = members.get(actor.id);
    if (member && 'value' in event.snapshot && isLatest(actor)) show(member, event.snapshot as ServerSnapshot);
  }

  function show(member: Member, snapshot: ServerSnapshot): void {
    const { why, restarts } = snapshot.context;
    change(member, stateOf(snapshot), why, restarts);
    member.lane.setGate(gateOf(snapshot));
    member.pool?.pump();
  }

  function change(member: Member, state: Member['state'], why: string, restarts: number): void {
    if (why) member.lastError = why;
    Object.assign(member, { why, restarts });
    if (member.state === state) return;
    Object.assign(member, { state, since: Date.now() });
    member.logger[state === 'failed' ? 'error' : why ? 'warn' : 'info']({ state, ...(why && { why }) }, state);
    for (const watcher of watchers) watcher(member);
    if (member.first) return; // the first process of a pool stands for them all
    if (state !== 'ready') catalog.expire(member.name);
    onState(member);
  }

  /** Those the fleet has buried or forgotten have no actor left that could say so. */
  function settle({ context, status }: SnapshotFrom<typeof fleetMachine>): void {
    for (const [name, member] of members) {
      const known = context.members[name];
      if (known?.life === 'buried') {
        const why = `its actor crashed ${known.crashes + 1} times: ${known.why}`;
        change(member, 'failed', why, member.restarts);
        member.lane.setGate({ mode: 'refuse', state: 'failed', why });
        member.pool?.pump();
      } else if (!known || status === 'done') {
        change(member, 'stopped', '', member.restarts);
        member.lane.setGate({ mode: 'refuse', state: 'stopped', why: 'it was removed' });
        members.delete(name);
        member.pool?.pump();
        if (name === member.server) reception.sendAway(name, 'it was removed');
        if (isInstance(name) && !member.first) catalog.forget(name); // nobody will ask for a departed principal's lists
      }
    }
  }

  function enlist(name: string, config: ServerConfig, onBehalfOf?: string, first?: Member): Member {
    const known = members.get(name);
    if (known) return Object.assign(known, { config });
    const log = logger.child({ server: name });
    const laneOptions: LaneOptions = {
      ...{ server: config.name, settings: config.settings, driver },
      refusalOf: (call) => refusal(member, catalog, call),
      onSettled: (request, outcome) => {
        reception.settled(member, request, outcome);
        member.pool?.pump();
      },
      onWanted: () => {
        if (member.state !== 'opening') tell(name, { type: 'wanted' });
      },
      onCrash: (error) => log.error(`request actor: ${sentence(error)}`),
    };
    const lane = createLane(laneOptions);
    const member = newMember({ name, config, lane, logger: log, onBehalfOf, first });
    members.set(name, member);
    if (!first)
      pools.admit(member, () => createLane({ ...laneOptions, settings: member.config.settings, onWanted() {} }));
    return member;
  }

  function launch(name: string, config: ServerConfig, onBehalfOf?: string, first?: Member): Member {
    const member = enlist(name, config, onBehalfOf, first);
    member.lane.retune(config.settings);
    pools.review(member);
    const launched: Launch = { spec: specOf(name, config.settings), start: config.settings.enabled };
    fleet.send({ type: 'server.set', launch: launched });
    return member;
  }

  function retune(member: Member): void {
    member.lane.retune(member.config.settings);
    pools.review(member);
    if (member.first) return;
    catalog.expire(member.name); // which tools are shown may be one of the settings
    options.onRetuned(member);
  }

  const tell = (name: string, command: Told) => fleet.send({ type: 'server.told', name, command });
  const remove = (name: string) => fleet.send({ type: 'server.removed', name });

  const instances = createInstances({ members, launch, remove });
  const reception = createReception({
    ...{ catalog, store: options.store, record: options.record, openAsk: options.openAsk },
    ...(options.noteVisits && { noteVisits: options.noteVisits }),
    memberFor: ({ server, principal, holder }) => instances.memberFor(server, principal, holder),
    isThere: (member) => members.get(member.name) === member,
    wake: ({ name }) => tell(name, { type: 'wanted' }),
  });
  const pools = createPools({
    ...{ instances, remove, tell, onPlaced: reception.placed },
    interactive: createInteractive(options.store, (error) => logger.warn(sentence(error))),
  });

  return {
    start: () => fleet.start(),
    members: () => [...members.values()],
    member: (name: string) => members.get(name),
    memberFor: instances.memberFor,
    knownFor: instances.knownFor,
    release: instances.release,
    /** What is told to the first process of a pool is meant for all; those that it stops come again when they are needed. */
    tell(name: string, command: Told): void {
      const member = members.get(name);
      if (command.type === 'stop' || command.type === 'restart') if (member && !member.first) member.pool?.alone();
      tell(name, command);
    },
    /** Takes a call for a server that exists; the call is answered exactly once. */
    submit: reception.submit,
    isClear: reception.isClear,
    refusalOf: (call: Call, member: Member): Failure | undefined => refusal(member, catalog, call),
    cancel: reception.cancel,
    isInFlight: reception.isInFlight,
    launch: (config: ServerConfig) => launch(config.name, config),
    apply({ added, removed, relaunched, retuned }: Difference): void {
      for (const { name, server } of removed.flatMap(instances.of)) {
        remove(name);
        if (name === server) catalog.forget(name);
      }
      for (const config of added) launch(config.name, config);
      for (const config of relaunched)
        for (const { name, first } of instances.of(config.name))
          if (first) remove(name);
          else launch(name, fitting(name, config));
      for (const config of retuned)
        for (const member of instances.of(config.name)) {
          if (member.name !== config.name && config.settings.share === 'all') remove(member.name);
          else retune(enlist(member.name, fitting(member.name, config)));
        }
    },
    /** Tells of every change of a server's state, also of the further processes of a pool, until the listener leaves. */
    watch(listener: (member: Member) => void): () => void {
      watchers.add(listener);
      return () => watchers.delete(listener);
    },
    /** Resolves when every server has stopped. */
    async stop(): Promise<void> {
      fleet.send({ type: 'stop' });
      await waitFor(fleet, ({ status }) => status !== 'active').catch(() => {}); // an error was told to `onCrash`
    },
  };
}
