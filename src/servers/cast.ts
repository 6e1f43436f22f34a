// The cast: every server with its lane and its actor. Doors give calls here; the fleet's machine decides who lives, and
// each change of a state opens or closes the lane of that server and is told to whoever listens.

import type { Logger } from 'pino';
import { type AnyActorRef, createActor, type InspectionEvent, type SnapshotFrom } from 'xstate';
import { contained } from '../../machines/contained.ts';
import { fleetMachine, type Launch, type Told } from '../../machines/fleet.ts';
import { serverMachine } from '../../machines/server.ts';
import type { Call } from '../calls/call.ts';
import { createCancellable } from '../calls/cancellable.ts';
import { createLane } from '../calls/lane.ts';
import type { Recorder } from '../calls/record.ts';
import type { Catalog } from '../catalog/catalog.ts';
import type { Difference } from '../config/difference.ts';
import type { ServerConfig } from '../config/schema.ts';
import { sentence } from '../failures.ts';
import { type ConnectionWorld, serverConnection } from './connection.ts';
import { createInstances, fitting, isInstance } from './instances.ts';
import { type Member, newMember } from './member.ts';
import { refusal } from './policy.ts';
import { gateOf, latestOnly, type ServerSnapshot, specOf, stateOf } from './states.ts';

export type CastOptions = Omit<ConnectionWorld, 'memberOf'> & {
  readonly catalog: Catalog;
  readonly logger: Logger;
  readonly driver: 'table' | 'actor';
  readonly record: Recorder;
  readonly onState: (member: Member) => void;
  /** It has new settings and keeps its process. */
  readonly onRetuned: (member: Member) => void;
  readonly onCrash: (why: string) => void;
};

export type Cast = ReturnType<typeof createCast>;

/** Other numbers than a server's own restarts: the two levels multiply. */
const CRASH_LIMIT = { intensity: 3, periodMs: 300_000 };

export function createCast(options: CastOptions) {
  const { catalog, logger, driver, record, onState, onCrash } = options;
  const members = new Map<string, Member>();
  const isLatest = latestOnly();
  const cancellable = createCancellable();

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
  }

  function change(member: Member, state: Member['state'], why: string, restarts: number): void {
    if (why) member.lastError = why;
    Object.assign(member, { why, restarts });
    if (member.state === state) return;
    Object.assign(member, { state, since: Date.now() });
    if (state !== 'ready') catalog.expire(member.name);
    member.logger[state === 'failed' ? 'error' : why ? 'warn' : 'info']({ state, ...(why && { why }) }, state);
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
      } else if (!known || status === 'done') {
        change(member, 'stopped', '', member.restarts);
        member.lane.setGate({ mode: 'refuse', state: 'stopped', why: 'it was removed' });
        members.delete(name);
        if (isInstance(name)) catalog.forget(name); // nobody will ask for a departed principal's lists
      }
    }
  }

  function enlist(name: string, config: ServerConfig, onBehalfOf?: string): Member {
    const known = members.get(name);
    if (known) return Object.assign(known, { config });
    const log = logger.child({ server: name });
    const lane = createLane({
      ...{ server: config.name, settings: config.settings, driver },
      refusalOf: (call) => refusal(member, catalog, call),
      onSettled: (request, outcome) => {
        const { call } = request;
        if (call.isCancellable) cancellable.remove(call);
        call.settle(outcome);
        if (call.door === 'troupe') return;
        member.calls++;
        if (!outcome.ok) member.errors++;
        // One that still works on other calls may be deaf, and they have deadlines of their own.
        if (!outcome.ok && outcome.failure.code === 'timeout' && lane.inFlight === 0) member.probe?.();
        record(request, outcome, log);
      },
      onWanted: () => {
        if (member.state !== 'opening') tell(name, { type: 'wanted' });
      },
      onCrash: (error) => log.error(`request actor: ${sentence(error)}`),
    });
    const member = newMember({ name, config, lane, logger: log, onBehalfOf });
    members.set(name, member);
    return member;
  }

  function launch(name: string, config: ServerConfig, onBehalfOf?: string): Member {
    const member = enlist(name, config, onBehalfOf);
    member.lane.retune(config.settings);
    const launched: Launch = { spec: specOf(name, config.settings), start: config.settings.enabled };
    fleet.send({ type: 'server.set', launch: launched });
    return member;
  }

  function retune(member: Member): void {
    member.lane.retune(member.config.settings);
    catalog.expire(member.name); // which tools are shown may be one of the settings
    options.onRetuned(member);
  }

  const tell = (name: string, command: Told) => fleet.send({ type: 'server.told', name, command });

  const instances = createInstances({
    ...{ members, launch },
    remove: (instance) => fleet.send({ type: 'server.removed', name: instance }),
  });

  return {
    start: () => fleet.start(),
    members: () => [...members.values()],
    member: (name: string) => members.get(name),
    memberFor: instances.memberFor,
    knownFor: instances.knownFor,
    release: instances.release,
    tell,
    /** Takes a call for a server that exists; the call is answered exactly once. */
    submit(call: Call): boolean {
      const member = instances.memberFor(call.server, call.principal, call.holder);
      if (!member) return false;
      const request = member.lane.submit(call);
      if (request && call.isCancellable) cancellable.add(member.lane, request);
      return true;
    },
    cancel: cancellable.cancel,
    isInFlight: cancellable.has,
    launch: (config: ServerConfig) => launch(config.name, config),
    apply({ added, removed, relaunched, retuned }: Difference): void {
      for (const { name } of removed.flatMap(instances.of)) {
        fleet.send({ type: 'server.removed', name });
        catalog.forget(name);
      }
      for (const config of added) launch(config.name, config);
      for (const config of relaunched)
        for (const member of instances.of(config.name)) launch(member.name, fitting(member.name, config));
      for (const config of retuned)
        for (const member of instances.of(config.name)) {
          if (member.name !== config.name && config.settings.share === 'all')
            fleet.send({ type: 'server.removed', name: member.name });
          else retune(enlist(member.name, fitting(member.name, config)));
        }
    },
    stop: () => fleet.send({ type: 'stop' }),
    get isStopped() {
      return fleet.getSnapshot().status !== 'active';
    },
  };
}
