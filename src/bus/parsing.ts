// The subjects of troupe read: what is asked for, for whom, and of which daemon. Each is read exactly as `subjects.ts` builds
// it, and a second spelling of the same thing is none: it would slip past a permission that names the first.

import { CALL_VERBS, type CallVerb, hasName, methodOfVerb, rowOf } from '../protocol/methods.ts';
import { decodeToken } from './names.ts';

export type Verb = CallVerb | 'list' | 'subscribe' | 'unsubscribe' | 'cancel';
export const VERBS: readonly Verb[] = [...CALL_VERBS, 'list', 'subscribe', 'unsubscribe', 'cancel'];
export const TASK_VERBS = ['get', 'result', 'cancel'] as const;
export type TaskVerb = (typeof TASK_VERBS)[number];

/** The caller of the bare tree: whoever may publish there. */
export const ANYONE = '_';

type Who = { caller: string; node?: string };
/** `server` is empty for `cancel`. `tail` is still encoded: a name (see `requestedName`), a list kind or a request id. */
export type Request = Who & { verb: Verb; server: string; tail: string };
/** Where a session is opened: `scope` is empty for all servers, a server's name, or `@` and a profile's. */
export type Opener = Who & { scope: string };
/** What is done about questions: `id` is empty for `inbox`, which lists them. */
export type AskRequest = Who & { verb: 'answer' | 'inbox'; id: string };
/** What is done about tasks: `id` is empty for `list`. */
export type TaskRequest = Who & { verb: TaskVerb | 'list'; id: string };

/** What follows the server, as a pattern. */
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

export function parsers(root: string) {
  const prefix = `${root}.`;
  return {
    parse: (subject: string): Request | undefined => parse(prefix, subject, parseVerb),
    parseRpc: (subject: string): Opener | undefined => parse(prefix, subject, parseOpener),
    parseAsk: (subject: string): AskRequest | undefined => parse(prefix, subject, parseAskRequest),
    parseTask: (subject: string): TaskRequest | undefined => parse(prefix, subject, parseTaskRequest),
  };
}

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

function parseTaskRequest(word: string, subject: string, start: number, who: Who): TaskRequest | undefined {
  if (word !== 'task') return undefined;
  const [verb, afterVerb] = cut(subject, start);
  const id = subject.slice(afterVerb);
  if (verb === 'list') return afterVerb === subject.length ? { ...who, verb, id } : undefined;
  const known = TASK_VERBS.find((each) => each === verb);
  return known && isRequestId(id) ? { ...who, verb: known, id } : undefined;
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
