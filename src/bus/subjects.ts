// Every NATS subject of troupe is built here, read in parsing.ts, and nowhere else; docs/SUBJECTS.md is their table.
// Names are encoded one-to-one, so that a permission on a subject is a permission on exactly the names it spells.

import { encodeName, encodeToken, uriHash } from './names.ts';
import { ANYONE, parsers, TAIL, TASK_VERBS, type TaskVerb, VERBS, type Verb } from './parsing.ts';

export { decodeName, encodeName, nameMatches, requestedName } from './names.ts';
export type { AskRequest, Opener, Request, TaskRequest, TaskVerb, Verb } from './parsing.ts';
export { ANYONE, isRequestId, VERBS } from './parsing.ts';

export type ListKind = 'tools' | 'prompts' | 'resources' | 'templates';
export type ChangedKind = 'tools' | 'prompts' | 'resources';

/** One queue group on every daemon: two groups on overlapping subjects would each run the call. */
export const QUEUE = 'troupe';

/** Whose request it is, or which daemon shall serve it; neither means the bare tree. */
export type Address = { readonly caller?: string } | { readonly node: string };
export type Tree = { tree: 'bare' | 'as' | 'node'; subject: string; queue?: string };
export type Pattern = Tree & { verb: Verb };

export type Subjects = ReturnType<typeof subjects>;

export function subjects(root: string) {
  const at = (address: Address = {}): string => {
    if ('node' in address) return `${root}.node.${encodeToken(address.node)}`;
    const { caller = ANYONE } = address;
    return caller === ANYONE ? root : `${root}.as.${encodeToken(caller)}`;
  };
  const treeOf = (caller?: string): string => at(caller === undefined ? {} : { caller });
  /** What one caller's own process says is told where only that caller may listen. */
  const event = (server: string, rest: string, caller?: string): string =>
    `${treeOf(caller)}.ev.${encodeToken(server)}.${rest}`;
  const of =
    (verb: Verb) =>
    (server: string, address?: Address): string =>
      `${at(address)}.${verb}.${encodeToken(server)}`;
  const [call, list, prompt] = [of('call'), of('list'), of('prompt')];
  /** A queue group for each state directory: it knows its questions and tasks, and no other does. */
  const ofFamily = (paths: readonly string[], daemon: string, family: string): Tree[] =>
    paths
      .flatMap((path) => trees(root, daemon, path))
      .map((tree) => ({ ...tree, queue: `${QUEUE}-${encodeToken(family)}` }));

  return {
    call: (server: string, tool: string, to?: Address) => `${call(server, to)}.${encodeName(tool)}`,
    list: (server: string, kind: ListKind, to?: Address) => `${list(server, to)}.${kind}`,
    read: of('read'),
    prompt: (server: string, name: string, to?: Address) => `${prompt(server, to)}.${encodeName(name)}`,
    complete: of('complete'),
    subscribe: of('subscribe'),
    unsubscribe: of('unsubscribe'),
    cancel: (requestId: string, to?: Address) => `${at(to)}.cancel.${requestId}`,

    listChanged: (server: string, kind: ChangedKind, caller?: string) => event(server, `${kind}.list_changed`, caller),
    resourceUpdated: (server: string, uri: string, caller?: string) =>
      event(server, `resources.updated.${uriHash(uri)}`, caller),
    log: (server: string, level: string, caller?: string) => event(server, `log.${encodeToken(level)}`, caller),
    state: (server: string, state: string, caller?: string) => event(server, `state.${encodeToken(state)}`, caller),
    progress: (requestId: string, caller?: string) => `${treeOf(caller)}.ev.progress.${requestId}`,
    /** Opens an MCP session, or comes back to one. */
    rpc: (scope: string, to?: Address) => `${at(to)}.${rpcPath(scope)}`,
    /** What the client of an open session says. The token is no session id: whoever may listen sees subjects. */
    session: (daemon: string, token: string, caller?: string) =>
      `${treeOf(caller)}.sess.${encodeToken(daemon)}.${token}`,
    /** Where the daemons of one state directory hand each other what came to the wrong one. */
    peers: (family: string) => `${root}.peers.${encodeToken(family)}`,
    /** Where they tell each other that there is something to read in the rows of asks. */
    askPeers: (family: string) => `${root}.peers.${encodeToken(family)}.asks`,
    taskPeers: (family: string) => `${root}.peers.${encodeToken(family)}.tasks`,
    heartbeat: (daemon: string) => `${root}.hb.${encodeToken(daemon)}`,

    /** Where services are asked what a server wants to know of somebody. `_` is spelled out: each caller is one token. */
    ask: (caller: string, kind: string, server: string) =>
      `${root}.ask.${encodeToken(caller)}.${encodeToken(kind)}.${encodeToken(server)}`,
    answer: (id: string, to?: Address) => `${at(to)}.answer.${id}`,
    inbox: (to?: Address) => `${at(to)}.inbox`,
    askOpened: (server: string, caller?: string) => event(server, 'ask.opened', caller),
    askClosed: (server: string, caller?: string) => event(server, 'ask.closed', caller),

    task: (verb: TaskVerb, id: string, to?: Address) => `${at(to)}.task.${verb}.${id}`,
    taskList: (to?: Address) => `${at(to)}.task.list`,
    taskStatus: (id: string, status: string, caller?: string) => event('task', `${id}.${status}`, caller),

    /** What a door subscribes to for one server. */
    patterns: (server: string, daemon: string): Pattern[] =>
      VERBS.filter((verb) => verb !== 'cancel').flatMap((verb) =>
        trees(root, daemon, `${verb}.${encodeToken(server)}${TAIL[verb]}`).map((tree) => ({ ...tree, verb })),
      ),
    /** What a door subscribes to once. No queue group: only the daemon that runs the request knows it. */
    cancelPatterns: (daemon: string): Pattern[] =>
      trees(root, daemon, 'cancel.*').map(({ tree, subject }) => ({ tree, verb: 'cancel', subject })),
    /** What a door subscribes to for the sessions of one scope. */
    rpcPatterns: (scope: string, daemon: string): Tree[] => trees(root, daemon, rpcPath(scope)),
    askPatterns: (daemon: string, family: string): Tree[] => ofFamily(['answer.*', 'inbox'], daemon, family),
    taskPatterns: (daemon: string, family: string): Tree[] => ofFamily(TASK_PATHS, daemon, family),

    ...parsers(root),
  };
}

const TASK_PATHS = [...TASK_VERBS.map((verb) => `task.${verb}.*`), 'task.list'];

/** All servers is the word alone: a token for them could be the name of one. */
const rpcPath = (scope: string): string => (scope === '' ? 'rpc' : `rpc.${encodeToken(scope)}`);

function trees(root: string, daemon: string, path: string): Tree[] {
  return [
    { tree: 'bare', subject: `${root}.${path}`, queue: QUEUE },
    { tree: 'as', subject: `${root}.as.*.${path}`, queue: QUEUE },
    // Daemons of one machine have one name, and a call must not run on each of them.
    { tree: 'node', subject: `${root}.node.${encodeToken(daemon)}.${path}`, queue: QUEUE },
  ];
}
