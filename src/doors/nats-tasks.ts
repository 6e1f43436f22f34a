// The subjects on which callers see their tasks, fetch results and end them: their own, and nobody else's. Whose they are is
// the tree they publish on; the task of another is answered exactly like one that there is not.

import { setTimeout as wait } from 'node:timers/promises';
import { Empty, type Msg, type NatsConnection } from 'nats';
import { json, maxPayload, toHeaders } from '../bus/frames.ts';
import { isInbox, replies } from '../bus/replies.ts';
import type { Subjects, TaskRequest } from '../bus/subjects.ts';
import type { Outcome, TaskView } from '../calls/call.ts';
import { failureOf, TroupeError } from '../protocol/failures.ts';
import type { Tasks } from '../tasks/task.ts';
import { type OpenAsk, taskResults } from './nats-results.ts';
import { taskPage } from './nats-task-pages.ts';
import { cursorOf, wantsStream } from './requests.ts';

export type NatsTasksOptions = {
  readonly nc: NatsConnection;
  readonly subjects: Subjects;
  readonly daemon: string;
  /** Daemons of one state directory know the same tasks, and one of them serves a message. */
  readonly family: string;
  readonly tasks: Pick<Tasks, 'get' | 'list' | 'outcome' | 'cancel'>;
  /** The open questions of a caller, of which a stream tells those that its task waits for. */
  readonly inbox: { list(principal: string): readonly OpenAsk[] };
  readonly onTrouble: (error: unknown) => void;
  readonly keepAliveMs?: number;
};
export type NatsTasks = ReturnType<typeof natsTasks>;

/** Who does not know a task leaves those who may the first word. */
const SILENCE_MS = 500;
/** Room for headers and for what the client wraps around a payload. */
const PAGE_ROOM = 1_024;
/** The family that asks whether another knows a task; only who does answers. */
const PROBE = 'Troupe-Probe';

export function natsTasks(options: NatsTasksOptions) {
  const { nc, subjects, daemon, family, tasks, onTrouble, keepAliveMs } = options;
  const reply = replies(nc, { onLost: onTrouble, ...(keepAliveMs && { keepAliveMs }) });
  const results = taskResults({ ...options, reply });
  const busy = new Set<Promise<void>>();
  const callback = (error: Error | null, msg: Msg) => (error ? onTrouble(error) : take(msg));
  const subscriptions = subjects
    .taskPatterns(daemon, family)
    .map(({ subject, queue }) => nc.subscribe(subject, { callback, ...(queue && { queue }) }));

  function take(msg: Msg): void {
    // The daemon may publish where its caller may not: it answers to inboxes, and to nothing else.
    if (msg.reply && !isInbox(msg.reply)) return;
    if (msg.headers?.get(PROBE) === family) return;
    const arrivedAt = performance.now();
    const served = serve(msg)
      .catch((error) => refuse(msg, error, arrivedAt))
      .catch(onTrouble); // the connection went away under the reply
    busy.add(served);
    void served.finally(() => busy.delete(served));
  }

  async function serve(msg: Msg): Promise<void> {
    const request = subjects.parseTask(msg.subject);
    if (!request) throw new TroupeError('invalid', 'the subject cannot be read; see docs/SUBJECTS.md');
    const { verb, id, caller } = request;
    if (!msg.reply && verb !== 'cancel') return; // nobody would hear it
    if (verb === 'result') return results.answer(request, msg);
    if (verb === 'list') return list(caller, msg, await reply.requestBody(msg));
    return send(msg, shown(verb === 'get' ? tasks.get(id, caller) : await tasks.cancel(id, caller)));
  }

  function list(caller: string, msg: Msg, body: Buffer): Promise<void> | undefined {
    const { page, next } = taskPage(tasks, caller, cursorOf(body), maxPayload(nc) - PAGE_ROOM);
    if (next === undefined || !msg.reply) return send(msg, { ok: true, result: page, isError: false });
    const frame = wantsStream(msg) ? { 'Mcp-Frame': 'result', 'Mcp-Seq': '1' } : {};
    nc.publish(msg.reply, page, { headers: toHeaders({ ...frame, 'Troupe-Next': next }) });
    if (wantsStream(msg)) nc.publish(msg.reply, Empty);
    return undefined;
  }

  /** A caller that waits for the end of a stream gets one, whatever it asked. */
  async function send(msg: Msg, outcome: Outcome): Promise<void> {
    await (wantsStream(msg) ? reply.stream(msg, () => {}).end(outcome) : reply.answer(msg, outcome));
  }

  async function refuse(msg: Msg, error: unknown, arrivedAt: number): Promise<void> {
    const failure = failureOf(error, onTrouble);
    const request = subjects.parseTask(msg.subject);
    // One that may not be known here, or may not be looked for any more.
    const mayBeElsewhere = request?.id && (failure.code === 'unknownName' || failure.code === 'busy');
    if (!mayBeElsewhere) return send(msg, { ok: false, failure });
    if (msg.headers?.has(PROBE)) return;
    if (await isElsewhere(request)) return;
    await wait(Math.max(0, SILENCE_MS - (performance.now() - arrivedAt)));
    const message = failure.code === 'busy' ? failure.message : unknown(request);
    return send(msg, { ok: false, failure: { ...failure, message } });
  }

  /** Who knows a task answers `get` at once, but the result may take hours: then a word of ours would come before it. */
  async function isElsewhere({ verb, id, caller, node }: TaskRequest): Promise<boolean> {
    if (verb === 'get') return false;
    const subject = subjects.task('get', id, node === undefined ? { caller } : { node });
    const probe = { timeout: SILENCE_MS, headers: toHeaders({ [PROBE]: family }) };
    const found = await nc.request(subject, Empty, probe).catch(() => undefined); // nobody knows it
    return found !== undefined && !found.headers?.has('Nats-Service-Error-Code');
  }

  const unknown = ({ id, caller, node }: TaskRequest): string => {
    const list = subjects.taskList(node === undefined ? { caller } : { node });
    return `there is no task ${id}; ${list} has those there are`;
  };

  return {
    async close(): Promise<void> {
      reply.close();
      results.close();
      if (nc.isClosed()) return;
      await Promise.all(subscriptions.map((subscription) => subscription.drain()));
      // A disk may take its time with a cancellation.
      await Promise.race([Promise.all(busy), wait(4 * SILENCE_MS, undefined, { ref: false })]);
    },
  };
}

const shown = (view: TaskView): Outcome => ({ ok: true, result: json(view), isError: false });
