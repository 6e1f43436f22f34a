// The tasks of one server's own, hidden: a call that the server makes a task stays one request in flight until its real
// result is there. Which calls are sent as tasks, whose a task is, and what is cancelled how, is known here alone.

import { randomUUID } from 'node:crypto';
import { type Call, HANDED_OVER, type Outcome } from '../../calls/call.ts';
import { now } from '../../calls/deadlines.ts';
import type { Catalog } from '../../catalog/catalog.ts';
import { offers, runsTasks } from '../../catalog/facts.ts';
import { supportIn, type TaskSupport } from '../../catalog/task-support.ts';
import { progressFrame } from '../../protocol/compose.ts';
import { withMember, withoutMember } from '../../protocol/edit.ts';
import type { Failure } from '../../protocol/failures.ts';
import type { Member } from '../member.ts';
import { type Following, follow } from './follow.ts';
import type { Link } from './link.ts';
import { type TaskReport, taskCreatedIn } from './task-report.ts';

export type OwnTasksOptions = {
  readonly member: Member;
  readonly catalog: Pick<Catalog, 'get' | 'watch'>;
  readonly send: Link['request'];
  /** Tells the server that nobody waits for that request any more. */
  readonly giveUp: (id: string, why: string) => void;
};
export type OwnTasks = ReturnType<typeof createOwnTasks>;

/** A server that has just opened has not said yet which of its tools want to be tasks. */
const PATIENCE_MS = 5_000;
/** So long a call that was given up may take to become the task that is then cancelled. */
const ORPHAN_MS = 10_000;
/** Nobody waits for the answer. */
const CANCEL_MS = 5_000;
const MAX_REMEMBERED = 10_000;

export function createOwnTasks({ member, catalog, send, giveUp }: OwnTasksOptions) {
  const { lane, server } = member;
  const followed = new Map<string, Following>();
  /** By our ids. Those that wait until it is known whether they are to be tasks; the timer ends that wait. */
  const waiting = new Map<string, { readonly send: () => void; readonly timer: NodeJS.Timeout }>();
  /** Those sent as a task and not answered; and those of them that were given up. */
  const augmented = new Set<string>();
  const orphans = new Map<string, NodeJS.Timeout>();
  /** Which call has, or had, that task: what is still asked about one that has ended is nobody else's. */
  const owners = new Map<string, string>();
  const inquiries = new WeakMap<Call, { readonly about: string; id?: string }>();
  /** On whose behalf our own requests about a task are. */
  const origins = new Map<string, string>();

  function write(frame: Buffer, id: string, call: Call): void {
    const inquiry = call.door === 'troupe' ? inquiries.get(call) : undefined;
    if (inquiry) {
      inquiry.id = id;
      origins.set(id, inquiry.about);
    }
    const { upstream } = call;
    if (upstream !== undefined) queueMicrotask(() => begin(id, { taskId: upstream }));
    else if (call.method === 'tools/call' && runsTasks(member.facts)) decide(frame, id, call);
    else send(frame, id, call);
  }

  const lister = (member.first ?? member).name;
  const stopWatching = catalog.watch((name) => {
    if (name !== lister || waiting.size === 0 || !catalog.get(lister, 'tools').isFresh) return;
    for (const each of [...waiting.values()]) each.send();
  });

  function decide(frame: Buffer, id: string, call: Call): void {
    const { entries, isFresh } = catalog.get(lister, 'tools');
    const support = supportIn(entries).get(call.name);
    const send = (): void => {
      clearTimeout(waiting.get(id)?.timer);
      waiting.delete(id);
      sendAs(supportIn(catalog.get(lister, 'tools').entries).get(call.name), frame, id, call);
    };
    if (support || isFresh) sendAs(support, frame, id, call);
    else waiting.set(id, { send, timer: setTimeout(send, PATIENCE_MS).unref() });
  }

  function sendAs(support: TaskSupport | undefined, frame: Buffer, id: string, call: Call): void {
    const restMs = Math.max(Math.ceil((lane.sent(id)?.latestDeadline ?? 0) - now()), 1);
    const ttl = support === 'required' ? (call.ttlMs ?? restMs) : support === 'optional' ? call.ttlMs : undefined;
    if (ttl !== undefined) augmented.add(id);
    // Whether it is a task is not for a caller to say.
    const params =
      ttl === undefined
        ? withoutMember(call.params, 'task')
        : withMember(call.params, 'task', JSON.stringify({ ttl: Math.ceil(ttl) }));
    send(params === call.params ? frame : progressFrame(Number(id), call.method, params), id, call);
  }

  /** From now on that call is a task of the server. One that is another call's already is none that can be trusted. */
  function begin(id: string, task: Pick<TaskReport, 'taskId'> & Partial<TaskReport>): void {
    const request = lane.sent(id);
    if (!request) return;
    const { taskId } = task;
    const owner = owners.get(taskId);
    if (owner !== undefined && followed.has(owner)) return unusable(id, 'that another call already has');
    remember(taskId, id);
    const following = follow(
      { lane, server, inquire: (method, settle, mostMs) => inquire(id, { method, taskId, settle, mostMs }) },
      request,
      task,
    );
    followed.set(id, following);
    lane.whenEnded(request, () => {
      followed.delete(id);
      following.stop();
    });
  }

  function remember(taskId: string, id: string): void {
    owners.delete(taskId);
    owners.set(taskId, id);
    if (owners.size > MAX_REMEMBERED)
      for (const [each, owner] of owners) if (!followed.has(owner)) return void owners.delete(each);
  }

  function unusable(id: string, why: string): void {
    const message = `server ${server} made the call a task ${why}; the request was sent and its outcome is unknown`;
    const failure: Failure = { code: 'lost', delivery: 'outcome unknown', message, server };
    lane.fail(id, failure);
  }

  type Inquiry = Pick<Call, 'method' | 'settle'> & { readonly taskId: string; readonly mostMs?: number | undefined };

  function inquire(about: string, { method, taskId, settle, mostMs }: Inquiry): () => void {
    const inquiry: { about: string; id?: string } = { about };
    const call: Call = {
      requestId: randomUUID(),
      server,
      method,
      name: '',
      principal: '_',
      door: 'troupe',
      params: Buffer.from(JSON.stringify({ taskId })),
      ...(mostMs !== undefined && { timeoutMs: mostMs, maxTimeoutMs: mostMs }),
      settle(outcome: Outcome) {
        if (inquiry.id !== undefined) origins.delete(inquiry.id);
        settle(outcome);
      },
    };
    inquiries.set(call, inquiry);
    lane.ask(call);
    return () => {
      const request = inquiry.id === undefined ? undefined : lane.sent(inquiry.id);
      if (request) lane.cancel(request, 'nobody waits for it any more');
    };
  }

  /** The only way to stop a task; where a server has none, it runs on for nobody. */
  function cancelTask(id: string, taskId: string): void {
    if (member.facts && offers(member.facts, 'tasks/cancel'))
      inquire(id, { method: 'tasks/cancel', taskId, settle() {}, mostMs: CANCEL_MS });
  }

  function cancel(id: string, why: string): void {
    const following = followed.get(id);
    clearTimeout(waiting.get(id)?.timer);
    if (waiting.delete(id)) return; // the server has never heard of it
    if (following) return why === HANDED_OVER ? undefined : cancelTask(id, following.taskId);
    if (!augmented.has(id) || !member.facts || !offers(member.facts, 'tasks/cancel')) return abandon(id, why);
    orphans.set(id, setTimeout(abandon, ORPHAN_MS, id, why).unref());
  }

  function abandon(id: string, why: string): void {
    forget(id);
    giveUp(id, why);
  }

  function forget(id: string): boolean {
    clearTimeout(orphans.get(id));
    orphans.delete(id);
    return augmented.delete(id);
  }

  return {
    write,
    cancel,
    /** What the server answered. False when nobody wants to know it. */
    answer(id: string, event: 'result' | 'error', body: Buffer): boolean {
      if (followed.has(id)) return false; // it was answered before, with the task
      const created = forget(id) && event === 'result' ? taskCreatedIn(body) : undefined;
      if (!created) return lane.answer(id, event, body);
      const isWanted = lane.sent(id) !== undefined;
      if (created === 'unusable') unusable(id, 'that cannot be asked for');
      else if (isWanted) begin(id, created);
      else {
        remember(created.taskId, id);
        cancelTask(id, created.taskId);
      }
      return true;
    },
    /** A request failed on its way. */
    failed: (id: string): void => void forget(id),
    isPending: (id: string): boolean => orphans.has(id) || (lane.sent(id) !== undefined && !followed.has(id)),
    /** The server says how a task is. False when it is none of those it has made for us. */
    told(task: TaskReport): boolean {
      const owner = owners.get(task.taskId);
      if (owner !== undefined) followed.get(owner)?.hear(task);
      return owner !== undefined;
    },
    /** The call that something belongs to: the one whose task it names, else the one on whose behalf it came on that stream. */
    behind(origin: string | undefined, taskId: string | undefined): string | undefined {
      const owner = taskId === undefined ? undefined : owners.get(taskId);
      return owner ?? (origin === undefined ? undefined : (origins.get(origin) ?? origin));
    },
    close(): void {
      for (const following of followed.values()) following.stop();
      stopWatching();
      for (const { timer } of waiting.values()) clearTimeout(timer);
      for (const timer of orphans.values()) clearTimeout(timer);
    },
  };
}
