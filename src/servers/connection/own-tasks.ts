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
import type { Member } from '../member.ts';
import { Following } from './follow.ts';
import type { Link } from './link.ts';
import { type TaskReport, taskCreatedIn } from './task-report.ts';

export type OwnTasksOptions = {
  readonly member: Member;
  readonly catalog: Pick<Catalog, 'get' | 'watch'>;
  readonly send: Link['request'];
  /** Tells the server that nobody waits for that request any more. */
  readonly giveUp: (id: string, why: string) => void;
};

/** A server that has just opened has not said yet which of its tools want to be tasks. */
const PATIENCE_MS = 5_000;
/** How long a call that was given up may take to become the task that is then cancelled. */
const ORPHAN_MS = 10_000;
/** The answer to a cancellation changes nothing. */
const CANCEL_MS = 5_000;
const MAX_REMEMBERED = 10_000;

/** Calls are known by our ids of their requests. */
export class OwnTasks {
  readonly #options: OwnTasksOptions;
  readonly #inquiries: Inquiries;
  /** The member whose list of tools says which of them can be tasks. */
  readonly #lister: string;
  readonly #stopWatching: () => void;
  readonly #followed = new Map<string, Following>();
  /** Calls that wait until it is known whether they are to be tasks; the timer ends that wait. */
  readonly #undecided = new Map<string, { readonly send: () => void; readonly timer: NodeJS.Timeout }>();
  /** Calls that were sent as a task and are not answered. */
  readonly #augmented = new Set<string>();
  /** Those of them that were given up. */
  readonly #orphans = new Map<string, NodeJS.Timeout>();
  /** The call that has, or had, a task: what the server still asks about a task that has ended is no other call's. */
  readonly #owners = new Map<string, string>();

  constructor(options: OwnTasksOptions) {
    const { member, catalog } = options;
    this.#options = options;
    this.#inquiries = new Inquiries(member);
    this.#lister = (member.first ?? member).name;
    this.#stopWatching = catalog.watch((name) => {
      if (name !== this.#lister || this.#undecided.size === 0 || !this.#tools().isFresh) return;
      for (const { send } of [...this.#undecided.values()]) send();
    });
  }

  write(frame: Buffer, id: string, call: Call): void {
    const { member, send } = this.#options;
    const { upstream } = call;
    if (call.door === 'troupe') this.#inquiries.noteSent(call, id);
    if (upstream !== undefined) queueMicrotask(() => this.#begin(id, { taskId: upstream }));
    else if (call.method === 'tools/call' && runsTasks(member.facts)) this.#decide(frame, id, call);
    else send(frame, id, call);
  }

  cancel(id: string, why: string): void {
    const following = this.#followed.get(id);
    clearTimeout(this.#undecided.get(id)?.timer);
    if (this.#undecided.delete(id)) return; // the server has never heard of it
    if (following) return why === HANDED_OVER ? undefined : this.#cancelTask(id, following.taskId);
    if (!this.#augmented.has(id) || !this.#canCancelTasks()) return this.#abandon(id, why);
    this.#orphans.set(id, setTimeout(() => this.#abandon(id, why), ORPHAN_MS).unref());
  }

  /** What the server answered. False when no request waits for it. */
  answer(id: string, event: 'result' | 'error', body: Buffer): boolean {
    const { lane } = this.#options.member;
    if (this.#followed.has(id)) return false; // it was answered before, with the task
    const created = this.#forget(id) && event === 'result' ? taskCreatedIn(body) : undefined;
    if (!created) return lane.answer(id, event, body);
    if (created === 'unusable') this.#unusable(id, 'that cannot be asked for');
    else if (lane.sent(id)) this.#begin(id, created);
    else {
      this.#remember(created.taskId, id);
      this.#cancelTask(id, created.taskId);
    }
    return true;
  }

  /** A request failed on its way. */
  failed(id: string): void {
    this.#forget(id);
  }

  /** Whether the server has still to answer that request. */
  isPending(id: string): boolean {
    return this.#orphans.has(id) || (this.#options.member.lane.sent(id) !== undefined && !this.#followed.has(id));
  }

  /** The server reports how a task is. False when it is none of those it has made for us. */
  told(task: TaskReport): boolean {
    const owner = this.#owners.get(task.taskId);
    if (owner !== undefined) this.#followed.get(owner)?.hear(task);
    return owner !== undefined;
  }

  /** The call that a message belongs to: the one whose task it names, else the one on whose behalf its stream was opened. */
  behind(origin: string | undefined, taskId: string | undefined): string | undefined {
    const owner = taskId === undefined ? undefined : this.#owners.get(taskId);
    return owner ?? (origin === undefined ? undefined : (this.#inquiries.subjectOf(origin) ?? origin));
  }

  close(): void {
    for (const following of this.#followed.values()) following.stop();
    this.#stopWatching();
    for (const { timer } of this.#undecided.values()) clearTimeout(timer);
    for (const timer of this.#orphans.values()) clearTimeout(timer);
  }

  #tools() {
    return this.#options.catalog.get(this.#lister, 'tools');
  }

  #decide(frame: Buffer, id: string, call: Call): void {
    const { entries, isFresh } = this.#tools();
    const support = supportIn(entries).get(call.name);
    if (support || isFresh) return this.#sendAs(support, frame, id, call);
    const send = (): void => {
      clearTimeout(this.#undecided.get(id)?.timer);
      this.#undecided.delete(id);
      this.#sendAs(supportIn(this.#tools().entries).get(call.name), frame, id, call);
    };
    this.#undecided.set(id, { send, timer: setTimeout(send, PATIENCE_MS).unref() });
  }

  #sendAs(support: TaskSupport | undefined, frame: Buffer, id: string, call: Call): void {
    const { member, send } = this.#options;
    const restMs = Math.max(Math.ceil((member.lane.sent(id)?.latestDeadline ?? 0) - now()), 1);
    const ttl = support === 'required' ? (call.ttlMs ?? restMs) : support === 'optional' ? call.ttlMs : undefined;
    if (ttl !== undefined) this.#augmented.add(id);
    // Whether it is a task is not for a caller to say.
    const params =
      ttl === undefined
        ? withoutMember(call.params, 'task')
        : withMember(call.params, 'task', JSON.stringify({ ttl: Math.ceil(ttl) }));
    send(params === call.params ? frame : progressFrame(Number(id), call.method, params), id, call);
  }

  /** From now on that call is a task of the server. A task that another call already has cannot be trusted. */
  #begin(id: string, task: Pick<TaskReport, 'taskId'> & Partial<TaskReport>): void {
    const { lane, server } = this.#options.member;
    const request = lane.sent(id);
    if (!request) return;
    const { taskId } = task;
    const owner = this.#owners.get(taskId);
    if (owner !== undefined && this.#followed.has(owner)) return this.#unusable(id, 'that another call already has');
    this.#remember(taskId, id);
    const following = new Following(
      {
        lane,
        server,
        inquire: (method, settle, mostMs) => this.#inquiries.send(id, { method, taskId, settle, mostMs }),
      },
      request,
      taskId,
    );
    following.start(task);
    this.#followed.set(id, following);
    lane.whenEnded(request, () => {
      this.#followed.delete(id);
      following.stop();
    });
  }

  #remember(taskId: string, id: string): void {
    const owners = this.#owners;
    owners.delete(taskId);
    owners.set(taskId, id);
    if (owners.size <= MAX_REMEMBERED) return;
    for (const [each, owner] of owners) if (!this.#followed.has(owner)) return void owners.delete(each);
  }

  #unusable(id: string, why: string): void {
    const { lane, server } = this.#options.member;
    const message = `server ${server} made the call a task ${why}; the request was sent and its outcome is unknown`;
    lane.fail(id, { code: 'lost', delivery: 'outcome unknown', message, server });
  }

  /** The only way to stop a task; one of a server that has no such request runs on in vain. */
  #cancelTask(id: string, taskId: string): void {
    if (this.#canCancelTasks())
      this.#inquiries.send(id, { method: 'tasks/cancel', taskId, settle() {}, mostMs: CANCEL_MS });
  }

  #canCancelTasks(): boolean {
    const { facts } = this.#options.member;
    return facts !== undefined && offers(facts, 'tasks/cancel');
  }

  #abandon(id: string, why: string): void {
    this.#forget(id);
    this.#options.giveUp(id, why);
  }

  /** True when it had been sent as a task. */
  #forget(id: string): boolean {
    clearTimeout(this.#orphans.get(id));
    this.#orphans.delete(id);
    return this.#augmented.delete(id);
  }
}

type Inquiry = Pick<Call, 'method' | 'settle'> & { readonly taskId: string; readonly mostMs?: number | undefined };

/** Requests of our own about a task, each on behalf of the call that became the task. */
class Inquiries {
  readonly #member: Member;
  readonly #open = new WeakMap<Call, { readonly about: string; id?: string }>();
  /** The call that an inquiry is about, by our id of the inquiry. */
  readonly #subjects = new Map<string, string>();

  constructor(member: Member) {
    this.#member = member;
  }

  /** Returns how to give it up. */
  send(about: string, { method, taskId, settle, mostMs }: Inquiry): () => void {
    const { lane, server } = this.#member;
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
      settle: (outcome: Outcome) => {
        if (inquiry.id !== undefined) this.#subjects.delete(inquiry.id);
        settle(outcome);
      },
    };
    this.#open.set(call, inquiry);
    lane.ask(call);
    return () => {
      const request = inquiry.id === undefined ? undefined : lane.sent(inquiry.id);
      if (request) lane.cancel(request, 'nobody waits for it any more');
    };
  }

  /** A request of ours is about to be written; only those that are inquiries count. */
  noteSent(call: Call, id: string): void {
    const inquiry = this.#open.get(call);
    if (!inquiry) return;
    inquiry.id = id;
    this.#subjects.set(id, inquiry.about);
  }

  subjectOf(id: string): string | undefined {
    return this.#subjects.get(id);
  }
}
