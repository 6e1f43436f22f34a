// The daemons on one state directory tell each other which tasks have changed. The rows say what became of them: a message
// that is lost costs time, and one that is made up costs a look.

import type { NatsConnection, Subscription } from 'nats';
import { isToldElsewhere } from '../bus/bounds.ts';
import type { Signal } from '../calls/call.ts';

export type PeersOptions = {
  readonly subject: string;
  readonly owner: string;
  readonly onTold: (id: string, progress: Progress | undefined) => void;
  readonly onTrouble: (error: unknown) => void;
};
export type Peers = ReturnType<typeof createPeers>;
export type Progress = Extract<Signal, { type: 'progress' }>;

const MAX_BYTES = 16_384;
/** So many ids fit well into that. */
const MAX_IDS = 256;

/**
 * Tasks whose rows have changed, or one whose call goes on. Daemons before 0.7 read one `id` and no `ids`, and find the other tasks
 * when they look at the rows.
 */
type News = {
  readonly from: string;
  readonly id: string;
  readonly ids: string[];
  readonly progress?: Progress | undefined;
};

export function createPeers({ subject, owner, onTold, onTrouble }: PeersOptions) {
  let connection: NatsConnection | undefined;
  let subscription: Subscription | undefined;
  let news: News[] = [];

  /** Our own messages come back to us; most are known by how they begin. */
  const ours = Buffer.from(`{"from":"${owner}"`);

  function take(data: Uint8Array): void {
    if (data.length > MAX_BYTES || ours.equals(data.subarray(0, ours.length))) return;
    const { from, id, ids = [id], progress } = JSON.parse(Buffer.from(data).toString());
    if (from === owner || !Array.isArray(ids) || ids.length > MAX_IDS) return;
    for (const each of ids) if (typeof each === 'string') onTold(each, progress);
  }

  function publish(): void {
    const messages = news;
    news = [];
    if (!connection || connection.isClosed() || connection.isDraining()) return;
    for (const message of messages)
      try {
        connection.publish(subject, JSON.stringify(message));
      } catch (error) {
        if (!isToldElsewhere(error)) onTrouble(error); // the bus went away this very moment; the rows are looked at anyway
      }
  }

  return {
    online(nc: NatsConnection): void {
      subscription?.unsubscribe();
      connection = nc;
      subscription = nc.subscribe(subject, {
        callback(error, msg) {
          try {
            if (error) onTrouble(error);
            else take(msg.data);
          } catch (fault) {
            onTrouble(fault); // it is no message of a daemon
          }
        },
      });
    },
    /** That task's row has changed, or its call goes on. Waiters here are answered first; then all peers in one go. */
    tell(id: string, progress?: Progress): void {
      if (news.length === 0) setImmediate(publish);
      const last = news.at(-1);
      if (!progress && last && !last.progress && last.ids.length < MAX_IDS) last.ids.push(id);
      else news.push({ from: owner, id, ids: [id], progress });
    },
    close(): void {
      publish();
      subscription?.unsubscribe();
    },
  };
}
