// Everything that may be asked of a daemon, one row an operation: who may, where it is offered, how its parameters are read,
// and what it does. The control socket serves the rows, the CLI takes its types from them, and the NATS door reads subjects
// into their parameters. The CLI loads this file, so it imports nothing heavy by value.

import type { Inbox } from '../asks/ask.ts';
import type { Catalog } from '../catalog/catalog.ts';
import type { Difference } from '../config/difference.ts';
import { TroupeError } from '../protocol/failures.ts';
import type { Roots } from '../roots/roots.ts';
import type { Fleet } from '../servers/fleet.ts';
import type { OAuth } from '../servers/oauth/oauth.ts';
import type { Tasks } from '../tasks/task.ts';
import { answerAsk } from './asks.ts';
import { call, callOf } from './calls.ts';
import { login, loginWait, logout } from './logins.ts';
import {
  type Caller,
  directoryOf,
  type Given,
  givenOf,
  idOf,
  type Json,
  nothing,
  numberOf,
  OWNER,
  serverOf,
  textOf,
} from './parameters.ts';
import { commandServer, type Listening, type ListPage, listAll, listPage, subscribe, unsubscribe } from './servers.ts';
import type { DoorsEnvironment, Status } from './status.ts';
import { orderOf, ownResult } from './tasks.ts';

/** What operations work with. The composition root provides it; a row names what it needs. */
export type Ports = {
  readonly fleet: Fleet;
  readonly catalog: Catalog;
  readonly inbox: Pick<Inbox, 'list' | 'answer' | 'version' | 'changed'>;
  readonly tasks: Tasks;
  readonly roots: Pick<Roots, 'list' | 'add' | 'remove'>;
  /** Throws while there is no remote server. */
  readonly oauth: () => OAuth;
  readonly status: () => Status;
  readonly environment: () => DoorsEnvironment;
  readonly reload: () => Promise<Difference>;
  readonly stop: () => void;
};
type Needs<Name extends keyof Ports> = Pick<Ports, Name>;

/** How long the CLI waits: most are quick; a server may have to come or go; calls and tasks have deadlines of their own. */
export type Patience = 'short' | 'long' | 'endless';

export type Operation<Needed, Params, Result> = {
  /** `owner`: on the control socket only. `caller`: also on NATS, each about what is their own. */
  readonly may: 'owner' | 'caller';
  /** Offered on the control socket, with the CLI's patience. */
  readonly socket?: Patience;
  /** The verbs of the CLI that use it. */
  readonly verbs?: readonly string[];
  /** Its subjects, without root and tree, as docs/SUBJECTS.md spells them. */
  readonly subjects?: readonly string[];
  /** A daemon that stops answers it before it closes the connection. */
  readonly isFinished?: boolean;
  /** From the parameters on the control socket; of what is offered there only. */
  readonly read?: (given: Given) => Params;
  readonly run: (ports: Needed, params: Params, caller: Caller) => Result;
};

const row = <Needed, Params, Result>(operation: Operation<Needed, Params, Result>) => operation;

/** `start`, `stop` and `restart`. */
const command = (type: 'start' | 'stop' | 'restart') =>
  row({
    may: 'owner',
    socket: 'long',
    verbs: [type],
    read: serverOf,
    run: (ports: Needs<'fleet' | 'catalog'>, { server }) => commandServer(ports, type, server),
  });

export const OPERATIONS = {
  status: row({
    may: 'owner',
    socket: 'short',
    verbs: ['status', 'ps', 'up', 'down', 'doctor'],
    read: nothing,
    run: ({ status }: Needs<'status'>) => status(),
  }),
  env: row({
    may: 'owner',
    socket: 'short',
    verbs: ['env', 'install'],
    read: nothing,
    run: ({ environment }: Needs<'environment'>) => environment(),
  }),
  reload: row({
    may: 'owner',
    socket: 'long',
    verbs: ['add', 'rm', 'import'],
    read: nothing,
    run: async ({ reload }: Needs<'reload'>) => namesOf(await reload()),
  }),
  down: row({
    may: 'owner',
    socket: 'short',
    verbs: ['down'],
    read: nothing,
    run: ({ stop }: Needs<'stop'>) => {
      setImmediate(stop); // the answer goes out first
      return {};
    },
  }),

  start: command('start'),
  stop: command('stop'),
  restart: command('restart'),
  login: row({
    may: 'owner',
    socket: 'short',
    verbs: ['login'],
    read: serverOf,
    run: (ports: Needs<'fleet' | 'oauth'>, { server }) => login(ports, server),
  }),
  loginWait: row({
    may: 'owner',
    socket: 'short',
    verbs: ['login'],
    read: ({ fields }) => ({ server: String(fields.server), id: String(fields.id) }),
    run: (ports: Needs<'oauth'>, { server, id }) => loginWait(ports, server, id),
  }),
  logout: row({
    may: 'owner',
    socket: 'short',
    verbs: ['logout'],
    read: serverOf,
    run: (ports: Needs<'fleet' | 'oauth'>, { server }) => logout(ports, server),
  }),

  list: row({
    may: 'owner',
    socket: 'short',
    verbs: ['tools', 'resources', 'templates', 'prompts', 'call'],
    read: ({ fields: { kind, server } }) => ({
      kind: String(kind),
      ...(server !== undefined && { server: String(server) }),
    }),
    run: (ports: Needs<'fleet' | 'catalog'>, params: { kind: string; server?: string }) => listAll(ports, params),
  }),
  listPage: row({
    may: 'caller',
    subjects: ['list.<server>.<kind>'],
    run: (ports: Needs<'fleet' | 'catalog'>, page: ListPage, caller) => listPage(ports, page, caller),
  }),
  call: row({
    may: 'caller',
    socket: 'endless',
    verbs: ['call', 'read', 'prompt', 'complete'],
    subjects: ['call.<server>.<tool…>', 'read.<server>', 'prompt.<server>.<prompt…>', 'complete.<server>'],
    isFinished: true,
    read: callOf,
    run: ({ fleet }: Needs<'fleet'>, wanted, caller) => call(fleet, wanted, caller),
  }),
  cancel: row({
    may: 'caller',
    subjects: ['cancel.<requestId>'],
    run: ({ fleet }: Needs<'fleet'>, { requestId }: { requestId: string }, { principal }) =>
      fleet.cancel(principal ?? OWNER, requestId, 'the caller cancelled it'),
  }),
  subscribe: row({
    may: 'caller',
    subjects: ['subscribe.<server>'],
    run: ({ fleet }: Needs<'fleet'>, wanted: Listening, caller) => subscribe(fleet, wanted, caller),
  }),
  unsubscribe: row({
    may: 'caller',
    subjects: ['unsubscribe.<server>'],
    run: ({ fleet }: Needs<'fleet'>, wanted: Listening, caller) => unsubscribe(fleet, wanted, caller),
  }),

  inbox: row({
    may: 'caller',
    socket: 'short',
    verbs: ['inbox', 'answer'],
    subjects: ['inbox'],
    read: ({ fields: { since } }) => (typeof since === 'number' ? { since } : {}),
    /** With `since` it waits until the list is another than that one, or for some seconds. */
    run: async ({ inbox }: Needs<'inbox'>, { since }: { since?: number }, { principal }) => {
      if (since !== undefined) await inbox.changed(since);
      return { version: inbox.version, asks: inbox.list(principal) };
    },
  }),
  answer: row({
    may: 'caller',
    socket: 'short',
    verbs: ['answer'],
    subjects: ['answer.<id>'],
    read: ({ bytes, fields }) => ({ id: String(fields.id), body: bytes }),
    run: async ({ inbox }: Needs<'inbox'>, { id, body }, caller) => ({
      id,
      outcome: await answerAsk(inbox, id, body, caller),
    }),
  }),

  roots: row({
    may: 'owner',
    socket: 'short',
    verbs: ['roots'],
    read: nothing,
    run: ({ roots }: Needs<'roots'>) => ({ roots: roots.list() }),
  }),
  rootsAdd: row({
    may: 'owner',
    socket: 'short',
    verbs: ['roots'],
    read: ({ fields: { path, name } }) => ({
      path: directoryOf(path),
      ...(typeof name === 'string' && name !== '' && { name }),
    }),
    run: async ({ roots }: Needs<'roots'>, { path, name }: { path: string; name?: string }) => ({
      uri: await roots.add(path, name),
    }),
  }),
  rootsRemove: row({
    may: 'owner',
    socket: 'short',
    verbs: ['roots'],
    read: ({ fields }) => ({ path: directoryOf(fields.path) }),
    run: ({ roots }: Needs<'roots'>, { path }) => roots.remove(path),
  }),

  taskCreate: row({
    may: 'caller',
    socket: 'short',
    verbs: ['call'],
    subjects: ['call.<server>.<tool…>'],
    read: orderOf,
    run: ({ tasks }: Needs<'tasks'>, order) => tasks.create(order),
  }),
  tasks: row({
    may: 'caller',
    socket: 'short',
    verbs: ['tasks', 'task'],
    subjects: ['task.list'],
    read: ({ fields: { since, cursor } }) => ({
      ...(since !== undefined && { since: numberOf(since, 'since') }),
      ...(cursor !== undefined && { cursor: textOf(cursor, 'cursor') }),
    }),
    /** Newest first. With `since` it waits until something is another than then, or for some seconds. */
    run: async ({ tasks }: Needs<'tasks'>, { since, cursor }: { since?: number; cursor?: string }, { principal }) => {
      if (since !== undefined) await tasks.changed(since);
      return { version: tasks.version, ...tasks.list(principal, cursor) };
    },
  }),
  taskGet: row({
    may: 'caller',
    socket: 'short',
    verbs: ['task', 'tasks'],
    subjects: ['task.get.<id>'],
    read: idOf,
    run: ({ tasks }: Needs<'tasks'>, { id }, { principal }) => tasks.get(id, principal),
  }),
  /** Waits for it, as long as somebody is there to hear it. */
  taskResult: row({
    may: 'caller',
    socket: 'endless',
    verbs: ['task'],
    subjects: ['task.result.<id>'],
    read: idOf,
    run: ({ tasks }: Needs<'tasks'>, { id }, caller) => ownResult(tasks, id, caller),
  }),
  taskCancel: row({
    may: 'caller',
    socket: 'short',
    verbs: ['task'],
    subjects: ['task.cancel.<id>'],
    read: idOf,
    run: ({ tasks }: Needs<'tasks'>, { id }, { principal }) => tasks.cancel(id, principal),
  }),
  tasksPrune: row({
    may: 'owner',
    socket: 'long',
    verbs: ['tasks'],
    read: ({ fields: { olderMs = 0 } }) => ({ olderMs: numberOf(olderMs, 'olderMs') }),
    run: async ({ tasks }: Needs<'tasks'>, { olderMs }) => ({ removed: await tasks.prune(olderMs) }),
  }),
};

export type OperationName = keyof typeof OPERATIONS;
type Run<Name extends OperationName> = (typeof OPERATIONS)[Name]['run'];
export type ParamsOf<Name extends OperationName> = Parameters<Run<Name>>[1];
/** What the result of an operation is once its JSON is parsed. */
export type ResultOf<Name extends OperationName> =
  Awaited<ReturnType<Run<Name>>> extends infer Result ? (Result extends Json<infer Value> ? Value : Result) : never;

const isOperation = (name: string): name is OperationName => Object.hasOwn(OPERATIONS, name);

/** A row as the control socket serves it; undefined for what is not offered there. */
function servedRow(
  name: string,
): (Operation<Ports, unknown, unknown> & { read: (given: Given) => unknown }) | undefined {
  const found = isOperation(name) ? (OPERATIONS[name] as Operation<Ports, unknown, unknown>) : undefined;
  const { socket, read } = found ?? {};
  return found && socket && read ? { ...found, read } : undefined;
}

/** Whether a daemon that stops answers it before it closes the connection. */
export const isFinished = (name: string): boolean => servedRow(name)?.isFinished === true;

/** Runs an operation of the control socket. Resolves with the JSON of its result. */
export async function perform(ports: Ports, name: string, params: Buffer, caller: Caller): Promise<Buffer> {
  const found = servedRow(name);
  if (!found) throw new TroupeError('unsupported', `the daemon has no method ${name}; is it another version?`);
  const value = await found.run(ports, found.read(givenOf(params)), caller);
  return Buffer.isBuffer(value) ? value : Buffer.from(JSON.stringify(value ?? {}));
}

function namesOf({ added, removed, relaunched, retuned }: Difference) {
  const names = (configs: Difference['added']) => configs.map(({ name }) => name);
  return { added: names(added), removed, relaunched: names(relaunched), retuned: names(retuned) };
}
