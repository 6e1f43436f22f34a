// Every NATS subject of troupe is built and parsed here, and only here; docs/SUBJECTS.md is its table.
// Names are encoded one-to-one, so that a permission on a subject is a permission on exactly the names it spells.

import { decodeToken, encodeName, encodeToken, uriHash } from './names.ts';

export { decodeName, encodeName, nameMatches, requestedName } from './names.ts';

export const VERBS = ['call', 'list', 'read', 'prompt', 'complete', 'subscribe', 'unsubscribe', 'cancel'] as const;
export type Verb = (typeof VERBS)[number];
export type ListKind = 'tools' | 'prompts' | 'resources' | 'templates';
export type ChangedKind = 'tools' | 'prompts' | 'resources';

/** One queue group on every daemon: two groups on overlapping subjects would each run the call. */
export const QUEUE = 'troupe';
/** The caller of the bare tree: whoever may publish there. */
export const ANYONE = '_';

/** Whose request it is, or which daemon shall serve it; neither means the bare tree. */
export type Address = { readonly caller?: string } | { readonly node: string };
/** `server` is empty for `cancel`. `tail` is still encoded: a name (see `requestedName`), a list kind or a request id. */
export type Request = { caller: string; node?: string; verb: Verb; server: string; tail: string };
export type Tree = { tree: 'bare' | 'as' | 'node'; subject: string; queue?: string };
export type Pattern = Tree & { verb: Verb };
/** Where a session is opened: `scope` is empty for all servers, a server's name, or `@` and a profile's. */
export type Opener = { caller: string; node?: string; scope: string };
/** What is done about questions: `id` is empty for `inbox`, which lists them. */
export type AskRequest = { caller: string; node?: string; verb: 'answer' | 'inbox'; id: string };

export type Subjects = ReturnType<typeof subjects>;

export function subjects(root: string) {
  const at = (address: Address = {}): string => {
    if ('node' in address) return `${root}.node.${encodeToken(address.node)}`;
    const { caller = ANYONE } = address;
    return caller === ANYONE ? root : `${root}.as.${encodeToken(caller)}`;
  };
  /** What one caller's own process says is told where only that caller may listen. */
  const event = (server: string, rest: string, caller?: string): string =>
    `${at(caller === undefined ? {} : { caller })}.ev.${encodeToken(server)}.${rest}`;
  const of =
    (verb: Verb) =>
    (server: string, address?: Address): string =>
      `${at(address)}.${verb}.${encodeToken(server)}`;
  const [call, list, prompt] = [of('call'), of('list'), of('prompt')];

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
    progress: (requestId: string, caller?: string) =>
      `${at(caller === undefined ? {} : { caller })}.ev.progress.${requestId}`,
    /** Opens an MCP session, or comes back to one. */
    rpc: (scope: string, to?: Address) => `${at(to)}.${rpcPath(scope)}`,
    /** What the client of an open session says. The token is no session id: whoever may listen sees subjects. */
    session: (daemon: string, token: string, caller?: string) =>
      `${at(caller === undefined ? {} : { caller })}.sess.${encodeToken(daemon)}.${token}`,
    /** Where the daemons of one state directory hand each other what came to the wrong one. */
    peers: (family: string) => `${root}.peers.${encodeToken(family)}`,
    /** Where they tell each other that there is something to read in the rows of asks. */
    askPeers: (family: string) => `${root}.peers.${encodeToken(family)}.asks`,
    heartbeat: (daemon: string) => `${root}.hb.${encodeToken(daemon)}`,

    /** Where services are asked what a server wants to know of somebody. `_` is spelled out: each caller is one token. */
    ask: (caller: string, kind: string, server: string) =>
      `${root}.ask.${encodeToken(caller)}.${encodeToken(kind)}.${encodeToken(server)}`,
    answer: (id: string, to?: Address) => `${at(to)}.answer.${id}`,
    inbox: (to?: Address) => `${at(to)}.inbox`,
    askOpened: (server: string, caller?: string) => event(server, 'ask.opened', caller),
    askClosed: (server: string, caller?: string) => event(server, 'ask.closed', caller),

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
    /** A queue group for each state directory: it knows its questions, and no other does. */
    askPatterns: (daemon: string, family: string): Tree[] =>
      ['answer.*', 'inbox']
        .flatMap((path) => trees(root, daemon, path))
        .map((tree) => ({ ...tree, queue: `${QUEUE}-${encodeToken(family)}` })),

    parse: (subject: string): Request | undefined => parse(`${root}.`, subject, parseVerb),
    parseRpc: (subject: string): Opener | undefined => parse(`${root}.`, subject, parseOpener),
    parseAsk: (subject: string): AskRequest | undefined => parse(`${root}.`, subject, parseAskRequest),
  };
}

const TAIL: Readonly<Record<Verb, string>> = {
  call: '.>',
  list: '.*',
  read: '',
  prompt: '.>',
  complete: '',
  subscribe: '',
  unsubscribe: '',
  cancel: '',
};

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

// ── Parsing ──────────────────────────────────────────────────────────────────

type Who = { caller: string; node?: string };
/** Reads what follows the tree: its first word, and the rest of the subject from `start`. */
type Reader<Read> = (word: string, subject: string, start: number, who: Who) => Read | undefined;

function parse<Read>(prefix: string, subject: string, read: Reader<Read>): Read | undefined {
  if (!subject.startsWith(prefix)) return undefined;
  const [head, afterHead] = cut(subject, prefix.length);
  if (head !== 'as' && head !== 'node') return read(head, subject, afterHead, { caller: ANYONE });
  const [who, afterWho] = cut(subject, afterHead);
  const name = decodeToken(who);
  // `as._` would be a second spelling of the bare tree, past whatever permissions name the first.
  if (!name || (head === 'as' && name === ANYONE)) return undefined;
  const [word, afterWord] = cut(subject, afterWho);
  return read(word, subject, afterWord, head === 'as' ? { caller: name } : { caller: ANYONE, node: name });
}

function parseVerb(word: string, subject: string, start: number, who: Who): Request | undefined {
  const verb = word as Verb;
  if (!VERBS.includes(verb)) return undefined;
  if (verb === 'cancel') {
    const tail = subject.slice(start);
    return isRequestId(tail) ? { ...who, verb, server: '', tail } : undefined;
  }
  const [token, afterServer] = cut(subject, start);
  const server = decodeToken(token);
  const tail = subject.slice(afterServer);
  if (!server || !fits(tail, TAIL[verb])) return undefined;
  return { ...who, verb, server, tail };
}

function parseOpener(word: string, subject: string, start: number, who: Who): Opener | undefined {
  if (word !== 'rpc') return undefined;
  if (start === subject.length) return { ...who, scope: '' };
  const scope = decodeToken(subject.slice(start));
  return scope ? { ...who, scope } : undefined;
}

function parseAskRequest(word: string, subject: string, start: number, who: Who): AskRequest | undefined {
  const id = subject.slice(start);
  if (word === 'inbox') return id === '' ? { ...who, verb: word, id } : undefined;
  return word === 'answer' && isRequestId(id) ? { ...who, verb: word, id } : undefined;
}

function fits(tail: string, pattern: string): boolean {
  if (pattern === '.>') return tail !== '';
  return pattern === '' ? tail === '' : tail !== '' && !tail.includes('.');
}

/** The token that starts at `start`, and where the next one does. */
function cut(subject: string, start: number): [token: string, next: number] {
  const dot = subject.indexOf('.', start);
  return dot < 0 ? [subject.slice(start), subject.length] : [subject.slice(start, dot), dot + 1];
}

export const isRequestId = (text: string): boolean => /^[A-Za-z0-9_-]{1,64}$/.test(text);
