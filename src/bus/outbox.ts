// Events that must arrive: rows first, messages when there is a bus. The client drops what is published while offline.
// In order and at least once; a stream that captures them drops the second copy by its `Nats-Msg-Id`.

import { randomUUID } from 'node:crypto';
import { ErrorCode, headers, type NatsConnection, NatsError } from 'nats';
import type { OutboxRow, Store } from '../store/store.ts';

export type Publisher = {
  publish(subject: string, payload: Uint8Array, messageId: string): void;
  /** Resolves when the broker has everything published before it. */
  flush(): Promise<void>;
};
export type Outbox = {
  /** Resolves when the event is on the disk; from then on it is only a matter of time. */
  add(subject: string, payload: Uint8Array, messageId?: string): Promise<void>;
  /** There is a bus (again): sends what waits. */
  online(publisher: Publisher): void;
  offline(): void;
  /** Events given up: the oldest, when more than the limit are waiting, and those the bus will never take. */
  readonly dropped: number;
  /** Resolves when nothing is being sent. */
  idle(): Promise<void>;
};

const LIMIT = 10_000;
const BATCH = 100;

export function outbox(store: Pick<Store, 'commit' | 'all' | 'get'>, limit = LIMIT): Outbox {
  let publisher: Publisher | undefined;
  let connection = 0;
  let sending: Promise<void> | undefined;
  let room = Promise.resolve();
  let dropped = 0;

  const remove = (rows: readonly OutboxRow[]) => Promise.all(rows.map(({ id }) => store.commit('deleteOutbox', [id])));

  async function makeRoom(): Promise<void> {
    const excess = (store.get<{ depth: number }>('outboxDepth')?.depth ?? 0) - limit;
    if (excess <= 0) return;
    const oldest = store.all<OutboxRow>('outbox', [excess]);
    dropped += oldest.length;
    await remove(oldest);
  }

  async function sendAll(): Promise<void> {
    for (let rows = batch(); rows.length > 0 && publisher; rows = batch()) {
      // Publishing and flushing in one go: a connection lost in between fails the flush, and all of it is sent again.
      for (const row of rows) publish(publisher, row);
      await publisher.flush();
      await remove(rows);
    }
  }

  /** A message the bus will never take must not hold up the others for ever. */
  function publish(to: Publisher, { subject, payload, message_id }: OutboxRow): void {
    try {
      to.publish(subject, payload, message_id);
    } catch (error) {
      const code = error instanceof NatsError ? error.code : '';
      if (code !== ErrorCode.MaxPayloadExceeded && code !== ErrorCode.BadSubject) throw error;
      dropped++;
    }
  }

  const batch = () => store.all<OutboxRow>('outbox', [BATCH]);

  function send(): void {
    if (!publisher || sending !== undefined) return;
    const mine = connection;
    sending = sendAll()
      .then(
        () => true,
        () => false, // the rows are still there, and go out with the next event or the next connection
      )
      .then((isDone) => {
        sending = undefined;
        // What came, or who came, while we were busy.
        if ((isDone && batch().length > 0) || connection !== mine) send();
      });
  }

  return {
    async add(subject, payload, messageId = randomUUID()) {
      await store.commit('addOutbox', [subject, messageId, payload, Date.now()]);
      room = room.then(makeRoom, makeRoom); // one at a time, or each would count the same excess
      await room;
      send();
    },
    online(next) {
      publisher = next;
      connection++;
      send();
    },
    offline() {
      publisher = undefined;
    },
    get dropped() {
      return dropped;
    },
    async idle() {
      while (sending !== undefined) await sending;
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
