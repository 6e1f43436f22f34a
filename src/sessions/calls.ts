// The calls of one session that are in flight: each is sent to its server, and what the server says of it comes back on
// the line of that very request.

import { type Ask, type Call, NEVER_TOLD } from '../calls/call.ts';
import { Transients } from '../calls/transients.ts';
import type { View } from '../catalog/view.ts';
import { errorFrame, resultFrame } from '../protocol/compose.ts';
import { withTextAt } from '../protocol/edit.ts';
import { codecOf } from '../protocol/eras.ts';
import { errorObject, TroupeError } from '../protocol/failures.ts';
import { textAt } from '../protocol/json.ts';
import { isForeignRequest } from '../protocol/methods.ts';
import { progressTokenOf } from '../protocol/signals.ts';
import { withoutTask } from '../protocol/tasks.ts';
import { sessionHolder } from '../servers/instances.ts';
import type { Line } from './host.ts';
import type { Identity, Presence, SessionPorts } from './ports.ts';
import type { OpenLine, Questions } from './questions.ts';
import { isMany } from './scopes.ts';
import { targetOf, withAskedUris } from './targets.ts';
import { createTelling, NOTICE } from './telling.ts';

/** A request of the host: its id as raw JSON, and the line for its answer. */
export type Beginning = {
  readonly id: string;
  readonly line: Line;
};
export type CallsOptions = {
  readonly ports: SessionPorts;
  readonly identity: Identity;
  readonly presence: Presence;
  readonly view: () => View;
  readonly questions: Questions;
  readonly interests: { isTold(): boolean };
  /** What has to be in place before that server is called; undefined when it is. */
  readonly ready: (server: string) => Promise<unknown> | undefined;
  readonly isLoud: (server: string, level: string) => boolean;
  /** Whether the host was told that it may hear log messages here. */
  readonly hearsLogs: () => boolean;
};

export function createCalls(options: CallsOptions) {
  const { ports, identity, presence, view, questions, interests, ready, isLoud, hearsLogs } = options;
  const { id: session, principal, door, era, scope } = identity;
  const { hasTasks } = codecOf(era);
  /** By the host's id of the request, our own id of the call. */
  const inFlight = new Transients<string, string>();
  const prefix = sessionHolder(session).slice(8);
  let sequence = 0;

  const hearsNotices = (server: string): boolean => hearsLogs() && isLoud(server, NOTICE);
  /** One for all calls: it is asked only when somebody has to be asked. */
  const isTold = ({ server, params }: Call): boolean => progressTokenOf(params) !== undefined || hearsNotices(server);

  function begin(method: string, written: Buffer, { id, line }: Beginning): void {
    const isTool = method === 'tools/call';
    // A host without tasks must not get one, also of a server that would make it: the server does not see `task`.
    const given = isTool && !hasTasks ? withoutTask(written) : written;
    const { server, name, params } = isForeignRequest(method)
      ? { server: scope, name: '', params: given }
      : targetOf(view(), method, given);
    const asked = params !== given && method === 'resources/read' ? textAt(given, ['uri']) : undefined;
    if (isTool && hasTasks) mustNotBeTask(ports, identity, server, name);
    if (inFlight.has(id)) throw new TroupeError('invalid', `a request with the id ${id.slice(0, 64)} is in flight`);
    const token = progressTokenOf(given);
    const open: OpenLine = { line, isOpen: true };
    const awaited = ready(server);
    let telling: ReturnType<typeof createTelling> | undefined;
    const call: Call = {
      requestId: `${prefix}-${++sequence}`,
      server,
      method,
      name,
      params,
      principal,
      door,
      holder: session,
      isBound: interests.isTold(),
      ...(awaited && { ready: awaited }),
      isCancellable: true,
      handlesUrls: questions.handlesUrls,
      ...(questions.handlesUrls && { onElicited: questions.elicited }),
      onAsk: (ask) => {
        const question = isMany(scope) ? named(server, ask) : ask;
        return question && questions.ask(open, question);
      },
      isTold: line.isMute ? NEVER_TOLD : isTold,
      isAbsent: line.isAbsent,
      onSignal: (signal) => {
        telling ??= createTelling({
          era,
          token,
          isLoud: (level) => isLoud(server, level),
          hearsNotices: () => hearsNotices(server),
          tell: line.tell,
        });
        telling(signal);
      },
      settle(outcome) {
        end(id);
        open.isOpen = false;
        if (!outcome.ok) return line.answer(errorFrame(id, errorObject(outcome.failure)));
        const { result } = outcome;
        line.answer(resultFrame(id, asked === undefined ? result : withAskedUris(result, name, asked)));
      },
    };
    submit(call, id);
  }

  function submit(call: Call, id: string): void {
    let isTaken = false;
    inFlight.set(id, call.requestId);
    presence.enter();
    try {
      isTaken = ports.fleet.submit(call);
    } finally {
      if (!isTaken) end(id);
    }
    if (!isTaken) throw new TroupeError('unknownServer', `server ${call.server} was removed`);
  }

  function end(id: string): void {
    if (inFlight.delete(id)) presence.leave();
  }

  return {
    begin,
    /** False when no such request is in flight here. */
    cancel(id: string, why = 'the caller cancelled it'): boolean {
      const requestId = inFlight.get(id);
      return requestId !== undefined && ports.fleet.cancel(principal, requestId, why);
    },
    callerIs(where: 'back' | 'gone', id: string): void {
      const requestId = inFlight.get(id);
      if (requestId !== undefined) ports.fleet.callerIs(where, principal, requestId);
    },
    cancelAll(why: string): void {
      for (const requestId of inFlight) ports.fleet.cancel(principal, requestId, why);
    },
  };
}

function mustNotBeTask({ scopes }: SessionPorts, { id: session, principal }: Identity, server: string, tool: string) {
  if (scopes.taskSupport({ principal, session }, server, tool) !== 'required') return;
  throw new TroupeError(
    'unsupported',
    `the tool ${tool.slice(0, 128)} of ${server} runs as a task only; call it with task`,
  );
}

/** At an endpoint of many servers a person cannot know whose question is shown, unless its words say so. */
export function named(server: string, ask: Ask): Ask | undefined {
  if (ask.isOurs || ask.method !== 'elicitation/create') return ask;
  const message = textAt(ask.params, ['message']);
  const params = message !== undefined && withTextAt(ask.params, ['message'], `${server} asks: ${message}`);
  return params ? { ...ask, params } : undefined;
}
