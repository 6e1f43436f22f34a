// A task that this daemon runs: its row, its actor, and the call that it makes. What the call comes to is on the disk before
// anybody hears of it; who has lost the task to a cancellation or to another daemon changes nothing any more.

import { type Ask, type Call, FORGOTTEN, HANDED_OVER, type Outcome } from '../calls/call.ts';
import { type Failure, failureOf, TroupeError } from '../protocol/failures.ts';
import { progressTokenOf } from '../protocol/signals.ts';
import type { TaskRow } from '../store/rows.ts';
import { failpoint } from '../telemetry/failpoints.ts';
import { taskActor } from './actor.ts';
import { callOf } from './call-of.ts';
import { endingOf, isPassing, ofAll, stopped, withinBytes } from './endings.ts';
import type { Given, LiveWorld } from './live-world.ts';
import { isOutage, patiently } from './patience.ts';
import { createStanding } from './standing.ts';

export type Live = ReturnType<typeof createLive>;

/** A call that takes its daemon down with it must not do so for ever. */
const MAX_ATTEMPTS = 3;

export function createLive(world: LiveWorld, { row, params, canAnswer }: Given) {
  const { rows } = world;
  const task = { row };
  const token = progressTokenOf(params);
  let isOver = false;
  let isEnding = false;
  let isLeaving = false;
  let isPutBack = false;
  let mayRerun: boolean | undefined;
  let goodbye = (): void => {};
  /** Resolves when nothing more is written here. */
  const over = new Promise<void>((resolve) => {
    goodbye = resolve;
  });
  const actor = taskActor(row.status, () => world.onStatus(live), world.onTrouble);
  const standing = createStanding(task, {
    ...{ rows, isOver: () => isOver || isEnding, onSignal: (signal) => world.onSignal(live, signal) },
    write: (write, then) =>
      void surely(write)
        .then((isOurs) => (isOurs ? then() : lost()))
        .catch(broken),
    onStatus: (change) => (change === 'message' ? world.onStatus(live) : actor.send(change)),
  });

  /** It goes to its server, or goes on with what the server made of it. */
  function run(): void {
    if (isOver) return;
    if (rows.isOver(task.row)) return lost();
    const { server, phase } = task.row;
    // Assigned, not spread: V8 takes longer for each property that is added to a copy than for the whole of it.
    const call: Call = Object.assign(callOf(task.row, params, rows.leftMs(task.row)), {
      onUpstream: standing.onUpstream,
      onSignal: standing.onSignal,
      onAsk: ({ method, params: asked }: Ask) => (canAnswer?.(method, asked) ? PATIENCE : undefined),
      settle: (outcome: Outcome) => void settled(outcome).catch(broken),
      ...(phase === 'queued' && { reserve }),
    });
    try {
      if (!world.submit(call)) throw new TroupeError('unknownServer', `server ${server} is not configured any more`);
    } catch (error) {
      settled({ ok: false, failure: { ...failureOf(error, world.onTrouble), server } }).catch(broken);
    }
  }

  /** On the disk first, so that nobody sends it again. What was reserved once stays so, also when it is sent back. */
  async function reserve(): Promise<boolean> {
    if (task.row.phase === 'dispatching') return !isOver;
    try {
      const isOurs = await rows.dispatch(task.row);
      failpoint('task.reserved');
      if (isOurs) task.row = { ...task.row, phase: 'dispatching', attempt: task.row.attempt + 1 };
      else lost();
      return isOurs && !isOver;
    } catch (error) {
      // A disk that is full is waited for elsewhere: the next call may need no disk.
      isPutBack = isOutage(error);
      if (isPutBack) world.onTrouble(error);
      else broken(error);
      return false;
    }
  }

  async function settled(outcome: Outcome): Promise<void> {
    if (isOver || isEnding) return;
    failpoint('task.answered');
    const failure = outcome.ok ? undefined : outcome.failure;
    const isUnsent = failure?.delivery === 'not sent' && (isPutBack || isPassing(failure));
    isPutBack = false;
    if (isUnsent || (failure && canFollow(failure))) return hold();
    if (!failure || !canRerun(failure)) return end(outcome);
    await requeue(0, `it is run again: ${failure.message}`);
    return isLeaving ? release() : run();
  }

  /** Its server works on, out of reach for a while. */
  const canFollow = ({ code, state }: Failure): boolean =>
    code === 'lost' && state !== FORGOTTEN && task.row.upstream !== null && world.isRemote(task.row.server);

  const canRerun = ({ code }: Failure): boolean =>
    code === 'lost' && task.row.attempt < MAX_ATTEMPTS && (mayRerun ?? world.mayRerun(task.row));

  /** Nothing was sent, or nothing is lost: its server will be back. */
  async function hold(): Promise<void> {
    if (task.row.phase === 'dispatching' && task.row.upstream === null) await requeue(1, 'it waits for its server');
    if (isLeaving) await release();
    else if (!isOver) world.onHeld(live);
  }

  async function requeue(unsent: 0 | 1, message: string): Promise<void> {
    if (!(await surely(() => rows.requeue(task.row, unsent, message)))) return lost();
    const attempt = task.row.attempt - unsent;
    task.row = { ...task.row, phase: 'queued', status: 'working', attempt, message, upstream: null };
    standing.forget();
  }

  async function end(given: Outcome): Promise<void> {
    isEnding = true;
    const told = isLeaving ? stopped(given, task.row) : given;
    const outcome = ofAll(withinBytes(told, world.settings().maxResultBytes), task.row);
    const ending = endingOf(outcome);
    const ended: TaskRow = { ...task.row, ...ending, phase: 'ended' };
    const isOurs = await surely(() => world.end(ended, outcome));
    failpoint('task.committed');
    if (!isOurs) return lost();
    task.row = ended;
    isOver = true;
    actor.send(ending.status);
    gone();
  }

  /** It was cancelled or adopted, or is deleted. What its server still does for nobody is stopped; not what others follow. */
  function lost(): void {
    if (isOver) return;
    const isFollowed = task.row.upstream !== null && rows.find(task.row.id)?.phase === 'dispatching';
    leaveTo(isFollowed ? HANDED_OVER : 'its task is over');
    gone();
  }

  function leaveTo(why: string): void {
    isOver = true;
    actor.stop();
    world.cancel(task.row.principal, task.row.id, why);
  }

  /** Another daemon may go on with it. */
  async function release(): Promise<void> {
    if (isOver) return;
    leaveTo(task.row.upstream === null ? 'troupe stops' : HANDED_OVER);
    await rows.release(task.row).catch(world.onTrouble);
    gone();
  }

  /** A bug of ours is no reason to keep a task for ever: whoever looks next finds it as one that was interrupted. */
  function broken(error: unknown): void {
    world.onTrouble(error);
    void release();
  }

  function gone(): void {
    goodbye();
    world.onOver(live);
  }

  const surely = (write: () => Promise<boolean>) => patiently(write, () => isOver, world.onTrouble);

  const live = {
    get row(): TaskRow {
      return task.row;
    },
    run,
    lost,
    release,
    token,
    over,
    asked: standing.asked,
    /** It ends without having been sent again: nobody can tell what became of it. */
    interrupted: (outcome: Outcome): void => void settled(outcome).catch(broken),
    /** Its row says so already. */
    cancelled(found: TaskRow): void {
      if (isOver) return;
      task.row = found;
      actor.send('cancelled');
      leaveTo('its task was cancelled');
      gone();
    },
    /** Soon there are no servers any more: what could be run again then is for whoever comes next. */
    leave(): void {
      isLeaving = true;
      mayRerun = world.mayRerun(task.row);
    },
  };
  return live;
}

/** The host may come for the result, and is asked then: nobody else is for a while. */
const PATIENCE = { withdraw: () => {}, complete: () => {} };
