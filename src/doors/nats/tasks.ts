// The subjects on which callers see their tasks, fetch results and end them: their own, and nobody else's. Whose a task is, is
// the tree they publish on; the task of another is answered exactly like one that does not exist.

import { Empty, type Msg } from 'nats';
import { json, toHeaders } from '../../bus/frames.ts';
import type { TaskRequest } from '../../bus/subjects.ts';
import { OPERATIONS, type Ports } from '../../operations/operations.ts';
import { taskPage } from './pages.ts';
import { callerOf, cursorOf, treeOf } from './requests.ts';
import { type FamilyOptions, type Responder, SILENCE_MS, succeeded } from './responder.ts';
import { type OpenAsk, taskResults } from './results.ts';

type TaskPorts = Pick<Ports, 'tasks'> & {
  /** The open questions of a caller: a stream of a result tells those that its task waits for. */
  readonly inbox: { list(principal: string): readonly OpenAsk[] };
};

/** Room for headers and for what the client wraps around a payload. */
const PAGE_ROOM = 1_024;
/** Marks a `task.get` by which one state directory asks whether another knows a task: only one that does answers. */
const PROBE = 'Troupe-Probe';

export function serveTasks(responder: Responder, options: FamilyOptions<TaskPorts>): void {
  const { subjects, daemon, family, ports } = options;
  const results = taskResults(responder, options);

  async function serve(request: TaskRequest, msg: Msg) {
    const { verb, id, caller } = request;
    if (msg.headers?.get(PROBE) === family) return undefined;
    if (!msg.reply && verb !== 'cancel') return undefined; // nobody would hear it
    if (verb === 'result') return results.answer(request, msg);
    if (verb === 'list') {
      const body = await responder.reply.requestBody(msg);
      return taskPage(ports.tasks, caller, cursorOf(body), responder.room(PAGE_ROOM));
    }
    const operation = verb === 'get' ? OPERATIONS.taskGet : OPERATIONS.taskCancel;
    return succeeded(json(await operation.run(ports, { id }, callerOf(request))));
  }

  /**
   * A daemon that knows a task answers `get` at once, but may take hours with its result: asked by `get`, so that a refusal of
   * ours does not come before that result.
   */
  async function isElsewhere(request: TaskRequest, msg: Msg): Promise<boolean> {
    if (msg.headers?.has(PROBE)) return true; // whoever knows the task answers the probe
    if (request.verb === 'get') return false;
    const subject = subjects.task('get', request.id, treeOf(request));
    const probe = { timeout: SILENCE_MS, headers: toHeaders({ [PROBE]: family }) };
    const found = await responder.nc.request(subject, Empty, probe).catch(() => undefined); // nobody knows it
    return found !== undefined && !found.headers?.has('Nats-Service-Error-Code');
  }

  responder.serve<TaskRequest>({
    patterns: subjects.taskPatterns(daemon, family),
    parse: subjects.parseTask,
    serve,
    elsewhere: ['unknownName', 'busy'],
    isElsewhere,
    unknown: (request) => `there is no task ${request.id}; ${subjects.taskList(treeOf(request))} has those there are`,
  });
}
