// MCP over NATS for the official SDK's `Client`, of v1 and of v2:  new NatsClientTransport(nc, { server: 'github' })
// The connection is the user's own and stays open; the session lives through a restart of the daemon that serves it.

import type { NatsConnection } from 'nats';
import { subjects } from '../bus/subjects.ts';
import { NatsLink } from './link.ts';
import type { Message } from './message.ts';

/** The part of a connection of the package `nats` that is used. */
export type NatsLike = Pick<NatsConnection, 'publish' | 'subscribe' | 'flush' | 'status' | 'isClosed' | 'info'>;

export type NatsTransportOptions = {
  /** One server, with its names unchanged, or `@` and a profile; all servers if absent. */
  readonly server?: string;
  /** Messages go under `troupe.as.<principal>`, where a permission of the broker can prove the principal. */
  readonly principal?: string;
  readonly root?: string;
  /** The daemon lets go of a client that it has not heard of for three of these. It may ask for shorter ones. */
  readonly heartbeatMs?: number;
  /** How long to look for a daemon that takes over the session. */
  readonly patienceMs?: number;
  /** The prefix of our inboxes, if the connection may not use its own. */
  readonly inboxPrefix?: string;
};

/** Has the shape of the SDK's `Transport`, without importing the SDK. */
export class NatsClientTransport {
  onmessage?: ((message: Message) => void) | undefined;
  onerror?: ((error: Error) => void) | undefined;
  onclose?: (() => void) | undefined;
  sessionId?: string | undefined;
  #link: NatsLink | undefined;
  readonly #open: () => NatsLink;

  constructor(nc: NatsLike, options: NatsTransportOptions = {}) {
    const { server = '', principal, root = 'troupe', heartbeatMs = 10_000, patienceMs = 60_000 } = options;
    const own = (nc as { options?: { inboxPrefix?: string } }).options?.inboxPrefix;
    this.#open = () =>
      new NatsLink({
        nc: nc as NatsConnection,
        heartbeatMs,
        patienceMs,
        inboxPrefix: options.inboxPrefix ?? own ?? '',
        subject: subjects(root).rpc(server, principal === undefined ? {} : { caller: principal }),
        onMessage: (message) => this.onmessage?.(message),
        onError: (error) => this.onerror?.(error),
        onClose: () => this.onclose?.(),
        onSession: (id) => {
          this.sessionId = id;
        },
      });
  }

  async start(): Promise<void> {
    if (this.#link) throw new Error('this transport was started already; make a new one for each connection');
    this.#link = this.#open();
  }

  async send(message: Message): Promise<void> {
    if (!this.#link) throw new Error('this transport is not started; connect a client to it');
    await this.#link.send(message);
  }

  /** Ends the session. The NATS connection stays open. */
  async close(): Promise<void> {
    await this.#link?.close();
  }
}
