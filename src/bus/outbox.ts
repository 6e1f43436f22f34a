// Events that must arrive: rows first, messages when there is a bus. The client drops what is published while offline.
// In order and at least once; a stream that captures them drops the second copy by its `Nats-Msg-Id`.

import { randomUUID } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { ErrorCode, headers, type NatsConnection, NatsError } from 'nats';
import type { OutboxRow, Store } from '../store/store.ts';

export type Publisher = {
  publish(subject: string, payload: Uint8Array, messageId: string): void;
  /** Resolves when the broker has everything published before it. */
  flush(): Promise<void>;
};
/** What the row of a task must say, by the word of that owner. */
export type Standing = { readonly id: string; readonly owner: string; readonly epoch: number; readonly status: string };
export type Outbox = {
  /**
   * Resolves when the event is on the disk; from then on it is only a matter of time. One about the status of a task is
   * recorded only if that stands, and in one step with it when both are given to the store in one breath.
   */
  add(subject: string, payload: Uint8Array, messageId?: string, standing?: Standing): Promise<void>;
  /** There is a bus (again): sends what waits. */
  online(publisher: Publisher): void;
  offline(): void;
  /** Events given up: the oldest, when more than the limit are waiting, and those the bus will never take. */
  readonly dropped: number;
  /** Resolves when nothing is being sent, and what was sent is forgotten. */
  idle(): Promise<void>;
};
type Event = Pick<OutboxRow, 'subject' | 'message_id'> & { readonly payload: Uint8Array };

const LIMIT = 10_000;
const BATCH = 100;
const MAX_FRESH = 1_000;
/** What has waited for so long waits for a daemon that is gone. */
const OLD_MS = 5_000;

export function outbox(store: Pick<Store, 'commit' | 'write' | 'flush' | 'all' | 'get'>, limit = LIMIT): Outbox {
  let publisher: Publisher | undefined;
  let connection = 0;
  let sending: Promise<void> | undefined;
  let room = Promise.resolve();
  let dropped = 0;
  let isBehind = true; // there may be rows of an outage, or of another life: they are read, all of them
  let fresh: Event[] = []; // otherwise these are all that wait
  let sweep: NodeJS.Timeout | undefined;

  const batch = () => store.all<OutboxRow>('outbox', [BATCH]);
  const remove = (rows: readonly OutboxRow[]) => Promise.all(rows.map(({ id }) => store.commit('deleteOutbox', [id])));

  function fallBehind(): void {
    isBehind = true;
    fresh = [];
  }

  async function makeRoom(): Promise<void> {
    const excess = (store.get<{ depth: number }>('outboxDepth')?.depth ?? 0) - limit;
    if (excess <= 0) return;
    const oldest = store.all<OutboxRow>('outbox', [excess]);
    dropped += oldest.length;
    await remove(oldest);
  }

  async function sendAll(): Promise<void> {
    while (publisher) {
      if (isBehind) await catchUp(publisher);
      const events = fresh.splice(0, BATCH);
      if (events.length === 0 || !publisher) return;
      await sendThese(publisher, events);
      // Soon is early enough: what a crash lets us send twice is known by its id.
      for (const { message_id } of events) store.write('forgetOutbox', [message_id]);
    }
  }

  async function catchUp(to: Publisher): Promise<void> {
    await store.flush(); // or what was sent would be read again
    for (let rows = batch(); rows.length > 0; rows = batch()) {
      await sendThese(to, rows);
      await remove(rows);
    }
    isBehind = false;
  }

  /** Publishing and flushing in one go: a connection lost in between fails the flush, and all of it is sent again. */
  async function sendThese(to: Publisher, events: readonly Event[]): Promise<void> {
    for (const event of events) publish(to, event);
    await to.flush();
  }

  /** A message the bus will never take must not hold up the others for ever. */
  function publish(to: Publisher, { subject, payload, message_id }: Event): void {
    try {
      to.publish(subject, payload, message_id);
    } catch (error) {
      const code = error instanceof NatsError ? error.code : '';
      if (code !== ErrorCode.MaxPayloadExceeded && code !== ErrorCode.BadSubject) throw error;
      dropped++;
    }
  }

  function send(): void {
    if (!publisher || sending !== undefined) return;
    const mine = connection;
    sending = nextTurn() // whoever waits for an answer has it first, and what comes together goes together
      .then(sendAll)
      .then(() => true)
      .catch(() => {
        fallBehind(); // the rows are still there, and go out with the next event or the next connection
        return false;
      })
      .then((isDone) => {
        sending = undefined;
        // What came, or who came, while we were busy.
        if ((isDone && (isBehind || fresh.length > 0)) || connection !== mine) send();
      });
  }

  /** A daemon beside this one may have died with events that it had no time to send. */
  function lookForOld(): void {
    try {
      const [oldest] = store.all<OutboxRow>('outbox', [1]);
      if (!oldest || Math.abs(Date.now() - oldest.created_at) < OLD_MS) return;
      fallBehind();
      send();
    } catch {
      // the store is closing, or says itself what it lacks
    }
  }

  return {
    async add(subject, payload, messageId = randomUUID(), standing) {
      const row = [subject, messageId, payload, Date.now()];
      const isAdded = await (standing
        ? store.commit('addTaskEvent', [...row, standing.id, standing.owner, standing.epoch, standing.status])
        : store.commit('addOutbox', row));
      if (!isAdded) return;
      if (fresh.length >= MAX_FRESH) fallBehind();
      if (!isBehind) fresh.push({ subject, payload, message_id: messageId });
      else {
        room = room.then(makeRoom, makeRoom); // one at a time, or each would count the same excess
        await room;
      }
      send();
    },
    online(next) {
      publisher = next;
      connection++;
      sweep ??= setInterval(lookForOld, OLD_MS).unref();
      send();
    },
    offline() {
      publisher = undefined;
      clearInterval(sweep);
      sweep = undefined;
    },
    get dropped() {
      return dropped;
    },
    async idle() {
      while (sending !== undefined) await sending;
      await store.flush().catch(() => {}); // the rows stay, and are sent again
    },
  };
}

export function natsPublisher(nc: NatsConnection): Publisher {
  return {
    publish(subject, payload, messageId) {
      const all = headers();
      all.set('Nats-Msg-Id', messageId);
      nc.publish(subject, payload, { headers: all });
    },
    flush: () => nc.flush(),
  };
}
