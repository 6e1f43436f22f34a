// The bus machine's port to NATS: one client that reconnects for ever. Publishing while it is disconnected loses the
// message silently, so what must arrive goes through the outbox; everything else here may be lost and says so.

import { type ConnectionOptions, connect, Events, type NatsConnection } from 'nats';
import { fromCallback } from 'xstate';
import type { BusEvent, ToBusConnection } from '../../machines/bus.ts';
import { sentence } from '../protocol/failures.ts';

export type BusWorld = {
  readonly name: string;
  /** The address the machine knows, with what it takes to be let in there. */
  readonly optionsOf: (url: string) => ConnectionOptions;
  readonly onConnection: (nc: NatsConnection) => void;
  readonly onReconnect: (nc: NatsConnection) => void;
  /** The last chance to send what is still owed; subscriptions are already closed. */
  readonly beforeDrain: () => Promise<void>;
};

const RECONNECT: ConnectionOptions = {
  maxReconnectAttempts: -1,
  reconnectTimeWait: 200,
  reconnectJitter: 100,
  pingInterval: 20_000,
  noAsyncTraces: true,
};

export function busConnection(world: BusWorld) {
  return fromCallback<ToBusConnection, { url: string }>(({ input, receive, sendBack }) => {
    const tell = sendBack as (event: BusEvent) => void;
    let nc: NatsConnection | undefined;
    let isOver = false;

    connect({ ...RECONNECT, name: world.name, ...world.optionsOf(input.url) }).then(
      (connected) => {
        nc = connected;
        if (isOver) return void nc.close();
        void watch(nc);
        world.onConnection(nc);
        tell({ type: 'connection.up' });
      },
      // The client would go on trying in silence; the machine tries again too, and people see why it has to.
      (error) =>
        tell({ type: 'connection.closed', why: `NATS at ${input.url} cannot be reached (${sentence(error)})` }),
    );

    async function watch(connection: NatsConnection): Promise<void> {
      void connection.closed().then((error) => {
        if (!isOver) tell({ type: 'connection.closed', why: error ? sentence(error) : 'the connection was closed' });
      });
      for await (const { type } of connection.status()) {
        if (isOver) return;
        if (type === Events.Disconnect) tell({ type: 'connection.down', why: 'the connection to NATS was lost' });
        if (type === Events.Reconnect) {
          tell({ type: 'connection.up' });
          world.onReconnect(connection);
        }
      }
    }

    receive(() => {
      if (!nc) return tell({ type: 'connection.closed', why: 'it was never connected' });
      const connection = nc;
      void world
        .beforeDrain()
        .then(() => connection.drain())
        .catch(() => connection.close()) // already gone: nothing can be sent any more
        .catch(() => {}); // closing what is closed
    });

    return () => {
      isOver = true;
      void nc?.close().catch(() => {}); // closing what is closed
    };
  });
}
