// One host's session: what each of its messages asks for, and what it is told. Nothing of a call lives here but the id by
// which the host may cancel it; the row of the session is all that the next daemon needs to go on with it.

import type { Answer } from '../calls/call.ts';
import type { View } from '../catalog/view.ts';
import { errorFrame, notificationFrame, resultFrame } from '../protocol/compose.ts';
import { type ClientCapabilities, codecOf, type Era } from '../protocol/eras.ts';
import type { Frame } from '../protocol/frame.ts';
import { member } from '../protocol/json.ts';
import { rowOf } from '../protocol/methods.ts';
import { isLoud, type Level } from '../protocol/signals.ts';
import { sessionHolder } from '../servers/instances.ts';
import type { Member } from '../servers/member.ts';
import { type Beginning, createCalls } from './calls.ts';
import type { HostSession, Line } from './host.ts';
import { createInterests } from './interests.ts';
import { createLists } from './lists.ts';
import { createQuestions } from './questions.ts';
import { errorOf, rpcError } from './refusals.ts';
import { createHostRoots } from './roots.ts';
import type { Viewer } from './scopes.ts';
import { createTasks } from './tasks.ts';
import type { World } from './world.ts';

export type Identity = Pick<HostSession, 'id' | 'principal' | 'door' | 'scope' | 'era'> & {
  readonly era: Era;
  readonly capabilities: ClientCapabilities;
  readonly level: Level | undefined;
};
export type LocalSession = ReturnType<typeof createSession>;

const EMPTY = Buffer.from('{}');

export function createSession(world: World, identity: Identity) {
  const { id: session, principal, scope } = identity;
  const viewer = { scope, principal, session, knowsTasks: codecOf(identity.era).hasTasks };
  const view = viewOf(world, viewer);
  const attached = new Set<(frame: Buffer) => void>();
  const questions = createQuestions(identity, deliver);
  const hostRoots = createHostRoots({ roots: world.roots, identity, connection: () => [...attached].at(-1) });
  const interests = createInterests(world, viewer, identity.level);
  const lists = createLists(world, viewer);
  const shared = { world, identity, view, questions, isLoud: hears };
  const calls = createCalls(shared);
  const tasks = createTasks({ ...shared, viewer, deliver, hasListener });

  function receive(frame: Frame, line: Line): void {
    switch (frame.kind) {
      case 'request':
        return request(frame.id, frame.method, frame.params ?? EMPTY, line);
      case 'notification':
        return notified(frame.method, frame.params ?? EMPTY, frame);
      case 'result':
        return answered(frame.id, { ok: true, result: frame.result }, frame);
      case 'error':
        return answered(frame.id, { ok: false, error: frame.error }, frame);
      case 'batch':
        return line.answer(errorFrame('null', rpcError(-32600, 'send one message at a time')));
      case 'malformed':
        return line.answer(errorFrame(frame.id ?? 'null', rpcError(frame.code, frame.why)));
    }
  }

  function request(id: string, method: string, params: Buffer, line: Line): void {
    const refuse = (error: unknown) => line.answer(errorFrame(id, errorOf(error)));
    hostRoots.requested(line);
    try {
      const work = perform(method, params, { id, line });
      work?.then((result) => line.answer(resultFrame(id, result)), refuse);
    } catch (error) {
      refuse(error);
    }
  }

  /** The result, unless the call that was begun brings it itself. */
  function perform(method: string, params: Buffer, beginning: Beginning): Promise<Buffer> | undefined {
    const { verb, lists: listed, mayBeTask } = rowOf(method) ?? {};
    if (verb && mayBeTask && tasks.isWanted(params)) return tasks.create(params);
    if (verb) return void calls.begin(method, params, beginning);
    if (listed) return lists.page(listed.kind, params);
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

  function notified(method: string, params: Buffer, frame: Frame): void {
    if (method === 'notifications/initialized' || method === 'notifications/roots/list_changed') return hostRoots.due();
    if (method !== 'notifications/cancelled') return;
    const id = member(params, 'requestId')?.toString();
    if (id !== undefined && !isStopped(id)) world.handOver(session, principal, frame);
  }

  const isStopped = (id: string): boolean => calls.cancel(id) || tasks.leave(id);

  function answered(id: string, answer: Answer, frame: Frame): void {
    if (!isOurs(id, answer)) world.handOver(session, principal, frame);
  }

  const isOurs = (id: string, answer: Answer): boolean =>
    hostRoots.answered(id, answer) || questions.answered(id, answer);

  const isServedBy = (process: Member): boolean =>
    world.fleet.knownFor(process.server, principal, session) === process &&
    world.scopes.serversOf(scope)?.includes(process.server) === true;

  /** Who never asked for a level hears what that server was configured to say, whatever others have asked for. */
  function hears(server: string, level: string): boolean {
    return isLoud(level, interests.level ?? world.fleet.member(server)?.config.settings.logLevel);
  }

  /** A stream that was never opened has no reader to keep log lines for. */
  function hasListener(): boolean {
    return identity.door === 'http' ? world.streams.isRead(session) : attached.size > 0;
  }

  function deliver(frame: Buffer): void {
    if (identity.door === 'http') world.streams.tell(session, frame);
    else for (const send of attached) send(frame);
  }

  return {
    ...{ identity, receive, deliver, isServedBy, tellTask: tasks.tell, definitionOf: lists.definitionOf },
    /** A message that another daemon had no use for; if neither have we, nobody has. */
    takeOver(frame: Frame): void {
      if (frame.kind === 'result') isOurs(frame.id, { ok: true, result: frame.result });
      else if (frame.kind === 'error') isOurs(frame.id, { ok: false, error: frame.error });
      else if (frame.kind === 'notification') isStopped(member(frame.params ?? EMPTY, 'requestId')?.toString() ?? '');
    },
    attach(send: (frame: Buffer) => void): () => void {
      attached.add(send);
      hostRoots.attached();
      return () => attached.delete(send);
    },
    /** Tells the host which of its lists have changed since it last read them or was last told. */
    tellChanges(): void {
      for (const kind of lists.changed()) deliver(notificationFrame(`notifications/${kind}/list_changed`));
    },
    tellUpdate(process: Member, uri: string, params: Buffer): void {
      if (!interests.hears(process.server, uri) || !isServedBy(process)) return;
      const told = interests.updateFor(view(), process.server, uri, params);
      if (told) deliver(notificationFrame('notifications/resources/updated', told));
    },
    tellLog(process: Member, level: string, params: Buffer): void {
      if (!hasListener() || !isServedBy(process) || !hears(process.server, level)) return;
      deliver(notificationFrame('notifications/message', params));
    },
    restore(): Promise<void> {
      hostRoots.due(); // they may have changed while nobody here knew it
      return interests.restore();
    },
    get level() {
      return interests.level;
    },
    /** It listens to something, or a server keeps a process for it alone. */
    get mustStay() {
      const own = sessionHolder(session);
      return interests.count > 0 || world.scopes.members(viewer).some(({ principal: whose }) => whose === own);
    },
    get isBusy() {
      return calls.inFlight + tasks.waiting > 0;
    },
    /** Nobody will read the answers any more; tasks go on. */
    async dispose(why: string): Promise<void> {
      calls.cancelAll(why);
      tasks.leaveAll(why);
      hostRoots.dispose();
      await interests.dispose();
      world.scopes.forgetSession(session);
      await tasks.untilEnded();
      world.fleet.release(session);
    },
  };
}

/** Asked for with every call, so kept until the configuration changes. */
function viewOf({ scopes }: World, viewer: Viewer): () => View {
  let [epoch, view] = [scopes.epoch, scopes.viewFor(viewer)];
  return () => {
    if (epoch !== scopes.epoch) [epoch, view] = [scopes.epoch, scopes.viewFor(viewer)];
    return view;
  };
}
