// What happens to the servers, told on the bus. A change of state or of a list must arrive and goes through the outbox;
// logs and updates are for whoever listens now.

import type { NatsConnection } from 'nats';
import { natsPublisher, type Outbox } from './outbox.ts';
import type { ChangedKind, Subjects } from './subjects.ts';

export type Events = ReturnType<typeof createEvents>;

export function createEvents(subjects: Subjects, outbox: Outbox, onTrouble: (why: unknown) => void) {
  let nc: NatsConnection | undefined;

  const send = (subject: string, payload: Uint8Array): void => {
    try {
      if (nc && !nc.isClosed() && !nc.isDraining()) nc.publish(subject, payload);
    } catch (error) {
      onTrouble(error);
    }
  };
  const must = (subject: string, value: object): void => {
    outbox.add(subject, Buffer.from(JSON.stringify(value))).catch(onTrouble);
  };

  return {
    online(connection: NatsConnection): void {
      nc = connection;
      outbox.online(natsPublisher(connection));
    },
    send,
    state: (server: string, value: { state: string; why: string; pid: number | undefined }) =>
      must(subjects.state(server, value.state), { server, ...value, at: Date.now() }),
    listChanged: (server: string, kind: ChangedKind, count: number) =>
      must(subjects.listChanged(server, kind), { server, kind, count, at: Date.now() }),
    log: (server: string, level: string, params: Buffer) => send(subjects.log(server, level), params),
    updated: (server: string, uri: string, params: Buffer) => send(subjects.resourceUpdated(server, uri), params),
    progress: (requestId: string, caller: string, value: object) =>
      send(subjects.progress(requestId, caller), Buffer.from(JSON.stringify(value))),
    heartbeat: (daemon: string, value: object) => send(subjects.heartbeat(daemon), Buffer.from(JSON.stringify(value))),
    /** Everything owed is on its way before the connection closes. */
    async close(): Promise<void> {
      await outbox.idle();
      outbox.offline();
    },
  };
}
