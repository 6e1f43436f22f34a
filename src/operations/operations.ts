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
import { answerAsk, answerOf, openAsks, sinceOf } from './asks.ts';
import { call, callOf, cancelCall } from './calls.ts';
import { login, loginWait, logout } from './logins.ts';
import {
  type Caller,
  directoryOf,
  type Given,
  givenOf,
  idOf,
  type Json,
  namedDirectoryOf,
  nothing,
  numberOf,
  serverOf,
} from './parameters.ts';
import { commandServer, kindOf, listAll, listPage, subscribe, unsubscribe } from './servers.ts';
import type { DoorsEnvironment, Status } from './status.ts';
import { listTasks, orderOf, resultOf, tasksFrom } from './tasks.ts';

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

export type Operation<Needed, Params, Result> = {
  /** `owner`: on the control socket only. `caller`: on NATS, each about what is their own; on the control socket too. */
  readonly may: 'owner' | 'caller';
  /** Its subjects, without root and tree, as docs/SUBJECTS.md spells them. */
  readonly subjects: readonly string[];
  /** The verbs of the CLI that use it. */
  readonly verbs: readonly string[];
  /** Its parameters as the control socket brings them; undefined where it is not offered there. */
  readonly read: ((given: Given) => Params) | undefined;
  readonly run: (ports: Needed, params: Params, caller: Caller) => Result;
} & Waiting;

type Waiting = {
  /** How long the CLI waits: most are quick; a server may have to come or go; calls and tasks have their own deadlines. */
  readonly patience: 'short' | 'long' | 'endless';
  /** A daemon that stops answers it before it closes the connection. */
  readonly isFinished?: boolean;
};
const SHORT: Waiting = { patience: 'short' };
const LONG: Waiting = { patience: 'long' };
const ENDLESS: Waiting = { patience: 'endless' };

type Reading<Params> = (given: Given) => Params;
type Running<Needed, Params, Result> = (ports: Needed, params: Params, caller: Caller) => Result;

const forOwner = <Needed, Params, Result>(
  verbs: readonly string[],
  read: Reading<Params>,
  run: Running<Needed, Params, Result>,
  waiting = SHORT,
): Operation<Needed, Params, Result> => ({ may: 'owner', subjects: [], verbs, read, run, ...waiting });

const forCallers = <Needed, Params, Result>(
  subjects: readonly string[],
  verbs: readonly string[],
  read: Reading<Params> | undefined,
  run: Running<Needed, Params, Result>,
  waiting = SHORT,
): Operation<Needed, Params, Result> => ({ may: 'caller', subjects, verbs, read, run, ...waiting });

const command = (type: 'start' | 'stop' | 'restart') =>
  forOwner([type], serverOf, (ports: Servers, { server }) => commandServer(ports, type, server), LONG);
type Servers = Needs<'fleet' | 'catalog'>;
type Logins = Needs<'fleet' | 'oauth'>;

/** Columns: subjects (of those for callers), verbs of the CLI, how parameters are read, what is done, how long the CLI waits. */
export const OPERATIONS = {
  status: forOwner(['status', 'ps', 'up', 'down', 'doctor'], nothing, ({ status }: Needs<'status'>) => status()),
  env: forOwner(['env', 'install'], nothing, ({ environment }: Needs<'environment'>) => environment()),
  reload: forOwner(['add', 'rm', 'import'], nothing, ({ reload }: Needs<'reload'>) => reload().then(namesOf), LONG),
  // The answer goes out first.
  down: forOwner(['down'], nothing, ({ stop }: Needs<'stop'>) => void setImmediate(stop)),

  start: command('start'),
  stop: command('stop'),
  restart: command('restart'),
  login: forOwner(['login'], serverOf, (ports: Logins, { server }) => login(ports, server)),
  loginWait: forOwner(
    ['login'],
    ({ fields }) => ({ server: String(fields.server), id: String(fields.id) }),
    (ports: Needs<'oauth'>, { server, id }) => loginWait(ports, server, id),
  ),
  logout: forOwner(['logout'], serverOf, (ports: Logins, { server }) => logout(ports, server)),
  list: forOwner(['tools', 'resources', 'templates', 'prompts', 'call'], kindOf, (ports: Servers, { kind, server }) =>
    listAll(ports, kind, server),
  ),
  listPage: forCallers(['list.<server>.<kind>'], [], undefined, listPage),
  subscribe: forCallers(['subscribe.<server>'], [], undefined, subscribe),
  unsubscribe: forCallers(['unsubscribe.<server>'], [], undefined, unsubscribe),

  call: forCallers(
    ['call.<server>.<tool…>', 'read.<server>', 'prompt.<server>.<prompt…>', 'complete.<server>'],
    ['call', 'read', 'prompt', 'complete'],
    callOf,
    call,
    { patience: 'endless', isFinished: true },
  ),
  cancel: forCallers(['cancel.<requestId>'], [], undefined, cancelCall),

  inbox: forCallers(['inbox'], ['inbox', 'answer'], sinceOf, openAsks),
  answer: forCallers(['answer.<id>'], ['answer'], answerOf, answerAsk),

  roots: forOwner(['roots'], nothing, ({ roots }: Needs<'roots'>) => ({ roots: roots.list() })),
  rootsAdd: forOwner(['roots'], namedDirectoryOf, async ({ roots }: Needs<'roots'>, { path, name }) => ({
    uri: await roots.add(path, name),
  })),
  rootsRemove: forOwner(['roots'], directoryOf, ({ roots }: Needs<'roots'>, { path }) => roots.remove(path)),

  taskCreate: forCallers(['call.<server>.<tool…>'], ['call'], orderOf, ({ tasks }: Needs<'tasks'>, order) =>
    tasks.create(order),
  ),
  tasks: forCallers(['task.list'], ['tasks', 'task'], tasksFrom, listTasks),
  taskGet: forCallers(['task.get.<id>'], ['task', 'tasks'], idOf, ({ tasks }: Needs<'tasks'>, { id }, { principal }) =>
    tasks.get(id, principal),
  ),
  taskResult: forCallers(['task.result.<id>'], ['task'], idOf, resultOf, ENDLESS),
  taskCancel: forCallers(['task.cancel.<id>'], ['task'], idOf, ({ tasks }: Needs<'tasks'>, { id }, { principal }) =>
    tasks.cancel(id, principal),
  ),
  tasksPrune: forOwner(
    ['tasks'],
    ({ fields: { olderMs = 0 } }) => ({ olderMs: numberOf(olderMs, 'olderMs') }),
    async ({ tasks }: Needs<'tasks'>, { olderMs }) => ({ removed: await tasks.prune(olderMs) }),
    LONG,
  ),
};

export type OperationName = keyof typeof OPERATIONS;
type Run<Name extends OperationName> = (typeof OPERATIONS)[Name]['run'];
export type ParamsOf<Name extends OperationName> = Parameters<Run<Name>>[1];
/** What the result of an operation is once its JSON is parsed. */
export type ResultOf<Name extends OperationName> =
  Awaited<ReturnType<Run<Name>>> extends infer Result ? (Result extends Json<infer Value> ? Value : Result) : never;

const isOperation = (name: string): name is OperationName => Object.hasOwn(OPERATIONS, name);

/** A row as the control socket serves it. */
type Served = Operation<Ports, unknown, unknown> & { readonly read: Reading<unknown> };
const isServed = (row: Operation<Ports, unknown, unknown> | undefined): row is Served => row?.read !== undefined;

const servedRow = (name: string): Served | undefined => {
  const row = isOperation(name) ? (OPERATIONS[name] as Operation<Ports, unknown, unknown>) : undefined;
  return isServed(row) ? row : undefined;
};

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
