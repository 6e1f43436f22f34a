// Asks on the disk: so that every daemon on this state directory shows and answers them, and so that of two answers one
// stands. What is asked and said is sealed, and erased when the ask ends.

import type { AskRow } from '../store/rows.ts';
import type { Seal } from '../store/seal.ts';
import type { Store } from '../store/store.ts';
import type { World } from '../world/world.ts';
import type { AskedOfHost, AskOutcome, AskView, Question, Reply, Stage } from './ask.ts';

export type AskRowsOptions = {
  readonly store: Pick<Store, 'all' | 'commit' | 'get' | 'write'>;
  readonly seal: Seal;
  /** This daemon's name among those on the state directory, and whether another of them runs. */
  readonly daemon: string;
  readonly isAlive: (daemon: string) => boolean;
  readonly world: Pick<World, 'date' | 'random'>;
  readonly onTrouble: (error: unknown) => void;
};
export type AskRows = ReturnType<typeof createAskRows>;
type Sealed = AskView & { readonly asked?: { readonly method: string; readonly params: string } };
/** The row of a question that another answer has won, or that is over. */
export type Loser = Pick<AskRow, 'status' | 'answered_by' | 'outcome'>;

/** A picture in a request must not be copied with every step of its ask. */
const MAX_BODY = 1_048_576;
const MAX_LISTED = 1_000;

export function createAskRows({ store, seal, daemon, isAlive, world, onTrouble }: AskRowsOptions) {
  /** Claims of ours that are on their way to the disk: such a row is not another daemon's answer to us. */
  const claiming = new Set<string>();
  const { sealed, viewOf, askedOf } = createBodies(seal);
  const find = (id: string): AskRow | undefined => store.get<AskRow>('ask', [id]);

  return {
    find,
    viewOf,
    askedOf,
    /** Resolves when the row is on the disk. */
    async add(view: AskView, asked?: AskedOfHost): Promise<void> {
      const { id, kind, server, tool, principal, stage, openedAt, expiresAt } = view;
      const body = sealed(view, asked);
      await store.commit('addAsk', [id, kind, server, tool, principal, daemon, stage, body, openedAt, expiresAt]);
    },
    update: (view: AskView, asked?: AskedOfHost): void =>
      store.write('setAskBody', [sealed(view, asked), view.stage, view.id]),
    /** Resolves with nothing when this answer stands, else with the row as another answer left it. */
    async claim(id: string, stage: Stage, reply: Reply, by: string): Promise<Loser | undefined> {
      const token = world.random(16).toString('hex');
      const content = reply.action === 'accept' ? reply.content?.toString() : undefined;
      const answer = seal.seal(JSON.stringify({ action: reply.action, content }), nameOf(id));
      claiming.add(token);
      try {
        await store.commit('answerAsk', [answer, by, token, id, stage]);
      } finally {
        claiming.delete(token);
      }
      const row = find(id);
      return row?.token === token ? undefined : row; // a row that is not on the disk yet is known to no other daemon
    },
    reopen: (view: AskView, asked?: AskedOfHost): void =>
      store.write('reopenAsk', [sealed(view, asked), view.stage, view.id]),
    end: (id: string, outcome: AskOutcome, by: string): void =>
      store.write('endAsk', [outcome, by || null, world.date(), id]),
    /** Whether the daemon that asks runs, so that it can take an answer. */
    isServed: (row: AskRow): boolean => row.daemon === daemon || isAlive(row.daemon),
    /** The open questions of the other daemons that run. */
    ofOthers: (): AskView[] =>
      store
        .all<AskRow>('openAsks', [daemon, MAX_LISTED])
        .filter((row) => isAlive(row.daemon))
        .flatMap((row) => viewOf(row) ?? []),
    countOthers: (): number =>
      store
        .all<{ daemon: string; count: number }>('askOwners', [daemon])
        .reduce((sum, { daemon: owner, count }) => sum + (isAlive(owner) ? count : 0), 0),
    /** Questions of this daemon that were answered through another one. */
    answered: (): { id: string; stage: Stage; reply: Reply; by: string }[] =>
      store.all<AskRow>('answeredAsks', [daemon]).flatMap(({ id, stage, answer, answered_by, token }) => {
        const text = answer && !claiming.has(token ?? '') && seal.open(answer, nameOf(id));
        if (!text) return [];
        const { action, content } = JSON.parse(text);
        const reply = { action, ...(content !== undefined && { content: Buffer.from(content) }) };
        return [{ id, stage: stage as Stage, reply, by: answered_by ?? '' }];
      }),
    /** Ends the questions of daemons that run no more, and of an earlier life of this one: their calls have ended too. */
    async interrupt(): Promise<AskRow[]> {
      const daemons = store.all<{ daemon: string }>('askDaemons').map((row) => row.daemon);
      const gone = daemons.filter((each) => each === daemon || !isAlive(each));
      const left = gone.flatMap((each) => store.all<AskRow>('liveAsks', [each]));
      await Promise.all(gone.map((each) => store.commit('interruptAsks', [world.date(), each]))).catch(onTrouble);
      return left;
    },
  };
}

const nameOf = (id: string): string => `ask ${id}`;

/** The view of a question, sealed in its row. */
function createBodies(seal: Seal) {
  function opened({ id, body }: AskRow): Sealed | undefined {
    const text = body && seal.open(body, nameOf(id));
    return text ? JSON.parse(text) : undefined;
  }

  return {
    /** With the server's own words where the question belongs to a task: a host that fetches its result may be at another daemon. */
    sealed(view: AskView, asked?: AskedOfHost): Buffer {
      const whole =
        view.task === undefined ? view : { ...view, asked: asked && { ...asked, params: asked.params.toString() } };
      const text = JSON.stringify(whole);
      const { request: _, result: __, arguments: ___, ...short } = view;
      return seal.seal(text.length <= MAX_BODY ? text : JSON.stringify(short), nameOf(view.id));
    },
    viewOf(row: AskRow): AskView | undefined {
      const { asked: _, ...view } = opened(row) ?? {};
      return 'id' in view ? (view as AskView) : undefined;
    },
    askedOf(row: AskRow): AskedOfHost | undefined {
      const asked = opened(row)?.asked;
      return asked && { ...asked, params: Buffer.from(asked.params) };
    },
  };
}

// ── A question as the inbox shows it ─────────────────────────────────────────

type Shown = Pick<AskView, 'kind' | 'mode' | 'message' | 'schema' | 'url' | 'arguments' | 'request'>;

/** `request` is that of sampling as it was edited. */
export function shown(question: Question, request: Buffer | undefined): Shown {
  const { kind, message } = question;
  switch (question.kind) {
    case 'elicitation':
      return question.mode === 'form'
        ? { kind, message, mode: 'form', schema: parsed(question.schema) }
        : { kind, message, mode: 'url', url: question.url };
    case 'sampling':
      return { kind, message, request: parsed(request ?? question.request) };
    case 'approval':
      return { kind, message, arguments: parsed(question.arguments) };
  }
}

/** A question again from what the inbox shows: another daemon needs it to judge an answer. */
export function questionOf({ kind, mode, message, schema, url = '', request, arguments: given }: AskView): Question {
  if (kind === 'sampling') return { kind, message, request: json(request) };
  if (kind === 'approval') return { kind, message, arguments: json(given) };
  if (mode === 'url') return { kind, mode, message, url, elicitationId: '', isRequired: false };
  return { kind, mode: 'form', message, schema: json(schema) };
}

/** Each is parsed once: a request may hold pictures, and the inbox is listed often. */
const objects = new WeakMap<Buffer, object>();

function parsed(bytes: Buffer): object {
  const object = objects.get(bytes) ?? (JSON.parse(bytes.toString()) as object);
  objects.set(bytes, object);
  return object;
}

const json = (value: object = {}): Buffer => Buffer.from(JSON.stringify(value));
