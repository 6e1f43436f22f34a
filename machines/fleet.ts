// Every configured server, each its own actor. One crashing never touches another: it gets a fresh life, and an actor
// that keeps crashing is buried, visibly, until somebody starts it again.

import type { DoneActorEvent, ErrorActorEvent } from 'xstate';
import { assign, enqueueActions, setup } from 'xstate';
import { contained } from './contained.ts';
import { type ServerCommand, type ServerSpec, serverMachine } from './server.ts';

// ── Types ────────────────────────────────────────────────────────────────────

/** More than `intensity` crashes of one actor within `periodMs` are a bug that a fresh life does not mend. */
export type CrashLimit = { readonly intensity: number; readonly periodMs: number };
export type Launch = { readonly spec: ServerSpec; readonly start: boolean };
/** Removing is not told to a server alone: the fleet must know that nobody comes after it. */
export type Told = Exclude<ServerCommand, { type: 'remove' }>;
export type FleetEvent =
  | { type: 'server.set'; launch: Launch }
  | { type: 'server.removed'; name: string }
  | { type: 'server.told'; name: string; command: Told }
  | { type: 'stop' }
  | { type: 'crash.forgotten'; name: string }
  | DoneActorEvent
  | ErrorActorEvent;

/** A leaving member's `launch` is its successor's, who comes on when it has left; without one it is forgotten. */
export type Member = {
  readonly life: 'alive' | 'leaving' | 'buried';
  readonly launch: Launch | undefined;
  readonly crashes: number;
  readonly why: string;
};
type Members = Readonly<Record<string, Member>>;
type Context = { limit: CrashLimit; members: Members };

/** A server may be called `constructor`, which every object seems to have. */
const find = (members: Members, name: string) => (Object.hasOwn(members, name) ? members[name] : undefined);

function without(members: Members, name: string): Members {
  const { [name]: _, ...others } = members;
  return others;
}

// ── Setup ────────────────────────────────────────────────────────────────────

const words = setup({
  types: { context: {} as Context, input: {} as CrashLimit, events: {} as FleetEvent },
  actors: { server: contained(serverMachine) },
});
type Enqueue = Parameters<Parameters<typeof words.enqueueActions>[0]>[0]['enqueue'];

const put = (enqueue: Enqueue, name: string, member: Member) =>
  enqueue.assign({ members: ({ context }) => ({ ...context.members, [name]: member }) });

const forget = (enqueue: Enqueue, name: string) =>
  enqueue.assign({ members: ({ context }) => without(context.members, name) });

function bringOn(enqueue: Enqueue, launch: Launch, crashes = 0): void {
  const { name } = launch.spec;
  put(enqueue, name, { life: 'alive', launch, crashes, why: '' });
  enqueue.spawnChild('server', { id: name, input: launch.spec });
  if (launch.start) enqueue.sendTo(name, { type: 'start' });
}

/** `launch` is what comes on afterwards. A buried member has no actor that could leave first. */
function replace(enqueue: Enqueue, member: Member | undefined, name: string, launch: Launch | undefined): void {
  if (member && member.life !== 'buried') {
    put(enqueue, name, { ...member, life: 'leaving', launch });
    if (member.life === 'alive') enqueue.sendTo(name, { type: 'remove' });
  } else if (launch) bringOn(enqueue, launch);
  else forget(enqueue, name);
}

const fleet = words.extend({
  actions: {
    replace: enqueueActions(({ context, enqueue }, { name, launch }: { name: string; launch: Launch | undefined }) =>
      replace(enqueue, find(context.members, name), name, launch),
    ),
    replaceAll: enqueueActions(({ context, enqueue }) => {
      for (const [name, member] of Object.entries(context.members)) replace(enqueue, member, name, undefined);
    }),
    // What is told while a member leaves is meant for its successor.
    tell: enqueueActions(({ context, enqueue }, { name, command }: { name: string; command: Told }) => {
      const member = find(context.members, name);
      const start = command.type === 'start' || command.type === 'restart';
      if (member?.life === 'alive') enqueue.sendTo(name, command);
      else if (!member?.launch || command.type === 'wanted' || command.type === 'login.done') return;
      else if (member.life === 'leaving') put(enqueue, name, { ...member, launch: { ...member.launch, start } });
      else if (start) bringOn(enqueue, { ...member.launch, start });
    }),
    // A finished child stays in XState's books until it is stopped by name, and the next one needs that name.
    succeed: enqueueActions(({ context, enqueue }, name: string) => {
      const launch = find(context.members, name)?.launch;
      enqueue.stopChild(name);
      if (launch) bringOn(enqueue, launch);
      else forget(enqueue, name);
    }),
    revive: enqueueActions(({ context, enqueue }, { name, why }: { name: string; why: string }) => {
      const { life, launch, crashes = 0 } = find(context.members, name) ?? {};
      enqueue.stopChild(name);
      if (!launch) forget(enqueue, name);
      else if (life === 'leaving') bringOn(enqueue, launch);
      else if (crashes >= context.limit.intensity) put(enqueue, name, { life: 'buried', launch, crashes, why });
      else {
        bringOn(enqueue, launch, crashes + 1);
        enqueue.raise({ type: 'crash.forgotten', name }, { delay: context.limit.periodMs });
      }
    }),
    forgetCrash: assign({
      members: ({ context: { members } }, name: string) => {
        const member = find(members, name);
        return member ? { ...members, [name]: { ...member, crashes: Math.max(0, member.crashes - 1) } } : members;
      },
    }),
  },
  guards: { isEmpty: ({ context }) => Object.keys(context.members).length === 0 },
});

// ── Machine ──────────────────────────────────────────────────────────────────

export const fleetMachine = fleet.createMachine({
  id: 'fleet',
  context: ({ input }) => ({ limit: input, members: {} }),
  initial: 'running',
  on: {
    'crash.forgotten': { actions: { type: 'forgetCrash', params: ({ event }) => event.name } },
    'xstate.done.actor.*': { actions: { type: 'succeed', params: ({ event }) => event.actorId } },
    // A server that is down is a state, and its machine handles it. A server actor that throws is a bug of ours.
    'xstate.error.actor.*': {
      actions: { type: 'revive', params: ({ event }) => ({ name: event.actorId, why: String(event.error) }) },
    },
  },
  states: {
    running: {
      on: {
        'server.set': {
          actions: { type: 'replace', params: ({ event: { launch } }) => ({ name: launch.spec.name, launch }) },
        },
        'server.removed': {
          actions: { type: 'replace', params: ({ event }) => ({ name: event.name, launch: undefined }) },
        },
        'server.told': { actions: { type: 'tell', params: ({ event }) => event } },
        stop: 'stopping',
      },
    },
    stopping: { entry: 'replaceAll', always: { guard: 'isEmpty', target: 'stopped' } },
    stopped: { type: 'final' },
  },
});
