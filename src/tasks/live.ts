// A task that this daemon runs: its row, its actor, and the call that it makes. What the call comes to is on the disk before
// anybody hears of it; who has lost the task to a cancellation or to another daemon changes nothing any more.

import type { Call, Outcome, Signal, UpstreamTask } from '../calls/call.ts';
import { failpoint } from '../failpoints.ts';
import { failureOf, TroupeError } from '../failures.ts';
import { progressTokenOf } from '../protocol/progress-token.ts';
import type { TaskRow } from '../store/rows.ts';
import { taskActor } from './actor.ts';
import { callOf } from './call-of.ts';
import { endingOf, INPUT, isPassing, ofAll, withinBytes } from './endings.ts';
import type { Given, LiveWorld } from './live-world.ts';
import { patiently } from './patience.ts';

export type Live = ReturnType<typeof createLive>;

const PROGRESS_MS = 1_000;
/** A call that takes its daemon down with it must not do so for ever. */
const MAX_ATTEMPTS = 3;

export function createLive(world: LiveWorld, { row: first, params, canAnswer }: Given) {
  const { rows } = world;
  const token = progressTokenOf(params);
  let row = first;
  let isOver = false;
  let isEnding = false;
  let leave = (): void => {};
  /** Resolves when nothing more is written here. */
  const over = new Promise<void>((resolve) => {
    leave = resolve;
  });
  let questions = 0;
  let upstream: UpstreamTask | undefined;
  let writtenAt = Number.NEGATIVE_INFINITY;
  const actor = taskActor(row.status, () => world.onStatus(live), world.onTrouble);

  /** It goes to its server, or goes on with what the server made of it. */
  function run(): void {
    if (isOver) return;
    const { server } = row;
    const call: Call = {
      ...callOf(row, params, rows.leftMs(row)),
      ...(row.phase === 'queued' && { reserve }),
      ...{ onUpstream, onSignal, settle: (outcome) => void settled(outcome).catch(broken) },
      onAsk: ({ method, params: asked }) => (canAnswer?.(method, asked) ? PATIENCE : undefined),
    };
    try {
      if (!world.submit(call)) throw new TroupeError('unknownServer', `server ${server} is not configured any more`);
    } catch (error) {
      settled({ ok: false, failure: { ...failureOf(error, world.onTrouble), server } }).catch(broken);
    }
  }

  /** On the disk first, so that nobody sends it again. What was reserved once stays so, also when it is sent back. */
  async function reserve(): Promise<boolean> {
    if (row.phase === 'dispatching') return !isOver;
    const isOurs = await surely(() => rows.dispatch(row));
    failpoint('task.reserved');
    if (!isOurs) lost();
    else row = { ...row, phase: 'dispatching', attempt: row.attempt + 1 };
    return isOurs && !isOver;
  }

  function onUpstream(task: UpstreamTask): void {
    if (task.taskId !== row.upstream) {
      row = { ...row, upstream: task.taskId };
      surely(() => rows.setUpstream(row, task.taskId)).catch(broken);
    }
    upstream = task;
    review();
  }

  /** Progress is kept now and then, for those who look from elsewhere. */
  function onSignal(signal: Signal): void {
    if (isOver) return;
    world.onSignal(live, signal);
    if (signal.type !== 'progress' || performance.now() - writtenAt < PROGRESS_MS) return;
    writtenAt = performance.now();
    const { type: _, ...progress } = signal;
    row = { ...row, progress: JSON.stringify(progress) };
    rows.setProgress(row, progress);
  }

  /** Whether somebody must be asked, and what the server says of it. */
  function review(): void {
    if (isOver || isEnding) return;
    const isWaiting = questions > 0 || upstream?.status === 'input_required';
    const status = isWaiting ? 'input_required' : 'working';
    const message = (isWaiting && questions > 0 ? INPUT : upstream?.statusMessage) ?? null;
    if (status === row.status && message === row.message) return;
    const isSame = status === row.status;
    row = { ...row, status, message, updated_at: Date.now() };
    surely(() => rows.setStatus(row))
      .then((isOurs) => {
        if (!isOurs) return lost();
        if (isSame) world.onStatus(live);
        else actor.send(isWaiting ? 'input.required' : 'input.given');
      })
      .catch(broken);
  }

  async function settled(outcome: Outcome): Promise<void> {
    if (isOver || isEnding) return;
    failpoint('task.answered');
    if (!outcome.ok && outcome.failure.delivery === 'not sent' && isPassing(outcome.failure)) return hold();
    if (!outcome.ok && outcome.failure.code === 'lost' && row.attempt < MAX_ATTEMPTS && world.mayRerun(row))
      return again(outcome.failure.message);
    await end(outcome);
  }

  /** Nothing was sent, so nothing is lost: its server will be back. */
  async function hold(): Promise<void> {
    if (row.phase === 'dispatching') await requeue(1, 'it waits for its server');
    if (!isOver) world.onHeld(live);
  }

  async function again(why: string): Promise<void> {
    await requeue(0, `it is run again: ${why}`);
    run();
  }

  async function requeue(unsent: 0 | 1, message: string): Promise<void> {
    if (!(await surely(() => rows.requeue(row, unsent, message)))) return lost();
    row = { ...row, phase: 'queued', status: 'working', attempt: row.attempt - unsent, message, upstream: null };
    upstream = undefined;
  }

  async function end(given: Outcome): Promise<void> {
    isEnding = true;
    const outcome = ofAll(withinBytes(given, world.settings().maxResultBytes), row);
    const ending = endingOf(outcome);
    const ended: TaskRow = { ...row, ...ending, phase: 'ended' };
    const isOurs = await surely(() => world.end(ended, outcome));
    failpoint('task.committed');
    if (!isOurs) return lost();
    row = ended;
    isOver = true;
    actor.send(ending.status);
    gone();
  }

  /** It was cancelled or adopted, or is deleted. What its server still does for nobody is stopped; not what others follow. */
  function lost(): void {
    if (isOver) return;
    isOver = true;
    actor.stop();
    const isFollowed = row.upstream !== null && rows.find(row.id)?.phase === 'dispatching';
    if (!isFollowed) world.cancel(row.principal, row.id, 'its task is over');
    gone();
  }

  /** A bug of ours is no reason to keep a task for ever: whoever looks next finds it as one that was interrupted. */
  function broken(error: unknown): void {
    world.onTrouble(error);
    if (!isOver) void live.release().then(gone);
  }

  function gone(): void {
    leave();
    world.onOver(live);
  }

  const surely = (write: () => Promise<boolean>) => patiently(write, () => isOver, world.onTrouble);

  const live = {
    get row(): TaskRow {
      return row;
    },
    ...{ run, lost, token, over },
    /** A question was opened on its behalf, or is done with. */
    asked(change: 1 | -1): void {
      questions += change;
      review();
    },
    /** It ends without having been sent again: nobody can tell what became of it. */
    interrupted: (outcome: Outcome): void => void settled(outcome).catch(broken),
    /** Its row says so already. */
    cancelled(found: TaskRow): void {
      if (isOver) return;
      row = found;
      isOver = true;
      actor.send('cancelled');
      world.cancel(row.principal, row.id, 'its task was cancelled');
      gone();
    },
    /** Another daemon may go on with it; true when it is free. */
    async release(): Promise<boolean> {
      isOver = true;
      actor.stop();
      leave();
      return rows.release(row).catch(() => false);
    },
  };
  return live;
}

/** The host may come for the result, and is asked then: nobody else is for a while. */
const PATIENCE = { withdraw: () => {}, complete: () => {} };
