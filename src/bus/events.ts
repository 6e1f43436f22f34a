// What happens to the servers, told on the bus. A change of state or of a list, a question that opens or closes, and the
// status of a task must arrive and go through the outbox; logs, updates and progress are for whoever listens now.

import type { NatsConnection } from 'nats';
import type { TaskView } from '../calls/call.ts';
import { natsPublisher, type Outbox, type Standing } from './outbox.ts';
import type { ListKind, Subjects } from './subjects.ts';

export type Events = ReturnType<typeof createEvents>;
/** A server's process, and the principal it serves; `_` is whoever may use the bare tree. */
export type Whose = { readonly server: string; readonly principal: string };

/** What is told of a question: never what was asked or answered, because the outbox is a table in clear. */
export type AskNews = Whose & {
  readonly id: string;
  readonly kind: string;
  readonly tool: string;
  readonly openedAt: number;
  readonly expiresAt: number;
};
export type AskEnd = AskNews & { readonly outcome: string; readonly by: string };

export function createEvents(subjects: Subjects, outbox: Outbox, onTrouble: (why: unknown) => void) {
  let nc: NatsConnection | undefined;

  const send = (subject: string, payload: Uint8Array): void => {
    try {
      if (nc && !nc.isClosed() && !nc.isDraining()) nc.publish(subject, payload);
    } catch (error) {
      onTrouble(error);
    }
  };
  const must = (subject: string, value: object, standing?: Standing): void => {
    outbox.add(subject, Buffer.from(JSON.stringify(value)), undefined, standing).catch(onTrouble);
  };

  return {
    online(connection: NatsConnection): void {
      nc = connection;
      outbox.online(natsPublisher(connection));
    },
    send,
    state: ({ server, principal }: Whose, value: { state: string; why: string; pid: number | undefined }) =>
      must(subjects.state(server, value.state, principal), { server, ...value, at: Date.now() }),
    /** Templates are resources too: MCP has one notification for both, and so have we. */
    listChanged: ({ server, principal }: Whose, kind: ListKind, count: number) => {
      const subject = subjects.listChanged(server, kind === 'templates' ? 'resources' : kind, principal);
      must(subject, { server, kind, count, at: Date.now() });
    },
    askOpened: (about: AskNews) => must(subjects.askOpened(about.server, about.principal), newsOf(about)),
    askClosed(about: AskEnd): void {
      const { server, principal, outcome, by } = about;
      must(subjects.askClosed(server, principal), { ...newsOf(about), outcome, by, at: Date.now() });
    },
    /** Told after its row is written: whoever hears of it finds it so. One that is being written is told if it stands. */
    taskStatus: (view: TaskView, standing?: Standing) =>
      must(subjects.taskStatus(view.taskId, view.status, view.principal), statusOf(view), standing),
    log: ({ server, principal }: Whose, level: string, params: Buffer) =>
      send(subjects.log(server, level, principal), params),
    updated: ({ server, principal }: Whose, uri: string, params: Buffer) =>
      send(subjects.resourceUpdated(server, uri, principal), params),
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

/** Field by field: whoever hands over a whole question must not publish it. */
function newsOf({ id, kind, server, tool, openedAt, expiresAt }: AskNews) {
  return { id, kind, server, tool, openedAt, expiresAt };
}

/** Field by field here too: a task's call and its result are its principal's, and this is a table in clear. */
function statusOf(view: TaskView) {
  return {
    taskId: view.taskId,
    status: view.status,
    statusMessage: view.statusMessage,
    createdAt: view.createdAt,
    lastUpdatedAt: view.lastUpdatedAt,
    ttl: view.ttl,
    pollInterval: view.pollInterval,
    server: view.server,
    tool: view.tool,
    principal: view.principal,
    phase: view.phase,
    attempt: view.attempt,
    progress: view.progress,
  };
}
