// Every method of MCP, one row each: who sends it in which versions, what it is about, and what its receiver may do.
// A new method is a row here; a test compares the rows with the schema of each version.

import { ERAS, type Era } from './eras.ts';

/** The first version in which a method is sent, and the last one if later versions do not have it. */
type Versions = readonly [first: Era, last?: Era];
/** The things that a server offers. */
export type Kind = 'tools' | 'resources' | 'templates' | 'prompts';
/** One of these things, and where the params of a method name it. */
export type TargetPath = { readonly kind: Kind; readonly at: readonly string[] };

type Row = {
  /** In which versions a client sends the method, and in which a server does. */
  readonly client?: Versions;
  readonly server?: Versions;
  /** The capability that the receiver must have declared, or an option of a capability. */
  readonly needs?: readonly [capability: string, option?: string];
  /** The one thing that the request is about. */
  readonly target?: TargetPath;
  /** The same for a request that is about things of several kinds, by the text of `ref.type` in its params. */
  readonly refers?: { readonly [type: string]: TargetPath };
  /** The kind of thing that it lists, the member of the result that holds the list, and the member that names each thing. */
  readonly lists?: { readonly kind: Kind; readonly member: string; readonly key: 'name' | 'uri' | 'uriTemplate' };
  /** Its verb on NATS. Requests with a verb are calls: they go to the server that has the target; troupe answers others. */
  readonly verb?: string;
  /** The receiver may ask the sender's side something before it answers. */
  readonly mayAsk?: true;
  /** The receiver may take its time and tell how far it is: the deadline moves with its progress. */
  readonly mayProgress?: true;
  /** Its sender may want it run as a task, in versions that have tasks. */
  readonly mayBeTask?: true;
  readonly mayNotBeCancelled?: true;
};

const ALL: Versions = ['2024-11-05'];
const SINCE_ELICITATION: Versions = ['2025-06-18'];
const SINCE_TASKS: Versions = ['2025-11-25'];

const METHODS = {
  initialize: { client: ALL, mayNotBeCancelled: true },
  ping: { client: ALL, server: ALL },

  'tools/list': { client: ALL, needs: ['tools'], lists: { kind: 'tools', member: 'tools', key: 'name' } },
  'tools/call': {
    client: ALL,
    needs: ['tools'],
    target: { kind: 'tools', at: ['name'] },
    verb: 'call',
    mayAsk: true,
    mayProgress: true,
    mayBeTask: true,
  },
  'resources/list': {
    client: ALL,
    needs: ['resources'],
    lists: { kind: 'resources', member: 'resources', key: 'uri' },
  },
  'resources/templates/list': {
    client: ALL,
    needs: ['resources'],
    lists: { kind: 'templates', member: 'resourceTemplates', key: 'uriTemplate' },
  },
  'resources/read': {
    client: ALL,
    needs: ['resources'],
    target: { kind: 'resources', at: ['uri'] },
    verb: 'read',
    mayAsk: true,
    mayProgress: true,
  },
  'resources/subscribe': {
    client: ALL,
    needs: ['resources', 'subscribe'],
    target: { kind: 'resources', at: ['uri'] },
  },
  'resources/unsubscribe': {
    client: ALL,
    needs: ['resources', 'subscribe'],
    target: { kind: 'resources', at: ['uri'] },
  },
  'prompts/list': { client: ALL, needs: ['prompts'], lists: { kind: 'prompts', member: 'prompts', key: 'name' } },
  'prompts/get': {
    client: ALL,
    needs: ['prompts'],
    target: { kind: 'prompts', at: ['name'] },
    verb: 'prompt',
    mayAsk: true,
    mayProgress: true,
  },
  'completion/complete': {
    client: ALL,
    needs: ['completions'],
    refers: {
      'ref/prompt': { kind: 'prompts', at: ['ref', 'name'] },
      'ref/resource': { kind: 'templates', at: ['ref', 'uri'] },
    },
    verb: 'complete',
    mayProgress: true,
  },
  'logging/setLevel': { client: ALL, needs: ['logging'] },

  'tasks/get': { client: SINCE_TASKS, server: SINCE_TASKS, needs: ['tasks'] },
  'tasks/result': { client: SINCE_TASKS, server: SINCE_TASKS, needs: ['tasks'] },
  'tasks/cancel': { client: SINCE_TASKS, server: SINCE_TASKS, needs: ['tasks', 'cancel'] },
  'tasks/list': { client: SINCE_TASKS, server: SINCE_TASKS, needs: ['tasks', 'list'] },

  'sampling/createMessage': { server: ALL, needs: ['sampling'], mayBeTask: true },
  'roots/list': { server: ALL, needs: ['roots'] },
  'elicitation/create': { server: SINCE_ELICITATION, needs: ['elicitation'], mayBeTask: true },

  'notifications/initialized': { client: ALL },
  'notifications/cancelled': { client: ALL, server: ALL },
  'notifications/progress': { client: ALL, server: ALL },
  'notifications/message': { server: ALL },
  'notifications/roots/list_changed': { client: ALL },
  'notifications/tools/list_changed': { server: ALL },
  'notifications/resources/list_changed': { server: ALL },
  'notifications/resources/updated': { server: ALL },
  'notifications/prompts/list_changed': { server: ALL },
  'notifications/tasks/status': { client: SINCE_TASKS, server: SINCE_TASKS },
  'notifications/elicitation/complete': { server: SINCE_TASKS },
} as const satisfies Record<string, Row>;

type Rows = typeof METHODS;
export type Method = keyof Rows;
/** The notifications that servers send. */
export type ServerNotification = Extract<
  { [M in Method]: Rows[M] extends { server: Versions } ? M : never }[Method],
  `notifications/${string}`
>;
/** The words by which a caller on NATS asks for a call. */
export type CallVerb = { [M in Method]: Rows[M] extends { verb: infer Verb } ? Verb : never }[Method];

/** A Map, because a message may name any method, and an object has inherited keys. */
const rows: ReadonlyMap<string, Row> = new Map(Object.entries(METHODS));

export const methodNames = Object.keys(METHODS) as readonly Method[];
export const rowOf = (method: string): Row | undefined => rows.get(method);

/** Tools and prompts have names, resources and templates have URIs. */
export const hasName = (kind: Kind | undefined): kind is 'tools' | 'prompts' => kind === 'tools' || kind === 'prompts';

// ── Methods that only their receiver knows

const WELL_FORMED = /^[A-Za-z][\w.-]{0,60}(\/[\w.-]{1,60}){0,8}$/;
/** What is about the connection or the tasks that are ours, in whichever version; and what JSON-RPC keeps for itself. */
const RESERVED = /^(server|subscriptions|tasks|rpc\.[^/]*)(\/|$)/i;
/** A careless receiver could take one for the other. */
const bareOf = (method: string): string => method.toLowerCase().replace(/[^a-z0-9]/g, '');
const bareMethods: ReadonlySet<string> = new Set(methodNames.map(bareOf));

/** Whether it is a method that MCP does not have, and that cannot be taken for one that it has. */
export const isForeign = (method: string): boolean =>
  !rows.has(method) && WELL_FORMED.test(method) && !RESERVED.test(method) && !bareMethods.has(bareOf(method));
const NOTIFICATION = /^notifications\//i;
export const isForeignRequest = (method: string): boolean => isForeign(method) && !NOTIFICATION.test(method);
export const isForeignNotification = (method: string): boolean =>
  isForeign(method) && method.startsWith('notifications/');

/** Whether a server may ask the caller's side something before it answers this request; nobody knows what a foreign one does. */
export function mayAsk(method: string): boolean {
  const row = rows.get(method);
  return row === undefined || row.mayAsk === true;
}
export const mayProgress = (method: string): boolean => rows.get(method)?.mayProgress === true;
export const mayBeCancelled = (method: string): boolean => rows.get(method)?.mayNotBeCancelled === undefined;
/** Whether a caller's request goes to one server as a call. */
export const isCall = (method: string): boolean => rows.get(method)?.verb !== undefined;

/** Whether clients, or servers, that speak this version send it. */
export function isSentBy(sender: 'client' | 'server', method: string, era: Era): boolean {
  const [first, last] = rows.get(method)?.[sender] ?? [];
  if (first === undefined) return false;
  const at = ERAS.indexOf(era);
  return ERAS.indexOf(first) <= at && (last === undefined || at <= ERAS.indexOf(last));
}

const byVerb = new Map<string, Method>();
for (const method of methodNames) {
  const verb = rowOf(method)?.verb;
  if (verb) byVerb.set(verb, method);
}

export const CALL_VERBS = [...byVerb.keys()] as readonly CallVerb[];
export const methodOfVerb = (verb: string): Method | undefined => byVerb.get(verb);
