// The events that a daemon publishes. A change of state or of a list, a question that opens or closes, and the status of a task
// must arrive and go through the outbox; logs, updates and progress reach only those who listen now.

import type { NatsConnection } from 'nats';
import type { TaskView } from '../calls/call.ts';
import { realWorld, type World } from '../world/world.ts';
import { isToldElsewhere } from './bounds.ts';
import { natsPublisher, type Outbox, type TaskCondition } from './outbox.ts';
import type { ListKind, Subjects } from './subjects.ts';

export type Events = ReturnType<typeof createEvents>;
/** A server's process, and the principal it serves; `_` is anyone who may use the bare tree. */
export type Whose = { readonly server: string; readonly principal: string };

/** What is published of a question: never its text or its answer, because the outbox is not encrypted. */
export type AskNews = Whose & {
  readonly id: string;
  readonly kind: string;
  readonly tool: string;
  readonly openedAt: number;
  readonly expiresAt: number;
};
export type AskEnd = AskNews & { readonly outcome: string; readonly by: string };

export function createEvents(
  subjects: Subjects,
  outbox: Outbox,
  onTrouble: (why: unknown) => void,
  world: World = realWorld,
) {
  let nc: NatsConnection | undefined;

  const send = (subject: string, payload: Uint8Array): void => {
    try {
      if (nc && !nc.isClosed() && !nc.isDraining()) nc.publish(subject, payload);
    } catch (error) {
      if (!isToldElsewhere(error)) onTrouble(error);
    }
  };
  const record = (subject: string, value: object, condition?: TaskCondition): void => {
    outbox.add(subject, Buffer.from(JSON.stringify(value)), undefined, condition).catch(onTrouble);
  };

  return {
    online(connection: NatsConnection): void {
      nc = connection;
      outbox.online(natsPublisher(connection));
    },
    send,
    state: ({ server, principal }: Whose, value: { state: string; why: string; pid: number | undefined }) =>
      record(subjects.state(server, value.state, principal), { server, ...value, at: world.date() }),
    /** Templates are resources too: MCP has one notification for both, and so have we. */
    listChanged: ({ server, principal }: Whose, kind: ListKind, count: number) => {
      const subject = subjects.listChanged(server, kind === 'templates' ? 'resources' : kind, principal);
      record(subject, { server, kind, count, at: world.date() });
    },
    askOpened: (about: AskNews) => record(subjects.askOpened(about.server, about.principal), newsOf(about)),
    askClosed(about: AskEnd): void {
      const { server, principal, outcome, by } = about;
      record(subjects.askClosed(server, principal), { ...newsOf(about), outcome, by, at: world.date() });
    },
    /** After the row of the task is written, or, under a condition, in one transaction with it. */
    taskStatus: (view: TaskView, condition?: TaskCondition) =>
      record(subjects.taskStatus(view.taskId, view.status, view.principal), statusOf(view), condition),
    log: ({ server, principal }: Whose, level: string, params: Buffer) =>
      send(subjects.log(server, level, principal), params),
    updated: ({ server, principal }: Whose, uri: string, params: Buffer) =>
      send(subjects.resourceUpdated(server, uri, principal), params),
    progress: (requestId: string, caller: string, value: object) =>
      send(subjects.progress(requestId, caller), Buffer.from(JSON.stringify(value))),
    heartbeat: (daemon: string, value: object) => send(subjects.heartbeat(daemon), Buffer.from(JSON.stringify(value))),
    /** All recorded events are sent before the connection closes. */
    async close(): Promise<void> {
      await outbox.idle();
      outbox.offline();
    },
  };
}

/** Field by field: the caller may hand over a whole question, which must not be published. */
function newsOf({ id, kind, server, tool, openedAt, expiresAt }: AskNews) {
  return { id, kind, server, tool, openedAt, expiresAt };
}

/** Field by field: a task's call and result belong to its principal, and the outbox is not encrypted. */
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
