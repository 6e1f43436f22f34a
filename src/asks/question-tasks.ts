// Questions that a server of 2025-11-25 asks as tasks: it hears at once that its question is taken, and comes for the answer.
// The question is an ask like any other. Its task lives as long as the server wishes, at most (and if it does not say) as long
// as a question may take and five minutes more to fetch the answer; it is in memory, like the connection it belongs to.

import type { Answer } from '../calls/call.ts';
import type { AskSettings } from '../config/schema.ts';
import { withMeta } from '../protocol/edit.ts';
import { codecOf } from '../protocol/eras.ts';
import { spansOf, textAt } from '../protocol/json.ts';
import { RELATED_TASK } from '../protocol/tasks.ts';
import type { Asked } from '../servers/connection/session.ts';
import type { Member } from '../servers/member.ts';
import { type Allowance, allowance } from '../telemetry/allowance.ts';
import type { World } from '../world/world.ts';
import type { Question } from './ask.ts';
import {
  createQuestionTask,
  type QuestionTask,
  readTaskWanted,
  type ServerReply,
  type TaskWanted,
} from './question-task.ts';
import type { Refusal } from './reading.ts';
import { refused } from './replies.ts';

export type QuestionTasks = ReturnType<typeof createQuestionTasks>;

const FETCH_MS = 300_000;
/** About 24 days: what servers are told must be what is kept, on every clock. */
const LONGEST_MS = 2 ** 31 - 1;

export function createQuestionTasks(settings: () => Pick<AskSettings, 'timeoutMs' | 'maxOpen'>, world: World) {
  const kept = createKeptTasks(() => settings().maxOpen, world);
  const serve = createOperations(kept);
  const watched = new WeakSet<AbortSignal>();

  /** Once for each connection. */
  function watch(member: Member, closed: AbortSignal): void {
    if (watched.has(closed)) return;
    watched.add(closed);
    closed.addEventListener('abort', () => lost(member), { once: true });
  }

  /** Open tasks are cancelled. Those that have ended can be fetched over a new connection, but not by a new process. */
  function lost(member: Member): void {
    for (const task of kept.of(member)) {
      task.cancel('the connection to its server was lost');
      if (member.config.transport === 'stdio') kept.drop(member, task.id);
    }
  }

  return {
    /** Answers a server's `tasks/…`; false when this is none of them, or comes from a version that has no tasks. */
    serve: (member: Member, asked: Asked): boolean => hasTasks(member) && serve(member, asked),

    /** Whether a question is to be a task; in versions that have none it never is. */
    wanted(member: Member, params: Buffer): TaskWanted | Refusal | undefined {
      const mostMs = Math.min(settings().timeoutMs + FETCH_MS, LONGEST_MS);
      return hasTasks(member) ? readTaskWanted(params, mostMs) : undefined;
    },

    /** Nothing when so many tasks are kept that there is no room for another. */
    begin(member: Member, asked: Asked, { question, ttlMs, withdraw }: Beginning): ServerReply | undefined {
      const drop = (): void => kept.drop(member, task.id);
      const task = createQuestionTask({ asked, question, ttlMs, world, withdraw, drop });
      if (!kept.add(member, task, ttlMs)) return undefined;
      watch(member, asked.closed);
      return task.reply;
    },
  };
}

type Beginning = TaskWanted & { readonly question: Question; readonly withdraw: () => void };

const hasTasks = ({ facts }: Member): boolean => facts !== undefined && codecOf(facts.era).hasTasks;

// ── Which tasks are kept ─────────────────────────────────────────────────────

type KeptTasks = ReturnType<typeof createKeptTasks>;
type Entry = {
  readonly task: QuestionTask;
  readonly number: number;
  readonly server: string;
  readonly own: OfProcess;
  readonly all: OfServer;
  bytes: number;
  stopTimer: () => void;
};
/** The tasks of one process, the oldest first; `asked` counts all it ever had. */
type OfProcess = { readonly entries: Map<string, Entry>; asked: number };
/** The tasks of all processes of one server; `ended` begins with the task that has ended first. */
type OfServer = { readonly entries: Set<Entry>; readonly ended: Set<Entry>; bytes: number };

const MAX_BYTES = 16 * 2 ** 20;
const PAGE = 100;

/**
 * Each task is kept for the process that asked: no other one finds it, whatever id it names. So many tasks and so many bytes a
 * server are kept, until their time is over or a newer one needs the room.
 */
function createKeptTasks(maxKept: () => number, world: World) {
  /** Weak, because nobody comes for the tasks of a process that is gone for good. */
  const processes = new WeakMap<Member, OfProcess>();
  const servers = new Map<string, OfServer>();

  const ofProcess = (member: Member): OfProcess => processes.get(member) ?? { entries: new Map(), asked: 0 };

  function remove(entry: Entry): void {
    const { own, server, all, task } = entry;
    if (!all.entries.delete(entry)) return;
    entry.stopTimer();
    own.entries.delete(task.id);
    all.ended.delete(entry);
    all.bytes -= entry.bytes;
    if (all.entries.size === 0) servers.delete(server);
  }

  function ended(entry: Entry, bytes: number): void {
    const { all } = entry;
    if (!all.entries.has(entry)) return;
    makeRoom(all, () => all.bytes > 0 && all.bytes + bytes > MAX_BYTES); // one alone may be as large as a frame
    entry.bytes = bytes;
    all.bytes += bytes;
    all.ended.add(entry);
  }

  /** The task that has ended first goes first. */
  function makeRoom({ ended: over }: OfServer, isFull: () => boolean): void {
    for (const oldest of over) {
      if (!isFull()) return;
      remove(oldest);
    }
  }

  return {
    /** Keeps a task until its time is over; false when there is no room. */
    add(member: Member, task: QuestionTask, ttlMs: number): boolean {
      const { server } = member;
      const own = ofProcess(member);
      const all = servers.get(server) ?? { entries: new Set(), ended: new Set(), bytes: 0 };
      makeRoom(all, () => all.entries.size >= maxKept());
      if (all.entries.size >= maxKept()) return false;
      const entry: Entry = { task, number: ++own.asked, server, own, all, bytes: 0, stopTimer: () => {} };
      processes.set(member, own);
      servers.set(server, all);
      own.entries.set(task.id, entry);
      all.entries.add(entry);
      task.whenEnded((answer) => ended(entry, (answer.ok ? answer.result : answer.error).length));
      entry.stopTimer = world.after(ttlMs, () => {
        task.cancel('its time is over');
        remove(entry);
      });
      return true;
    },
    find: (member: Member, id: string): QuestionTask | undefined => processes.get(member)?.entries.get(id)?.task,
    of: (member: Member): QuestionTask[] => [...ofProcess(member).entries.values()].map(({ task }) => task),
    drop(member: Member, id: string): void {
      const entry = processes.get(member)?.entries.get(id);
      if (entry) remove(entry);
    },
    /** In the order in which they were asked; nothing for a cursor that is none of ours. */
    page(member: Member, cursor: string | undefined): { tasks: QuestionTask[]; next?: string } | undefined {
      const { entries, asked } = ofProcess(member);
      const after = cursor === undefined ? 0 : numberOf(cursor);
      if (after === undefined || after > asked) return undefined;
      const left = [...entries.values()].filter(({ number }) => number > after);
      const page = left.slice(0, PAGE);
      const last = page.at(-1);
      const next = last && left.length > PAGE ? { next: cursorOf(last.number) } : {};
      return { tasks: page.map(({ task }) => task), ...next };
    },
  };
}

const cursorOf = (number: number): string => Buffer.from(`after ${number}`).toString('base64url');

function numberOf(cursor: string): number | undefined {
  const [, digits] = /^after (\d{1,15})$/.exec(Buffer.from(cursor, 'base64url').toString()) ?? [];
  const number = Number(digits);
  return digits !== undefined && cursorOf(number) === cursor ? number : undefined;
}

// ── What a server does with its tasks ────────────────────────────────────────

/** A thousand tasks, each looked at more often than its server was told to. */
const PER_SECOND = 5_000;
const INVALID = -32602;
/** The same for a task that never was and for that of another process. */
const UNKNOWN = refused(INVALID, 'there is no such task; perhaps its ttl is over');
const NO_CURSOR = refused(INVALID, 'this is no cursor of a list of tasks; begin without one');
const TOO_FAST = refused(-32603, 'these are too many requests about tasks a second');

type Operation = (asked: Asked, task: QuestionTask) => void;

const OPERATIONS: Readonly<Record<string, Operation>> = {
  'tasks/get': ({ answer }, task) => answer(result(task.view())),

  'tasks/result': ({ signal, answer }, task) => {
    const leave = task.whenEnded((outcome) => answer(related(outcome, task.id)));
    signal.addEventListener('abort', leave, { once: true });
  },

  'tasks/cancel': ({ answer }, task) => {
    const { status } = task.view();
    if (task.isEnded) return answer(refused(INVALID, `the task has ended as ${status}, and cannot be cancelled`));
    task.cancel('its server has cancelled it');
    answer(result(task.view()));
  },
};

/** Returns false for a request that is none of `tasks/…`. */
function createOperations(kept: KeptTasks): (member: Member, asked: Asked) => boolean {
  const paces = new WeakMap<Member, Allowance>();

  function isTooFast(member: Member): boolean {
    const pace = paces.get(member) ?? allowance(PER_SECOND);
    paces.set(member, pace);
    return !pace.take();
  }

  function list(member: Member, { params, answer }: Asked): void {
    const cursor = textAt(params, ['cursor']);
    const isText = cursor !== undefined || spansOf(params, 'cursor').length === 0;
    const page = isText ? kept.page(member, cursor) : undefined;
    if (!page) return answer(NO_CURSOR);
    const { tasks, next } = page;
    answer(result({ tasks: tasks.map((task) => task.view()), ...(next !== undefined && { nextCursor: next }) }));
  }

  function one(member: Member, asked: Asked, operate: Operation): void {
    const task = kept.find(member, textAt(asked.params, ['taskId']) ?? '');
    if (task) operate(asked, task);
    else asked.answer(UNKNOWN);
  }

  return (member, asked) => {
    const operation = Object.hasOwn(OPERATIONS, asked.method) ? OPERATIONS[asked.method] : undefined;
    if (!operation && asked.method !== 'tasks/list') return false;
    if (isTooFast(member)) asked.answer(TOO_FAST);
    else if (operation) one(member, asked, operation);
    else list(member, asked);
    return true;
  };
}

const result = (value: object): Answer => ({ ok: true, result: Buffer.from(JSON.stringify(value)) });

/** The bytes as they came, and the task they belong to; an error has no place for that. */
const related = (outcome: Answer, taskId: string): Answer =>
  outcome.ok ? { ok: true, result: withMeta(outcome.result, RELATED_TASK, JSON.stringify({ taskId })) } : outcome;
