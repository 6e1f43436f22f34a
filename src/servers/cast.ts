// The cast: every server with its lane and its actor. Doors give calls here; the fleet's machine decides who lives, and
// each change of a state opens or closes the lane of that server and is told to whoever listens.

import type { Logger } from 'pino';
import { type AnyActorRef, createActor, type InspectionEvent, type SnapshotFrom } from 'xstate';
import { contained } from '../../machines/contained.ts';
import { fleetMachine, type Launch, type Told } from '../../machines/fleet.ts';
import { serverMachine } from '../../machines/server.ts';
import type { Call } from '../calls/call.ts';
import { createLane } from '../calls/lane.ts';
import type { Recorder } from '../calls/record.ts';
import type { InFlight } from '../calls/request.ts';
import type { Catalog } from '../catalog/catalog.ts';
import type { Difference } from '../config/difference.ts';
import type { ServerConfig } from '../config/schema.ts';
import { sentence } from '../failures.ts';
import { type ConnectionWorld, stdioConnection } from './connection.ts';
import { instanceName, ownInstance } from './instances.ts';
import type { Member } from './member.ts';
import { refusal } from './policy.ts';
import { gateOf, type ServerSnapshot, specOf, stateOf } from './states.ts';
import { createSubscriptions } from './subscriptions.ts';

export type CastOptions = Omit<ConnectionWorld, 'memberOf'> & {
  readonly catalog: Catalog;
  readonly logger: Logger;
  readonly driver: 'table' | 'actor';
  readonly record: Recorder;
  readonly onState: (member: Member) => void;
  readonly onCrash: (why: string) => void;
};

export type Cast = ReturnType<typeof createCast>;

/** Other numbers than a server's own restarts: the two levels multiply. */
const CRASH_LIMIT = { intensity: 3, periodMs: 300_000 };

export function createCast(options: CastOptions) {
  const { catalog, logger, driver, record, onState, onCrash } = options;
  const members = new Map<string, Member>();
  const cancellable = new Map<string, { member: Member; request: InFlight }>();

  const connection = stdioConnection({ ...options, memberOf: (name) => members.get(name) as Member });
  const server = contained(serverMachine.provide({ actors: { connection } }));
  const fleet = createActor(fleetMachine.provide({ actors: { server } }), { input: CRASH_LIMIT, inspect });
  fleet.subscribe({ next: settle, error: (error) => onCrash(sentence(error)) });

  function inspect(event: InspectionEvent): void {
    if (event.type !== '@xstate.snapshot' || event.actorRef === fleet) return;
    const member = members.get((event.actorRef as AnyActorRef).id);
    if (member && 'value' in event.snapshot) show(member, event.snapshot as ServerSnapshot);
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
    if (state !== 'ready') catalog.expire(member.server);
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
      }
    }
  }

  function enlist(name: string, config: ServerConfig): Member {
    const known = members.get(name);
    if (known) return Object.assign(known, { config });
    const log = logger.child({ server: name });
    const lane = createLane({
      ...{ server: config.name, settings: config.settings, driver },
      refusalOf: (call) => refusal(member, catalog, call),
      onSettled: (request, outcome) => {
        const { call } = request;
        if (call.isCancellable) cancellable.delete(keyOf(call.principal, call.requestId));
        call.settle(outcome);
        if (call.door === 'troupe') return;
        member.calls++;
        if (!outcome.ok) member.errors++;
        if (!outcome.ok && outcome.failure.code === 'timeout') member.probe?.();
        record(request, outcome, log);
      },
      onWanted: () => {
        if (member.state !== 'opening') tell(name, { type: 'wanted' });
      },
      onCrash: (error) => log.error(`request actor: ${sentence(error)}`),
    });
    const member: Member = {
      ...{ name, server: config.name, config, lane, logger: log, subscriptions: createSubscriptions() },
      ...{ state: 'stopped', since: Date.now(), why: '', lastError: '', restarts: 0, calls: 0, errors: 0 },
      ...{ facts: undefined, pid: undefined, probe: undefined },
    };
    members.set(name, member);
    return member;
  }

  function launch(name: string, config: ServerConfig): Member {
    const member = enlist(name, config);
    member.lane.retune(config.settings);
    const launched: Launch = { spec: specOf(name, config.settings), start: config.settings.enabled };
    fleet.send({ type: 'server.set', launch: launched });
    return member;
  }

  const tell = (name: string, command: Told) => fleet.send({ type: 'server.told', name, command });
  const instancesOf = (name: string) => [...members.values()].filter((member) => member.server === name);

  /** The process that serves this principal's calls: the owner's, or one of its own where sharing is narrower. */
  function memberFor(name: string, principal: string): Member | undefined {
    const owner = members.get(name);
    if (!owner || !ownInstance(owner.config, principal)) return owner;
    const own = instanceName(name, principal);
    return members.get(own) ?? launch(own, ownInstance(owner.config, principal) as ServerConfig);
  }

  return {
    start: () => fleet.start(),
    members: () => [...members.values()],
    member: (name: string) => members.get(name),
    memberFor,
    tell,
    /** Takes a call for a server that exists; the call is answered exactly once. */
    submit(call: Call): boolean {
      const member = memberFor(call.server, call.principal);
      if (!member) return false;
      const request = member.lane.submit(call);
      if (request && call.isCancellable) cancellable.set(keyOf(call.principal, call.requestId), { member, request });
      return true;
    },
    /** False when that principal has no such call in flight. */
    cancel(principal: string, requestId: string, why: string): boolean {
      const found = cancellable.get(keyOf(principal, requestId));
      found?.member.lane.cancel(found.request, why);
      return found !== undefined;
    },
    isInFlight: (principal: string, requestId: string) => cancellable.has(keyOf(principal, requestId)),
    launch: (config: ServerConfig) => launch(config.name, config),
    apply({ added, removed, relaunched, retuned }: Difference): void {
      for (const name of removed)
        for (const member of instancesOf(name)) fleet.send({ type: 'server.removed', name: member.name });
      for (const name of removed) catalog.forget(name);
      for (const config of added) launch(config.name, config);
      for (const config of relaunched)
        for (const member of instancesOf(config.name)) launch(member.name, fitting(member, config));
      for (const config of retuned)
        for (const member of instancesOf(config.name))
          enlist(member.name, fitting(member, config)).lane.retune(config.settings);
    },
    stop: () => fleet.send({ type: 'stop' }),
    get isStopped() {
      return fleet.getSnapshot().status !== 'active';
    },
  };
}

/** A further principal's instance keeps its own patience before it sleeps. */
const fitting = ({ name }: Member, config: ServerConfig): ServerConfig =>
  name === config.name ? config : (ownInstance(config, name) ?? config);

const keyOf = (principal: string, requestId: string) => `${principal} ${requestId}`;
