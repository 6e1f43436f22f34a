// Which roots each server knows: for each server with an open session the list that it was last told of or given. When the list
// that it would be given now is another, the chart of its connection hears of it, and tells the server in time.

import { createActor, fromPromise } from 'xstate';
import { rootsMachine } from '../../machines/roots.ts';
import { sentence } from '../protocol/failures.ts';
import type { Member } from '../servers/member.ts';
import { clockOf, type World } from '../world/world.ts';
import type { Root } from './root.ts';

export type Notify = (method: string) => void | Promise<void>;

type Connection = {
  known: string;
  readonly actor: ReturnType<typeof actorOf>;
  readonly ping: Ping;
  close(): void;
};
/** Resolves when the server has read everything that it was sent before. Never rejects. */
export type Ping = () => Promise<void>;

const GATHER_MS = 100;
const ASK_MS = 500;

export function createTelling(listFor: (member: Member) => readonly Root[], world: Pick<World, 'after'>) {
  const open = new Map<Member, Connection>();
  const textFor = (member: Member): string => JSON.stringify(listFor(member));

  function opened(member: Member, notify: Notify, ping: Ping): void {
    open.get(member)?.close();
    const actor = actorOf(world, async () => {
      const text = textFor(member);
      if (!isUp(member) || text === connection.known) return; // the list is again the one that the server knows
      connection.known = text;
      await notify('notifications/roots/list_changed');
    });
    const close = (): void => {
      if (open.get(member) === connection) open.delete(member);
      actor.send({ type: 'connection.closed' });
    };
    const connection: Connection = { known: textFor(member), actor, ping, close };
    actor.subscribe({ error: (error) => member.logger.warn(sentence(error)) });
    actor.start();
    open.set(member, connection);
  }

  return {
    opened,
    /** A server has another state: one that is not up has no session. Its next session is told of changes since its own beginning. */
    moved(member: Member): void {
      if (!isUp(member)) open.get(member)?.close();
    },
    asked(member: Member, list: readonly Root[]): void {
      const connection = open.get(member);
      if (!connection) return;
      connection.known = JSON.stringify(list);
      connection.actor.send({ type: 'asked' });
    },
    /** Resolves when a server that asks for roots at all knows the present ones, or does not ask in time; undefined if it need not be told. */
    settled(member: Member): Promise<void> | undefined {
      const connection = open.get(member);
      if (!connection || !isUp(member)) return undefined;
      const { actor, known, ping } = connection;
      if (textFor(member) !== known) actor.send({ type: 'changed' });
      actor.send({ type: 'hurry' });
      const { context } = actor.getSnapshot();
      return context.isCurious && !isAtRest(actor) ? atRest(actor).then(ping) : undefined;
    },
    /** Compares the list that each server knows with the present one. The further processes of a pool do not say when they go down. */
    look(): void {
      for (const [member, { known, actor, close }] of open) {
        if (!isUp(member)) close();
        else if (textFor(member) !== known) actor.send({ type: 'changed' });
      }
    },
    close(): void {
      for (const connection of [...open.values()]) connection.close();
    },
  };
}

const isUp = ({ state }: Member): boolean => state === 'ready' || state === 'draining';

const actorOf = (world: Pick<World, 'after'>, tell: () => Promise<void>) =>
  createActor(rootsMachine.provide({ actors: { tell: fromPromise(tell) } }), {
    input: { gatherMs: GATHER_MS, askMs: ASK_MS },
    clock: clockOf(world),
  });

type Actor = ReturnType<typeof actorOf>;

const isAtRest = (actor: Actor): boolean =>
  actor.getSnapshot().matches('quiet') || actor.getSnapshot().status !== 'active';

function atRest(actor: Actor): Promise<void> {
  return new Promise((resolve) => {
    const subscription = actor.subscribe({ next: look, complete: resolve, error: () => resolve() });
    function look(): void {
      if (!isAtRest(actor)) return;
      subscription.unsubscribe();
      resolve();
    }
  });
}
