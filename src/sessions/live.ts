// A session in memory: its actor, and how many streams, connections and exchanges of it are open. Whether anybody is there
// is only counted here, for it changes with every request; the actor hears of it once a second.

import { createActor } from 'xstate';
import { sessionMachine } from '../../machines/session.ts';
import type { HostSession } from './host.ts';
import { createSession, type Identity, type LocalSession } from './session.ts';
import type { World } from './world.ts';

export type Live = {
  readonly session: LocalSession;
  readonly host: HostSession;
  readonly actor: ReturnType<typeof actorOf>;
  holders: number;
  usedAt: number;
  /** When the row last showed that it is used. */
  touchedAt: number;
};
export type LiveOptions = {
  readonly world: World;
  readonly identity: Identity;
  readonly idleMs: number;
  /** It has left the memory: for good, or until somebody asks for it. */
  readonly onGone: () => void;
  readonly onTrouble: (error: unknown) => void;
};

const REST_MS = 300_000;
const LONGEST_TIMER_MS = 2 ** 31 - 1;

const actorOf = (idleMs: number) =>
  createActor(sessionMachine, { input: { restMs: REST_MS, idleMs: Math.min(idleMs, LONGEST_TIMER_MS) } });

export function createLive({ world, identity, idleMs, onGone, onTrouble }: LiveOptions): Live {
  const { store } = world;
  const { id, principal, door, scope, era } = identity;
  const session = createSession(world, identity);
  const actor = actorOf(idleMs);
  const endings = new Set<() => void>();
  const now = Date.now();

  function hold(): () => void {
    live.holders++;
    live.usedAt = Date.now();
    if (actor.getSnapshot().matches('detached')) actor.send({ type: 'came' });
    let isHeld = true;
    return () => {
      if (isHeld) live.holders--;
      isHeld = false;
      live.usedAt = Date.now();
    };
  }

  async function end(): Promise<void> {
    await store.commit('endSession', [Date.now(), id]);
    actor.send({ type: 'ended' });
  }

  function onEnded(listener: () => void): () => void {
    endings.add(listener);
    return () => endings.delete(listener);
  }

  actor.subscribe({
    error: onTrouble,
    complete: () => {
      onGone();
      void session.dispose('the session has ended').catch(onTrouble);
      if (!actor.getSnapshot().matches('closed')) return;
      if (identity.capabilities.roots) void world.roots.host(id, undefined);
      for (const listener of endings) listener();
    },
  });
  actor.start();
  const { receive, attach } = session;
  const host: HostSession = { id, principal, door, scope, era, receive, attach, hold, end, onEnded };
  const live: Live = { session, host, actor, holders: 0, usedAt: now, touchedAt: now };
  return live;
}
