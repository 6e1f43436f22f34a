// From the server's machine to what people and lanes see of it.

import type { AnyActorRef, SnapshotFrom } from 'xstate';
import type { ServerSpec, serverMachine } from '../../machines/server.ts';
import type { Gate } from '../calls/outcomes.ts';
import type { ServerSettings } from '../config/schema.ts';
import type { ServerState } from './member.ts';

export type ServerSnapshot = SnapshotFrom<typeof serverMachine>;

/** The ladder of a goodbye has its own patience; the machine's is a little longer, and ends it by force. */
const GRACE_MS = 1_000;

export const specOf = (name: string, settings: ServerSettings): ServerSpec => ({
  name,
  restart: settings.restart,
  openMs: settings.openMs,
  drainMs: settings.drainMs,
  closeMs: settings.stdinMs + settings.termMs + GRACE_MS,
});

export function stateOf({ value }: ServerSnapshot): ServerState {
  const leaf = typeof value === 'string' ? value : value.up;
  if (leaf === 'needsLogin') return 'needs login';
  return leaf === 'gone' || leaf === 'down' || leaf === 'closed' ? 'stopped' : leaf;
}

export function gateOf(snapshot: ServerSnapshot): Gate {
  const state = stateOf(snapshot);
  const { why, next } = snapshot.context;
  switch (state) {
    case 'ready':
      return { mode: 'open', state, why };
    case 'opening':
    case 'asleep':
      return { mode: 'hold', state, why };
    case 'draining':
    case 'closing':
      return { mode: next === 'up' || next === 'asleep' ? 'hold' : 'refuse', state, why };
    case 'stopped':
    case 'waiting':
    case 'failed':
    case 'needs login':
      return { mode: 'refuse', state, why };
  }
}

/** The last word of an actor that was replaced comes after the first of its successor, who bears the same name. */
export function latestOnly(): (actor: AnyActorRef) => boolean {
  const latest = new Map<string, AnyActorRef>();
  const seen = new WeakSet<AnyActorRef>();
  return (actor) => {
    if (!seen.has(actor)) latest.set(actor.id, actor);
    seen.add(actor);
    return latest.get(actor.id) === actor;
  };
}
