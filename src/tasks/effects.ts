// What the chart of a task orders: rows are written, calls are made, and time is waited for. Each comes back as an event of the
// chart. The chart says when; here is only how.

import { statusOf } from '../../machines/task.ts';
import { type Ask, type Call, type Door, HANDED_OVER, type Outcome } from '../calls/call.ts';
import type { TaskSettings } from '../config/schema.ts';
import { failureOf, TroupeError } from '../protocol/failures.ts';
import type { Fleet } from '../servers/fleet.ts';
import type { TaskRow } from '../store/rows.ts';
import { failpoint } from '../telemetry/failpoints.ts';
import type { World } from '../world/world.ts';
import { endingOf, endOfCall, INPUT, isOutage, outcomeToKeep, type ServerRules, stopped } from './endings.ts';
import type { Brought, OwnedTask, Send, TaskEventType } from './owned-task.ts';
import type { TaskRows } from './rows.ts';

export type EffectPorts = {
  readonly world: World;
  readonly rows: TaskRows;
  readonly settings: () => TaskSettings;
  readonly fleet: Pick<Fleet, 'submit' | 'cancel'>;
  readonly rules: ServerRules;
  /** Told of a row in one breath with its write: it is published only if that stands. */
  readonly onWritten: (row: TaskRow) => void;
  readonly onTrouble: (error: unknown) => void;
};

/** How long a task waits before its server is tried again. */
const HELD_MS = 1_000;
/** How long a row waits before a disk that was full is tried again. */
const RETRY_MS = 1_000;

// ── Rows ─────────────────────────────────────────────────────────────────────

type Write = (
  task: OwnedTask,
  commit: () => Promise<boolean>,
  events: { readonly stands?: TaskEventType; readonly full: TaskEventType },
  brought?: Brought,
) => void;

export function rowEffects(ports: EffectPorts, send: Send) {
  const { rows, onTrouble } = ports;
  const write = writer(send, onTrouble);
  return {
    ...sendingEffects(ports, write),
    ...statusEffects(ports, write),
    ...endingEffects(ports, write),
    insert: (task: OwnedTask, { settle }: Brought) => settle?.(ordered(() => rows.add(task.row, task.params))),
    writeCancelled({ row: { id, server } }: OwnedTask, { settle }: Brought): void {
      const message = 'the task was cancelled by request';
      settle?.(ordered(() => rows.cancel(id, { code: 'cancelled', delivery: 'outcome unknown', message, server })));
    },
    /** Whether it stands or not, the task is none of ours any more. */
    writeReleased(task: OwnedTask): void {
      rows
        .release(task.row)
        .catch(onTrouble)
        .finally(() => send(task, 'released'));
    },
  };
}

/** A write that cannot even be ordered is told to whoever ordered it, like one that the disk refuses. */
const ordered = async (write: () => Promise<boolean>): Promise<boolean> => write();

/** A write comes back as an event: it stands, the row is somebody else's, the disk was full, or there is a bug. */
const writer =
  (send: Send, onTrouble: EffectPorts['onTrouble']): Write =>
  (task, commit, { stands, full }, brought) => {
    const attempt = async (): Promise<void> => {
      const isOurs = await commit();
      if (!isOurs) send(task, 'row.lost');
      else if (stands) send(task, stands, brought);
    };
    attempt().catch((error) => {
      onTrouble(error);
      send(task, isOutage(error) ? full : 'broke');
    });
  };

/** That it may be sent, and that it was not, or shall be once more. */
function sendingEffects({ world, rows }: EffectPorts, write: Write) {
  /** `unsent` is how many attempts did not count. */
  function requeue(task: OwnedTask, unsent: 0 | 1, message: string): void {
    const changes = {
      phase: 'queued',
      status: 'working',
      attempt: task.row.attempt - unsent,
      message,
      upstream: null,
      updated_at: world.date(),
    } as const;
    const row = { ...task.row, ...changes };
    task.upstream = undefined;
    write(task, () => rows.requeue(row, unsent), { stands: 'requeued', full: 'requeue.full' }, { changes });
  }

  return {
    writeReserved(task: OwnedTask): void {
      const commit = async (): Promise<boolean> => {
        const isOurs = await rows.dispatch(task.row);
        failpoint('task.reserved');
        return isOurs;
      };
      const changes = { phase: 'dispatching', attempt: task.row.attempt + 1 } as const;
      write(task, commit, { stands: 'reserved', full: 'reserve.full' }, { changes });
    },
    writeUnsent: (task: OwnedTask) => requeue(task, 1, 'it waits for its server'),
    writeRerun(task: OwnedTask, { outcome = task.outcome }: Brought): void {
      task.outcome = outcome;
      requeue(task, 0, `it is run again: ${outcome?.ok === false ? outcome.failure.message : 'it was lost'}`);
    },
  };
}

function statusEffects({ world, rows, onWritten }: EffectPorts, write: Write) {
  return {
    /** The events of statuses come in the order of the statuses, because each is written in one step with its status. */
    writeStatus(task: OwnedTask): void {
      const status = statusOf(task.state.value) ?? task.row.status;
      const row: TaskRow = { ...task.row, status, message: messageOf(task), updated_at: world.date() };
      task.row = row;
      const commit = (): Promise<boolean> => {
        const isSet = rows.setStatus(row);
        onWritten(row);
        return isSet;
      };
      write(task, commit, { stands: 'shown', full: 'show.full' }, { shown: row });
    },
    /** Another attempt may have been made since: it has no task at its server yet. */
    writeUpstream(task: OwnedTask): void {
      const { row } = task;
      if (row.upstream !== null) write(task, () => rows.setUpstream(row), { full: 'show.full' });
    },
  };
}

/** The outcome and the event that tells of it are one step on the disk. */
function endingEffects({ world, rows, settings, onWritten }: EffectPorts, write: Write) {
  function commitEnding(task: OwnedTask, outcome: Outcome): void {
    const ending = endingOf(outcome, world.date());
    const row: TaskRow = { ...task.row, ...ending, phase: 'ended' };
    const commit = async (): Promise<boolean> => {
      const isKept = rows.end(row, outcome);
      onWritten(row);
      const isOurs = await isKept;
      failpoint('task.committed');
      return isOurs;
    };
    write(task, commit, { stands: `ended.${ending.status}`, full: 'end.full' }, { row });
  }

  function end(task: OwnedTask, given: Outcome): void {
    task.outcome = outcomeToKeep(given, task.row, settings().maxResultBytes);
    commitEnding(task, task.outcome);
  }

  return {
    writeEnding: (task: OwnedTask, { outcome }: Brought) => outcome && end(task, outcome),
    writeStopped: (task: OwnedTask, { outcome }: Brought) => outcome && end(task, stopped(outcome, task.row)),
    rewriteEnding: (task: OwnedTask) => task.outcome && commitEnding(task, task.outcome),
  };
}

/** What is shown beside the status. */
export const messageOf = ({ questions, upstream }: OwnedTask): string | null =>
  (questions > 0 ? INPUT : upstream?.statusMessage) ?? null;

// ── Calls ────────────────────────────────────────────────────────────────────

export function callEffects({ rows, fleet, rules, onTrouble }: EffectPorts, send: Send) {
  function submit(task: OwnedTask, call: Call): void {
    const { server } = task.row;
    if (rows.isExpired(task.row)) return void send(task, 'row.lost');
    try {
      if (!fleet.submit(call)) throw new TroupeError('unknownServer', `server ${server} is not configured any more`);
    } catch (error) {
      settled(task, { ok: false, failure: { ...failureOf(error, onTrouble), server } });
    }
  }

  /** The call that a task is. It has all the time that the task has, and so has what its server makes of it. */
  function callOf(task: OwnedTask): Draft<Call> {
    const { row, params, canAnswer } = task;
    const leftMs = rows.leftMs(row);
    const call: Draft<Call> = {
      requestId: row.id,
      task: row.id,
      server: row.server,
      method: 'tools/call',
      name: row.tool,
      params,
      principal: row.principal,
      door: row.door as Door,
      isCancellable: true,
      timeoutMs: leftMs,
      maxTimeoutMs: leftMs,
      ttlMs: leftMs,
      onUpstream: (told) => upstreamTold(task, told, send),
      onSignal: (signal) => void send(task, 'signal', { signal }),
      onAsk: ({ method, params: asked }: Ask) => (canAnswer?.(method, asked) ? ASKED_LATER : undefined),
      settle: (outcome) => settled(task, outcome),
    };
    // Assigned, not spread: V8 takes longer for each property that is added to a copy than for the whole of it.
    if (row.session !== null) call.holder = row.session;
    if (row.upstream !== null) call.upstream = row.upstream;
    return call;
  }

  const reservationOf = (task: OwnedTask) => (): Promise<boolean> =>
    new Promise((resolve) => {
      task.reservation = resolve;
      if (!send(task, 'reserve')) resolve(false);
    });

  function settled(task: OwnedTask, outcome: Outcome): void {
    if (task.state.steps.answered) failpoint('task.answered');
    const mayRerun = (row: TaskRow): boolean => task.mayRerun ?? rules.mayRerun(row);
    send(task, endOfCall(outcome, task.row, { mayRerun, isRemote: rules.isRemote }), { outcome });
  }

  function cancel(task: OwnedTask, why: string): void {
    fleet.cancel(task.row.principal, task.row.id, why);
    task.reservation?.(false);
  }

  return {
    callOf,
    settled,
    effects: {
      /** Before its first byte is sent the row says so. */
      submit: (task: OwnedTask) => submit(task, Object.assign(callOf(task), { reserve: reservationOf(task) })),
      /** The row has said so already, or the server goes on with what it has. */
      submitReserved: (task: OwnedTask) => submit(task, callOf(task)),
      grant: (task: OwnedTask) => task.reservation?.(true),
      deny: (task: OwnedTask) => task.reservation?.(false),
      stopCall: (task: OwnedTask) => cancel(task, 'its task was cancelled'),
      letGo: (task: OwnedTask) => cancel(task, task.row.upstream === null ? 'troupe stops' : HANDED_OVER),
      /** What a server still does for nobody is stopped; not what another daemon follows. */
      abandon(task: OwnedTask): void {
        const isFollowed = task.row.upstream !== null && rows.find(task.row.id)?.phase === 'dispatching';
        cancel(task, isFollowed ? HANDED_OVER : 'its task is over');
      },
    },
  };
}

type Draft<Value> = { -readonly [key in keyof Value]: Value[key] };

/** The host may come for the result, and is asked then: nobody else is for a while. */
const ASKED_LATER = { withdraw: () => {}, complete: () => {} };

/** The server says how the task is that it has made of the call. */
function upstreamTold(task: OwnedTask, told: NonNullable<OwnedTask['upstream']>, send: Send): void {
  task.upstream = told;
  if (told.taskId !== task.row.upstream) send(task, 'upstream', { changes: { upstream: told.taskId } });
  review(task, send);
}

/** Whether somebody must be asked, and what is said of it, may be another than before. */
export function review(task: OwnedTask, send: Send): void {
  const isWaiting = task.questions > 0 || task.upstream?.status === 'input_required';
  if (send(task, isWaiting ? 'input.required' : 'input.given')) return;
  if (messageOf(task) !== task.row.message) send(task, 'message');
}

// ── Time ─────────────────────────────────────────────────────────────────────

export const timeEffects = ({ world }: EffectPorts, send: Send) => ({
  waitForServer: (task: OwnedTask) => void world.after(HELD_MS, () => send(task, 'due')),
  retryLater: (task: OwnedTask) => void world.after(RETRY_MS, () => send(task, 'retry')),
  reshowLater: (task: OwnedTask) => void world.after(RETRY_MS, () => send(task, 'reshow')),
});
