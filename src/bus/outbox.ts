// Events that must arrive: rows first, messages when there is a bus. The client drops what is published while offline.
// In order and at least once; a stream that captures them drops the second copy by its `Nats-Msg-Id`. What the bus will never
// take is put aside, with a record, and does not hold up the others.

import { setImmediate as nextTurn } from 'node:timers/promises';
import { headers, type NatsConnection } from 'nats';
import type { OutboxRow, Reads, Writes } from '../store/store.ts';
import { realWorld, type World } from '../world/world.ts';
import { isRefused } from './bounds.ts';

export type Publisher = {
  publish(subject: string, payload: Uint8Array, messageId: string): void;
  /** Resolves when the broker has everything published before it. */
  flush(): Promise<void>;
};
/** An event about a task is recorded only if the row of the task has this owner, epoch and status. */
export type TaskCondition = {
  readonly id: string;
  readonly owner: string;
  readonly epoch: number;
  readonly status: string;
};
export type Outbox = {
  /**
   * Resolves when the event is on the disk; from then on it is only a matter of time. An event about the status of a task that
   * is given to the store right after that status shares its transaction.
   */
  add(subject: string, payload: Uint8Array, messageId?: string, condition?: TaskCondition): Promise<void>;
  /** There is a bus (again): sends what waits. */
  online(publisher: Publisher): void;
  offline(): void;
  /** Events given up: the oldest, when more than the limit are waiting, and those that were put aside. */
  readonly dropped: number;
  /** Resolves when nothing is being sent, and the rows of sent events are deleted. */
  idle(): Promise<void>;
};
type Event = Pick<OutboxRow, 'subject' | 'message_id'> & { readonly payload: Uint8Array };

const LIMIT = 10_000;
const BATCH = 100;
const MAX_FRESH = 1_000;
/** An event that has waited so long was recorded by a daemon that is gone. */
const OLD_MS = 5_000;
/** So many connections are lost with an event alone on its way before it is taken for the cause. */
const MAX_CUTS = 3;
const MAX_SUBJECT = 256;

export function outbox(store: Reads & Writes, limit = LIMIT, world: World = realWorld): Outbox {
  return new StoredOutbox(store, limit, world);
}

class StoredOutbox implements Outbox {
  dropped = 0;
  readonly #store: Reads & Writes;
  readonly #limit: number;
  readonly #world: World;
  #publisher: Publisher | undefined;
  #connections = 0;
  #sending: Promise<void> | undefined;
  #room = Promise.resolve();
  /** There may be rows of an outage, or of an earlier daemon: all rows are read. */
  #isBehind = true;
  /** While not behind, these are all that wait. */
  #fresh: Event[] = [];
  #stopSweep: (() => void) | undefined;
  /** So many of the next events were on their way when a connection was lost. One may be the cause, so each goes alone. */
  #careful = 0;
  /** The event that was alone on its way, the last connection that was lost then, and how many were. */
  #suspect = { id: '', connection: 0, cuts: 0 };

  constructor(store: Reads & Writes, limit: number, world: World) {
    this.#store = store;
    this.#limit = limit;
    this.#world = world;
  }

  async add(subject: string, payload: Uint8Array, messageId = this.#newId(), condition?: TaskCondition): Promise<void> {
    const row = [subject, messageId, payload, this.#world.date()];
    const isAdded = await (condition
      ? this.#store.commit('addTaskEvent', [...row, condition.id, condition.owner, condition.epoch, condition.status])
      : this.#store.commit('addOutbox', row));
    if (!isAdded) return;
    if (this.#fresh.length >= MAX_FRESH) this.#fallBehind();
    if (!this.#isBehind) this.#fresh.push({ subject, payload, message_id: messageId });
    else {
      const makeRoom = () => this.#makeRoom();
      this.#room = this.#room.then(makeRoom, makeRoom); // one at a time, or each would count the same excess
      await this.#room;
    }
    this.#send();
  }

  online(publisher: Publisher): void {
    this.#publisher = publisher;
    this.#connections++;
    this.#stopSweep ??= this.#world.every(OLD_MS, () => this.#lookForOld());
    this.#send();
  }

  offline(): void {
    this.#publisher = undefined;
    this.#stopSweep?.();
    this.#stopSweep = undefined;
  }

  async idle(): Promise<void> {
    while (this.#sending !== undefined) await this.#sending;
    await this.#store.flush().catch(() => {}); // the rows stay, and are sent again
  }

  #newId(): string {
    return this.#world.random(16).toString('hex');
  }

  #fallBehind(): void {
    this.#isBehind = true;
    this.#fresh = [];
  }

  async #makeRoom(): Promise<void> {
    const excess = (this.#store.get<{ depth: number }>('outboxDepth')?.depth ?? 0) - this.#limit;
    if (excess <= 0) return;
    const oldest = this.#oldest(excess);
    this.dropped += oldest.length;
    await this.#remove(oldest);
  }

  #oldest(count: number): OutboxRow[] {
    return this.#store.all<OutboxRow>('outbox', [count]);
  }

  async #remove(rows: readonly OutboxRow[]): Promise<void> {
    await Promise.all(rows.map(({ id }) => this.#store.commit('deleteOutbox', [id])));
  }

  // ── Sending ────────────────────────────────────────────────────────────────

  #send(): void {
    if (!this.#publisher || this.#sending !== undefined) return;
    const connection = this.#connections;
    this.#sending = nextTurn() // replies go out first, and events that come together go together
      .then(() => this.#sendAll())
      .then(() => true)
      .catch(() => {
        this.#fallBehind(); // the rows are still there, and go out with the next event or the next connection
        return false;
      })
      .then((isDone) => {
        this.#sending = undefined;
        const hasMore = this.#isBehind || this.#fresh.length > 0;
        if ((isDone && hasMore) || connection !== this.#connections) this.#send();
      });
  }

  async #sendAll(): Promise<void> {
    while (this.#publisher) {
      if (this.#isBehind) await this.#catchUp(this.#publisher);
      const events = this.#fresh.splice(0, BATCH);
      if (events.length === 0 || !this.#publisher) return;
      await this.#sendThese(this.#publisher, events);
      // Not committed: an event that is sent twice after a crash is known by its id.
      for (const { message_id } of events) this.#store.write('forgetOutbox', [message_id]);
    }
  }

  async #catchUp(to: Publisher): Promise<void> {
    await this.#store.flush(); // or rows of sent events, whose deletion is queued, would be read again
    for (let rows = this.#next(); rows.length > 0; rows = this.#next()) {
      await this.#sendThese(to, rows);
      await this.#remove(rows);
      this.#careful = Math.max(0, this.#careful - rows.length);
    }
    this.#careful = 0;
    this.#isBehind = false;
  }

  #next(): OutboxRow[] {
    return this.#oldest(this.#careful > 0 ? 1 : BATCH);
  }

  /** Publishing and flushing in one go: a connection lost in between fails the flush, and all of it is sent again. */
  async #sendThese(to: Publisher, events: readonly Event[]): Promise<void> {
    const connection = this.#connections;
    const refused = new Map<Event, string>();
    for (const event of events) this.#publish(to, event, (why) => refused.set(event, why));
    await to.flush().catch(async (error) => {
      const sent = events.filter((event) => !refused.has(event));
      await this.#lost(sent, connection);
      throw error;
    });
    await Promise.all([...refused].map(([event, why]) => this.#putAside(event, why)));
  }

  #publish(to: Publisher, { subject, payload, message_id }: Event, onRefused: (why: string) => void): void {
    try {
      to.publish(subject, payload, message_id);
    } catch (error) {
      if (!isRefused(error)) throw error;
      onRefused(error.message);
    }
  }

  /** The broker may have cut the connection because of an event that our own bounds let pass: then it would do so for ever. */
  async #lost(sent: readonly Event[], connection: number): Promise<void> {
    this.#careful = Math.max(this.#careful, sent.length);
    const [only, another] = sent;
    if (!only || another) return;
    if (only.message_id !== this.#suspect.id) this.#suspect = { id: only.message_id, connection: 0, cuts: 0 };
    const suspect = this.#suspect;
    if (suspect.connection === connection) return; // the broker is away, and has not even seen it
    suspect.connection = connection;
    if (++suspect.cuts < MAX_CUTS) return;
    await this.#putAside(only, `the connection was lost ${MAX_CUTS} times while only this event was being sent`);
  }

  /** A message the bus will never take must not hold up the others for ever. */
  async #putAside({ subject, payload, message_id }: Event, why: string): Promise<void> {
    const about = [message_id, subject.slice(0, MAX_SUBJECT), payload.length, why, this.#world.date()];
    await this.#store.commit('putAside', about);
    this.dropped++;
  }

  /** A daemon beside this one may have died with events that it had no time to send. */
  #lookForOld(): void {
    try {
      const [oldest] = this.#oldest(1);
      if (!oldest || Math.abs(this.#world.date() - oldest.created_at) < OLD_MS) return;
      this.#fallBehind();
      this.#send();
    } catch {
      // the store is closing, or reports its own trouble
    }
  }
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
