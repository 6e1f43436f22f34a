// One host's session: what each of its messages asks for, and what it is told. The row of the session is all that another
// daemon needs to go on with it.

import type { Answer } from '../calls/call.ts';
import type { View } from '../catalog/view.ts';
import { errorFrame, notificationFrame, resultFrame } from '../protocol/compose.ts';
import { codecOf } from '../protocol/eras.ts';
import { TroupeError } from '../protocol/failures.ts';
import type { Frame } from '../protocol/frame.ts';
import { member } from '../protocol/json.ts';
import { isForeignNotification, isForeignRequest, rowOf } from '../protocol/methods.ts';
import { isLoud as isLoudEnough } from '../protocol/signals.ts';
import { sessionHolder } from '../servers/instances.ts';
import type { Member } from '../servers/member.ts';
import { mayPass } from '../servers/policy.ts';
import { allowance } from '../telemetry/allowance.ts';
import { type Beginning, createCalls } from './calls.ts';
import { HEARS_ON, type Line } from './host.ts';
import { createHostRoots } from './host-roots.ts';
import { createHostTasks } from './host-tasks.ts';
import { createInterests, updateFor } from './interests.ts';
import { createLists } from './lists.ts';
import type { Identity, Presence, SessionPorts } from './ports.ts';
import { createQuestions } from './questions.ts';
import { isMany, type Viewer } from './scopes.ts';
import type { LocalStreams } from './streams.ts';
import { errorOf, rpcError } from './targets.ts';

export type LocalSession = ReturnType<typeof createLocalSession>;

const EMPTY = Buffer.from('{}');
/** Notifications of a host that only its server knows; further ones are dropped. */
const NOTICES_PER_SECOND = 100;

type Parts = ReturnType<typeof partsOf>;
type FrameOf<Kind extends Frame['kind']> = Extract<Frame, { kind: Kind }>;

export function createLocalSession(ports: SessionPorts, identity: Identity, presence: Presence) {
  const { id: session, principal, scope } = identity;
  const parts = partsOf(ports, identity, presence);
  const { viewer, view, outlet, hostRoots, interests, lists, calls, tasks } = parts;
  const { deliver, hasListener } = outlet;

  const isServedBy = (process: Member): boolean =>
    ports.fleet.isHeardBy(process, principal, session) &&
    ports.scopes.serversOf(scope)?.includes(process.server) === true;

  return {
    identity,
    receive: (frame: Frame, line: Line): void => receive(parts, frame, line),
    callerIs: calls.callerIs,
    takeOver: (frame: Frame): void => takeOver(parts, frame),
    isServedBy,
    tellTask: tasks.tell,
    definitionOf: lists.definitionOf,
    attach(send: (frame: Buffer) => void): () => void {
      const detach = outlet.attach(send);
      hostRoots.attached();
      return detach;
    },
    /** Tells the host which of its lists have changed since it last read them or was last told. */
    tellChanges(): void {
      for (const kind of lists.changed()) deliver(notificationFrame(`notifications/${kind}/list_changed`));
    },
    tellUpdate(process: Member, uri: string, params: Buffer): void {
      if (!interests.hears(process.server, uri) || !isServedBy(process)) return;
      const told = updateFor(view(), process.server, uri, params);
      if (told) deliver(notificationFrame('notifications/resources/updated', told));
    },
    /** What only the server knows, and only where the host has that server alone. */
    tellForeign(process: Member, method: string, params: Buffer): void {
      if (scope === process.server && hasListener() && isServedBy(process)) deliver(notificationFrame(method, params));
    },
    tellLog(process: Member, level: string, params: Buffer): void {
      if (!hasListener() || !isServedBy(process) || !parts.isLoud(process.server, level)) return;
      deliver(notificationFrame('notifications/message', params));
    },
    restore(): Promise<void> {
      hostRoots.due(); // the roots may have changed while the session was not in this daemon's memory
      return interests.restore();
    },
    level: interests.level,
    /** Whether it listens to something, or a server keeps a process for it alone. */
    isNeeded(): boolean {
      const own = sessionHolder(session);
      return interests.count() > 0 || ports.scopes.members(viewer).some(({ principal: whose }) => whose === own);
    },
    /** Requests in flight are cancelled, since no host will read the answers; tasks go on. */
    async dispose(why: string): Promise<void> {
      calls.cancelAll(why);
      tasks.leaveAll(why);
      hostRoots.dispose();
      await interests.dispose();
      ports.scopes.forgetSession(session);
      // A task would be lost with the process it runs in, so the last task takes the processes along (`taskGone` of hosting.ts).
      if (!ports.tasks.isRunningFor(session)) ports.fleet.release(session);
    },
  };
}

function partsOf(ports: SessionPorts, identity: Identity, presence: Presence) {
  const { id: session, principal, scope, era } = identity;
  const { world, fleet, roots } = ports;
  const viewer: Viewer = { scope, principal, session, knowsTasks: codecOf(era).hasTasks };
  const view = viewOf(ports, viewer);
  const outlet = outletOf(identity, ports.streams);
  const { deliver, hasListener, connection } = outlet;
  const questions = createQuestions(identity, deliver, world);
  const interests = createInterests(ports, viewer, identity.level);
  /** A host that never asked for a level hears what the server was configured to say, whatever other hosts have asked for. */
  const isLoud = (server: string, level: string): boolean =>
    isLoudEnough(level, interests.level() ?? fleet.member(server)?.config.settings.logLevel);
  const hostRoots = createHostRoots({
    world,
    roots,
    identity,
    connection,
    warn: (frame) => !hearsLogs() || !isLoudEnough('warning', interests.level()) || heard(frame),
  });
  /** The roots of the host, and the server's knowledge of them. */
  const ready = (server: string): Promise<void> | undefined =>
    hostRoots.known()?.then(() => rootsTold(ports, viewer, [server]));
  const heard = (frame: Buffer): boolean => {
    if (hasListener()) deliver(frame);
    return hasListener();
  };
  const hearsLogs = (): boolean => saysLogs(ports, viewer);
  return {
    ports,
    identity,
    viewer,
    view,
    outlet,
    questions,
    interests,
    isLoud,
    hostRoots,
    notices: allowance(NOTICES_PER_SECOND),
    lists: createLists(ports, viewer),
    calls: createCalls({ ports, identity, presence, view, questions, interests, ready, isLoud, hearsLogs }),
    tasks: createHostTasks({ ports, identity, presence, view, questions, isLoud, viewer, deliver, hasListener }),
  };
}

// ── Messages of the host ─────────────────────────────────────────────────────

function receive(parts: Parts, frame: Frame, line: Line): void {
  switch (frame.kind) {
    case 'request':
      return request(parts, frame, line);
    case 'notification':
      return notified(parts, frame);
    case 'result':
      return answered(parts, frame.id, { ok: true, result: frame.result }, frame);
    case 'error':
      return answered(parts, frame.id, { ok: false, error: frame.error }, frame);
    case 'batch':
      return line.answer(errorFrame('null', rpcError(-32600, 'send one message at a time')));
    case 'malformed':
      return line.answer(errorFrame(frame.id ?? 'null', rpcError(frame.code, frame.why)));
  }
}

function request(parts: Parts, { id, method, params = EMPTY }: FrameOf<'request'>, line: Line): void {
  const refuse = (error: unknown) => line.answer(errorFrame(id, errorOf(error)));
  parts.hostRoots.requested(line);
  try {
    const work = perform(parts, method, params, { id, line });
    work?.then((result) => line.answer(resultFrame(id, result)), refuse);
  } catch (error) {
    refuse(error);
  }
}

/** The result, unless a call was begun that answers on its line. */
function perform(parts: Parts, method: string, params: Buffer, beginning: Beginning): Promise<Buffer> | undefined {
  const { tasks, calls, lists, interests, view } = parts;
  const { verb, lists: listed, mayBeTask } = rowOf(method) ?? {};
  if (verb && mayBeTask && tasks.isWanted(params)) {
    const known = parts.hostRoots.known();
    return known ? known.then(() => rootsToldToAll(parts)).then(() => tasks.create(params)) : tasks.create(params);
  }
  if (verb) return void calls.begin(method, params, beginning);
  if (listed) return lists.page(listed.kind, params);
  if (isForeignRequest(method)) return void pass(parts, method, params, beginning);
  switch (method) {
    case 'resources/subscribe':
      return interests.subscribe(view(), params);
    case 'resources/unsubscribe':
      return interests.unsubscribe(view(), params);
    case 'logging/setLevel':
      return interests.setLevel(params);
    case 'ping':
      return Promise.resolve(EMPTY);
    default:
      return tasks.perform(method, params, beginning);
  }
}

/** Which server is meant by a method that only a server knows is plain only where there is one. */
function pass({ calls, viewer }: Parts, method: string, params: Buffer, beginning: Beginning): void {
  if (isMany(viewer.scope))
    throw new TroupeError(
      'unsupported',
      `MCP has no method ${method.slice(0, 60)}; one that a server has of its own is sent at /mcp/<server>`,
    );
  calls.begin(method, params, beginning);
}

function notified(parts: Parts, frame: FrameOf<'notification'>): void {
  const { method, params = EMPTY } = frame;
  if (method === 'notifications/initialized' || method === 'notifications/roots/list_changed')
    return parts.hostRoots.due();
  if (isForeignNotification(method)) return passNotice(parts, method, params);
  if (method !== 'notifications/cancelled') return;
  const id = member(params, 'requestId')?.toString();
  if (id !== undefined && !hasStopped(parts, id)) handOver(parts, frame);
}

/** To the process of the session, if it is there to hear it; nobody would be told that it is not. */
function passNotice({ ports, viewer, notices }: Parts, method: string, params: Buffer): void {
  const { scope, principal, session } = viewer;
  const first = isMany(scope) ? undefined : ports.fleet.knownFor(scope, principal, session);
  const process = first?.homes.of(session) ?? first;
  if (process && mayPass(process, method) && notices.take()) process.notify?.(method, params);
}

function answered(parts: Parts, id: string, answer: Answer, frame: Frame): void {
  if (!hasTaken(parts, id, answer)) handOver(parts, frame);
}

/** A message from another daemon, where nothing waits for it. */
function takeOver(parts: Parts, frame: Frame): void {
  if (frame.kind === 'result') hasTaken(parts, frame.id, { ok: true, result: frame.result });
  else if (frame.kind === 'error') hasTaken(parts, frame.id, { ok: false, error: frame.error });
  else if (frame.kind === 'notification')
    hasStopped(parts, member(frame.params ?? EMPTY, 'requestId')?.toString() ?? '');
}

const hasStopped = ({ calls, tasks }: Parts, id: string): boolean => calls.cancel(id) || tasks.leave(id);

const hasTaken = ({ hostRoots, questions }: Parts, id: string, answer: Answer): boolean =>
  hostRoots.answered(id, answer) || questions.answered(id, answer);

const handOver = ({ ports, identity }: Parts, frame: Frame): void =>
  ports.handOver(identity.id, identity.principal, frame);

// ── The roots of the host, before its calls ──────────────────────────────────

/** Resolves when the processes that a call may go to know the roots, or have had their time to ask. */
async function rootsTold({ fleet, roots }: SessionPorts, viewer: Viewer, servers: readonly string[]): Promise<void> {
  const firsts = servers.flatMap((server) => fleet.knownFor(server, viewer.principal, viewer.session) ?? []);
  await Promise.all(firsts.flatMap((first) => (first.pool?.processes() ?? [first]).map((each) => roots.told(each))));
}

const rootsToldToAll = ({ ports, viewer }: Parts): Promise<void> =>
  rootsTold(ports, viewer, ports.scopes.serversOf(viewer.scope) ?? []);

/** Whether the host was told that log lines may come: where troupe speaks for many servers they do, from troupe itself. */
function saysLogs({ fleet }: SessionPorts, { scope, principal, session }: Viewer): boolean {
  const facts = isMany(scope) ? undefined : fleet.knownFor(scope, principal, session)?.facts;
  return !facts || facts.capabilities.logging !== undefined; // one that has not said what it can do may log
}

// ── What the host sees, and where it hears ───────────────────────────────────

/** Asked for with every call, so kept until the configuration changes. */
function viewOf({ scopes }: SessionPorts, viewer: Viewer): () => View {
  let epoch = scopes.epoch;
  let view = scopes.viewFor(viewer);
  return () => {
    if (epoch === scopes.epoch) return view;
    epoch = scopes.epoch;
    view = scopes.viewFor(viewer);
    return view;
  };
}

/** The way to the host for messages that belong to no request: its connections, or its standing stream. */
type Outlet = {
  deliver(frame: Buffer): void;
  /** Whether a message would be read. A stream that was never opened has no reader to keep log lines for. */
  hasListener(): boolean;
  attach(send: (frame: Buffer) => void): () => void;
  /** The newest connection; undefined while the host has none. */
  connection(): ((frame: Buffer) => void) | undefined;
};

function outletOf({ id, door }: Identity, streams: LocalStreams): Outlet {
  const attached = new Set<(frame: Buffer) => void>();
  const isStream = HEARS_ON[door] === 'stream';
  const deliver = (frame: Buffer): void => {
    for (const send of attached) send(frame);
  };
  return {
    attach(send: (frame: Buffer) => void): () => void {
      attached.add(send);
      return () => attached.delete(send);
    },
    connection: () => [...attached].at(-1),
    deliver: isStream ? (frame) => streams.tell(id, frame) : deliver,
    hasListener: isStream ? () => streams.isRead(id) : () => attached.size > 0,
  };
}
