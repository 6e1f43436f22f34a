// The client's inbox on the bus. Its subjects tell apart what the daemon publishes to this attachment, what it still publishes to
// an earlier one, and which of our own messages the broker returned because they had no subscriber.

import { createInbox, Empty, type Msg, type NatsConnection } from 'nats';
import { type Headers, toHeaders } from '../bus/frames.ts';

export type WireOptions = {
  readonly nc: NatsConnection;
  readonly inboxPrefix: string;
  readonly onMessage: (msg: Msg) => void;
  /** No daemon subscribes to the subject that was asked. */
  readonly onNoResponder: () => void;
  /** The message of that number had no subscriber. */
  readonly onReturned: (number: number) => void;
  /** Messages that were on their way when the connection broke may be lost. */
  readonly onReconnect: () => void;
  readonly onClosed: () => void;
  readonly onError: (error: Error) => void;
};

export type NatsWire = ReturnType<typeof natsWire>;

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
  // Ends with the connection or with `close`. A listener on the connection itself would hold every transport it ever had.
  subscription.closed.then(options.onClosed, options.onClosed);

  function take(msg: Msg): void {
    const isReturned = msg.headers?.code === 503 && msg.data.length === 0;
    const to = msg.subject.slice(inbox.length + 1);
    if (to !== `r${asked}` && to !== `r${heard}`) return isReturned ? options.onReturned(Number(to)) : undefined;
    if (isReturned) options.onNoResponder();
    else options.onMessage(msg);
  }

  /** The client silently drops what is published while the connection is down, so that time has to be known. */
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
      onError(error as Error); // closed or draining: the end of the connection ends the session too
    }
  }

  return {
    /** Pending while the connection is down. */
    get down(): Promise<void> | undefined {
      return down?.promise;
    },
    /** The answer, and whatever follows it, comes to `onMessage`. */
    ask: (to: string, body: Uint8Array, headers?: Headers): void => publish(to, body, headers, `${inbox}.r${asked}`),
    /** Asks anew: answers to earlier questions are ignored, but the present attachment is still heard. */
    askAnew(to: string, headers: Headers): void {
      asked += 1;
      this.ask(to, Empty, headers);
    },
    /** From now on only the daemon that answered the latest question is heard. */
    hearLatest(): void {
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
