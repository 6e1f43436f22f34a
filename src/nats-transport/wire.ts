// The client's place on the bus: one inbox, whose subjects tell apart what the daemon says to this attachment, what it
// still says to an earlier one, and which of our own messages the broker returned because nobody was there.

import { createInbox, Empty, type Msg, type NatsConnection } from 'nats';
import { type Headers, toHeaders } from '../bus/frames.ts';

export type WireOptions = {
  readonly nc: NatsConnection;
  readonly inboxPrefix: string;
  readonly onMessage: (msg: Msg) => void;
  /** Nobody was there to take what was asked. */
  readonly onNobody: () => void;
  /** Nobody was there to take the message of that number. */
  readonly onReturned: (number: number) => void;
  /** Whatever was on its way when the connection broke may be lost. */
  readonly onReconnect: () => void;
  readonly onClosed: () => void;
  readonly onError: (error: Error) => void;
};

export function natsWire(options: WireOptions) {
  const { nc, onError } = options;
  const inbox = createInbox(options.inboxPrefix);
  let [asked, heard] = [0, 0];
  let down: PromiseWithResolvers | undefined;
  const subscription = nc.subscribe(`${inbox}.*`, {
    callback: (error, msg) => (error ? onError(error) : take(msg)),
  });
  const statuses = nc.status() as ReturnType<NatsConnection['status']> & { stop?: () => void };
  watch().catch(onError);
  // With the connection, or with us. A promise of the connection itself would keep every transport that it ever had.
  subscription.closed.then(options.onClosed, options.onClosed);

  function take(msg: Msg): void {
    const isNobody = msg.headers?.code === 503 && msg.data.length === 0;
    const to = msg.subject.slice(inbox.length + 1);
    if (to !== `r${asked}` && to !== `r${heard}`) return isNobody ? options.onReturned(Number(to)) : undefined;
    if (isNobody) options.onNobody();
    else options.onMessage(msg);
  }

  /** What is published while the connection is down is dropped without a word, so we must know. */
  async function watch(): Promise<void> {
    for await (const { type } of statuses) {
      if (type === 'disconnect') down ??= withResolvers();
      if (type !== 'reconnect') continue;
      down?.resolve();
      down = undefined;
      options.onReconnect();
    }
  }

  function publish(to: string, body: Uint8Array, headers: Headers | undefined, reply: string): void {
    try {
      nc.publish(to, body, { reply, ...(headers && { headers: toHeaders(headers) }) });
    } catch (error) {
      onError(error as Error); // closed or draining: the end of the connection ends us too
    }
  }

  return {
    /** Pending while the connection is down. */
    get down(): Promise<void> | undefined {
      return down?.promise;
    },
    /** The answer, and whatever follows it, comes to `onMessage`. */
    ask: (to: string, body: Uint8Array, headers?: Headers): void => publish(to, body, headers, `${inbox}.r${asked}`),
    /** Asks anew: what was asked before finds no hearing, but the attachment that we have still does. */
    askAnew(to: string, headers: Headers): void {
      asked += 1;
      this.ask(to, Empty, headers);
    },
    /** From now on only the one who answered last is heard. */
    turn(): void {
      heard = asked;
    },
    publish,
    returnTo: (number: number): string => `${inbox}.${number}`,
    close(): void {
      statuses.stop?.();
      down?.resolve();
      if (!nc.isClosed()) subscription.unsubscribe();
    },
  };
}

type PromiseWithResolvers = { readonly promise: Promise<void>; readonly resolve: () => void };

/** `Promise.withResolvers` needs Node 22. */
function withResolvers(): PromiseWithResolvers {
  let resolve = (): void => {};
  const promise = new Promise<void>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
