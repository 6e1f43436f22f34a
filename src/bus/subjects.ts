// Every NATS subject of troupe is built and read in this file, and nowhere else; docs/SUBJECTS.md is their table. A subject is
// read exactly as it is built: a second spelling of the same thing would slip past a permission that names the first.

import { createHash } from 'node:crypto';
import { CALL_VERBS, type CallVerb, hasName, methodOfVerb, rowOf } from '../protocol/methods.ts';

// ── What subjects speak of ───────────────────────────────────────────────────

export type Verb = CallVerb | 'list' | 'subscribe' | 'unsubscribe' | 'cancel';
export const VERBS: readonly Verb[] = [...CALL_VERBS, 'list', 'subscribe', 'unsubscribe', 'cancel'];
export const TASK_VERBS = ['get', 'result', 'cancel'] as const;
export type TaskVerb = (typeof TASK_VERBS)[number];

/** The caller of the bare tree: anyone who may publish there. */
export const ANYONE = '_';

type Who = { caller: string; node?: string | undefined };
/** `server` is empty for `cancel`. `tail` is still encoded: a name (see `requestedName`), a list kind or a request id. */
export type Request = Who & { verb: Verb; server: string; tail: string };
/** Where a session is opened: `scope` is empty for all servers, a server's name, or `@` and a profile's. */
export type Opener = Who & { scope: string };
/** Answers a question, or lists them: `id` is empty for `inbox`. */
export type AskRequest = Who & { verb: 'answer' | 'inbox'; id: string };
/** `id` is empty for `list`. */
export type TaskRequest = Who & { verb: TaskVerb | 'list'; id: string };

/** The pattern of the tokens that follow the server. */
export const TAIL = {
  ...Object.fromEntries(CALL_VERBS.map((verb) => [verb, hasName(kindOf(verb)) ? '.>' : ''])),
  list: '.*',
  subscribe: '',
  unsubscribe: '',
  cancel: '',
} as Readonly<Record<Verb, string>>;

function kindOf(verb: CallVerb) {
  return rowOf(methodOfVerb(verb) ?? '')?.target?.kind;
}

export type ListKind = 'tools' | 'prompts' | 'resources' | 'templates';
export type ChangedKind = 'tools' | 'prompts' | 'resources';

/** One queue group on every daemon: two groups on overlapping subjects would each run the call. */
export const QUEUE = 'troupe';

/** Whose request it is, or which daemon shall serve it; neither means the bare tree. */
export type Address = { readonly caller?: string } | { readonly node: string };
export type Tree = { tree: 'bare' | 'as' | 'node'; subject: string; queue?: string };
export type Pattern = Tree & { verb: Verb };

export type Subjects = ReturnType<typeof subjects>;

// ── Building ─────────────────────────────────────────────────────────────────

export function subjects(root: string) {
  return {
    ...requestSubjects(root),
    ...eventSubjects(root),
    ...peerSubjects(root),
    ...patterns(root),
    ...parsers(root),
  };
}

function treeOf(root: string, address: Address = {}): string {
  if ('node' in address) return `${root}.node.${encodeToken(address.node)}`;
  const { caller = ANYONE } = address;
  return caller === ANYONE ? root : `${root}.as.${encodeToken(caller)}`;
}

/** Requests of callers. */
function requestSubjects(root: string) {
  const at = (address?: Address): string => treeOf(root, address);
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
    answer: (id: string, to?: Address) => `${at(to)}.answer.${id}`,
    inbox: (to?: Address) => `${at(to)}.inbox`,
    task: (verb: TaskVerb, id: string, to?: Address) => `${at(to)}.task.${verb}.${id}`,
    taskList: (to?: Address) => `${at(to)}.task.list`,
    /** Opens an MCP session, or comes back to one. */
    rpc: (scope: string, to?: Address) => `${at(to)}.${rpcPath(scope)}`,
    /** Where the client of an open session publishes. The token is not the session id: subjects are seen by listeners. */
    session: (daemon: string, token: string, caller?: string) =>
      `${at(caller === undefined ? {} : { caller })}.sess.${encodeToken(daemon)}.${token}`,
  };
}

/** Events. Those of a process that serves one caller are published where only that caller may listen. */
function eventSubjects(root: string) {
  const tree = (caller?: string): string => treeOf(root, caller === undefined ? {} : { caller });
  const event = (server: string, rest: string, caller?: string): string =>
    `${tree(caller)}.ev.${encodeToken(server)}.${rest}`;
  return {
    listChanged: (server: string, kind: ChangedKind, caller?: string) => event(server, `${kind}.list_changed`, caller),
    resourceUpdated: (server: string, uri: string, caller?: string) =>
      event(server, `resources.updated.${uriHash(uri)}`, caller),
    log: (server: string, level: string, caller?: string) => event(server, `log.${encodeToken(level)}`, caller),
    state: (server: string, state: string, caller?: string) => event(server, `state.${encodeToken(state)}`, caller),
    progress: (requestId: string, caller?: string) => `${tree(caller)}.ev.progress.${requestId}`,
    askOpened: (server: string, caller?: string) => event(server, 'ask.opened', caller),
    askClosed: (server: string, caller?: string) => event(server, 'ask.closed', caller),
    taskStatus: (id: string, status: string, caller?: string) => event('task', `${id}.${status}`, caller),
    heartbeat: (daemon: string) => `${root}.hb.${encodeToken(daemon)}`,
    /** Where services are asked a server's question. The caller is always one token, `_` too. */
    ask: (caller: string, kind: string, server: string) =>
      `${root}.ask.${encodeToken(caller)}.${encodeToken(kind)}.${encodeToken(server)}`,
  };
}

/** Messages between the daemons of one state directory, a family. */
function peerSubjects(root: string) {
  const peers = (family: string): string => `${root}.peers.${encodeToken(family)}`;
  return {
    /** A message for a session that another daemon of the family holds. */
    peers,
    /** There is something to read in the rows of asks. */
    askPeers: (family: string) => `${peers(family)}.asks`,
    taskPeers: (family: string) => `${peers(family)}.tasks`,
  };
}

/** What a door subscribes to. */
function patterns(root: string) {
  /** A queue group for each state directory: only its daemons know its questions and tasks. */
  const ofFamily = (paths: readonly string[], daemon: string, family: string): Tree[] =>
    paths
      .flatMap((path) => trees(root, daemon, path))
      .map((tree) => ({ ...tree, queue: `${QUEUE}-${encodeToken(family)}` }));
  return {
    /** For one server. */
    patterns: (server: string, daemon: string): Pattern[] =>
      VERBS.filter((verb) => verb !== 'cancel').flatMap((verb) =>
        trees(root, daemon, `${verb}.${encodeToken(server)}${TAIL[verb]}`).map((tree) => ({ ...tree, verb })),
      ),
    /** Once. No queue group: only the daemon that runs the request knows it. */
    cancelPatterns: (daemon: string): Pattern[] =>
      trees(root, daemon, 'cancel.*').map(({ tree, subject }) => ({ tree, verb: 'cancel', subject })),
    /** For the sessions of one scope. */
    rpcPatterns: (scope: string, daemon: string): Tree[] => trees(root, daemon, rpcPath(scope)),
    askPatterns: (daemon: string, family: string): Tree[] => ofFamily(['answer.*', 'inbox'], daemon, family),
    taskPatterns: (daemon: string, family: string): Tree[] => ofFamily(TASK_PATHS, daemon, family),
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

// ── Reading ──────────────────────────────────────────────────────────────────

export function parsers(root: string) {
  const prefix = `${root}.`;
  return {
    parse: (subject: string): Request | undefined => parse(prefix, subject, parseVerb),
    parseRpc: (subject: string): Opener | undefined => parse(prefix, subject, parseOpener),
    parseAsk: (subject: string): AskRequest | undefined => parse(prefix, subject, parseAskRequest),
    parseTask: (subject: string): TaskRequest | undefined => parse(prefix, subject, parseTaskRequest),
  };
}

/** Reads a subject behind its tree: `word` is the first token there, `start` is where the next one begins. */
type Reader<Read> = (word: string, subject: string, start: number, who: Who) => Read | undefined;

function parse<Read>(prefix: string, subject: string, read: Reader<Read>): Read | undefined {
  if (!subject.startsWith(prefix)) return undefined;
  const [head, afterHead] = cut(subject, prefix.length);
  if (head !== 'as' && head !== 'node') return read(head, subject, afterHead, { caller: ANYONE });
  const [who, afterWho] = cut(subject, afterHead);
  const name = who.length <= MAX_NAME ? decodeToken(who) : undefined;
  // `as._` would be a second spelling of the bare tree, past whatever permissions name the first.
  if (!name || (head === 'as' && name === ANYONE)) return undefined;
  const [word, afterWord] = cut(subject, afterWho);
  return read(word, subject, afterWord, head === 'as' ? { caller: name } : { caller: ANYONE, node: name });
}

// Plain literals: a spread costs many times the rest of the parsing, and every request passes here.
function parseVerb(word: string, subject: string, start: number, { caller, node }: Who): Request | undefined {
  const verb = word as Verb;
  if (!VERBS.includes(verb)) return undefined;
  if (verb === 'cancel') {
    const tail = subject.slice(start);
    return isRequestId(tail) ? { caller, node, verb, server: '', tail } : undefined;
  }
  const [token, afterServer] = cut(subject, start);
  const server = decodeToken(token);
  const tail = subject.slice(afterServer);
  if (!server || !fits(tail, TAIL[verb])) return undefined;
  return { caller, node, verb, server, tail };
}

function parseOpener(word: string, subject: string, start: number, { caller, node }: Who): Opener | undefined {
  if (word !== 'rpc') return undefined;
  if (start === subject.length) return { caller, node, scope: '' };
  const scope = decodeToken(subject.slice(start));
  return scope ? { caller, node, scope } : undefined;
}

function parseAskRequest(word: string, subject: string, start: number, { caller, node }: Who): AskRequest | undefined {
  const id = subject.slice(start);
  if (word === 'inbox') return id === '' ? { caller, node, verb: word, id } : undefined;
  return word === 'answer' && isRequestId(id) ? { caller, node, verb: word, id } : undefined;
}

function parseTaskRequest(
  word: string,
  subject: string,
  start: number,
  { caller, node }: Who,
): TaskRequest | undefined {
  if (word !== 'task') return undefined;
  const [verb, afterVerb] = cut(subject, start);
  const id = subject.slice(afterVerb);
  if (verb === 'list') return afterVerb === subject.length ? { caller, node, verb, id } : undefined;
  const known = TASK_VERBS.find((each) => each === verb);
  return known && isRequestId(id) ? { caller, node, verb: known, id } : undefined;
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

const INBOXES = ['_INBOX.', '_INBOX_', '_R_.'];

/** The daemon may publish where its caller may not, so it replies to inboxes only. */
export const isInbox = (subject: string): boolean => INBOXES.some((prefix) => subject.startsWith(prefix));

export const isRequestId = (text: string): boolean => /^[A-Za-z0-9_-]{1,64}$/.test(text);

// ── Names as tokens ──────────────────────────────────────────────────────────
// One-to-one: a permission on a subject is a permission on exactly the names it spells.
// A byte outside [A-Za-z0-9_-] becomes `=XX`; `=` is legal in subjects and in KV keys alike.

const PLAIN_TOKEN = /^[A-Za-z0-9_-]+$/;
const PLAIN_NAME = /^[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*$/;
/** As written in a subject. A caller's name is part of the subjects of its events, so it cannot be as long as a subject. */
export const MAX_NAME = 200;

/** A tool's or prompt's name as subject tokens. Dots stay separators, so that families of names can be granted. */
export function encodeName(name: string): string {
  const encoded = PLAIN_NAME.test(name) ? name : name.split('.').map(encodeToken).join('.');
  // `=h` is no escape, so no name that is spelled out can collide with a hashed one.
  return encoded.length <= MAX_NAME ? encoded : `=h.${base32(sha256(name))}`;
}

/** The name a tail spells; undefined when it spells none, or only the hash of one. */
export function decodeName(tail: string): string | undefined {
  if (tail.length > MAX_NAME) return undefined;
  if (PLAIN_NAME.test(tail)) return tail;
  const name = tail.split('.').map(unescapeToken).join('.');
  // One name, one subject: a second spelling would slip past a permission that denies the first.
  return nameMatches(tail, name) ? name : undefined;
}

export const nameMatches = (tail: string, name: string): boolean => encodeName(name) === tail;

/** The name a request is for: spelled by its subject, or by the header `Mcp-Name`, which must then agree with it. */
export function requestedName(tail: string, header?: string): string | undefined {
  if (!header) return decodeName(tail);
  const base64 = /^=\?base64\?(.*)\?=$/.exec(header)?.[1];
  const name = base64 === undefined ? header : Buffer.from(base64, 'base64').toString();
  return nameMatches(tail, name) ? name : undefined;
}

/** Any string as exactly one token; the empty string is `=`. */
export function encodeToken(text: string): string {
  if (PLAIN_TOKEN.test(text)) return text;
  if (text === '') return '=';
  let token = '';
  for (const byte of Buffer.from(text)) {
    const character = String.fromCharCode(byte);
    token += PLAIN_TOKEN.test(character) ? character : `=${byte.toString(16).toUpperCase().padStart(2, '0')}`;
  }
  return token;
}

export function decodeToken(token: string): string | undefined {
  if (PLAIN_TOKEN.test(token)) return token;
  const text = unescapeToken(token);
  return encodeToken(text) === token ? text : undefined;
}

/** Lenient: its callers encode the result again and compare. */
function unescapeToken(token: string): string {
  if (token === '=') return '';
  const bytes = token.replace(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return Buffer.from(bytes, 'latin1').toString();
}

/** A subject holds the hash of a URI, never the URI: it may be long, and it may hold a secret. */
export const uriHash = (uri: string): string => base32(sha256(uri)).slice(0, 26);

const sha256 = (text: string): Buffer => createHash('sha256').update(text).digest();

function base32(bytes: Buffer): string {
  const bits = Array.from(bytes, (byte) => byte.toString(2).padStart(8, '0')).join('');
  return (bits.match(/.{1,5}/g) ?? [])
    .map((group) => 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'[Number.parseInt(group.padEnd(5, '0'), 2)])
    .join('');
}
