// Asks on the disk: so that every daemon on this state directory shows and answers them, and so that of two answers one
// stands. What is asked and said is sealed, and erased when the ask ends.

import { randomUUID } from 'node:crypto';
import type { AskRow } from '../store/rows.ts';
import type { Seal } from '../store/seal.ts';
import type { Store } from '../store/store.ts';
import type { AskOutcome, AskView, Reply, Stage } from './ask.ts';
import type { Asked } from './host.ts';

export type RowsOptions = {
  readonly store: Store;
  readonly seal: Seal;
  /** This daemon's name among those on the state directory, and whether another of them runs. */
  readonly daemon: string;
  readonly isAlive: (daemon: string) => boolean;
  readonly onTrouble: (error: unknown) => void;
};
export type Rows = ReturnType<typeof createRows>;
type Sealed = AskView & { readonly asked?: { readonly method: string; readonly params: string } };
/** Somebody was quicker, or it is over. */
export type Loser = Pick<AskRow, 'status' | 'answered_by' | 'outcome'>;

/** A picture in a request must not be copied with every step of its ask. */
const MAX_BODY = 1_048_576;
const MAX_LISTED = 1_000;

export function createRows({ store, seal, daemon, isAlive, onTrouble }: RowsOptions) {
  const nameOf = (id: string): string => `ask ${id}`;

  /** Another daemon may have to ask the host who fetches the result of a task, in the server's own words. */
  function sealed(view: AskView, asked?: Asked): Buffer {
    const whole =
      view.task === undefined ? view : { ...view, asked: asked && { ...asked, params: asked.params.toString() } };
    const text = JSON.stringify(whole);
    const { request: _, result: __, arguments: ___, ...short } = view;
    return seal.seal(text.length <= MAX_BODY ? text : JSON.stringify(short), nameOf(view.id));
  }

  function opened({ id, body }: AskRow): Sealed | undefined {
    const text = body && seal.open(body, nameOf(id));
    return text ? JSON.parse(text) : undefined;
  }

  function viewOf(row: AskRow): AskView | undefined {
    const { asked: _, ...view } = opened(row) ?? {};
    return 'id' in view ? (view as AskView) : undefined;
  }

  const find = (id: string): AskRow | undefined => store.get<AskRow>('ask', [id]);

  return {
    find,
    viewOf,
    askedOf(row: AskRow): Asked | undefined {
      const asked = opened(row)?.asked;
      return asked && { ...asked, params: Buffer.from(asked.params) };
    },
    /** Resolves when it is on the disk. */
    async add(view: AskView, asked?: Asked): Promise<void> {
      await store.commit('addAsk', [
        ...[view.id, view.kind, view.server, view.tool, view.principal, daemon, view.stage, sealed(view, asked)],
        ...[view.openedAt, view.expiresAt],
      ]);
    },
    update: (view: AskView, asked?: Asked): void =>
      store.write('setAskBody', [sealed(view, asked), view.stage, view.id]),
    /** Resolves with nothing when this answer stands. */
    async claim(id: string, stage: Stage, reply: Reply, by: string): Promise<Loser | undefined> {
      const token = randomUUID();
      const content = reply.action === 'accept' ? reply.content?.toString() : undefined;
      const answer = seal.seal(JSON.stringify({ action: reply.action, content }), nameOf(id));
      await store.commit('answerAsk', [answer, by, token, id, stage]);
      const row = find(id);
      return row?.token === token ? undefined : row; // one that is not on the disk yet is known to nobody else
    },
    reopen: (view: AskView, asked?: Asked): void =>
      store.write('reopenAsk', [sealed(view, asked), view.stage, view.id]),
    end: (id: string, outcome: AskOutcome, by: string): void =>
      store.write('endAsk', [outcome, by || null, Date.now(), id]),
    /** Whether its daemon is there to take an answer. */
    isServed: (row: AskRow): boolean => row.daemon === daemon || isAlive(row.daemon),
    /** What other daemons, where they run, have open. */
    ofOthers: (): AskView[] =>
      store
        .all<AskRow>('openAsks', [daemon, MAX_LISTED])
        .filter((row) => isAlive(row.daemon))
        .flatMap((row) => viewOf(row) ?? []),
    countOthers: (): number =>
      store
        .all<{ daemon: string; count: number }>('askOwners', [daemon])
        .reduce((sum, { daemon: owner, count }) => sum + (isAlive(owner) ? count : 0), 0),
    /** What was answered through another daemon, and is ours to pass on. */
    answered: (): { id: string; stage: Stage; reply: Reply; by: string }[] =>
      store.all<AskRow>('answeredAsks', [daemon]).flatMap(({ id, stage, answer, answered_by }) => {
        const text = answer && seal.open(answer, nameOf(id));
        if (!text) return [];
        const { action, content } = JSON.parse(text);
        const reply = { action, ...(content !== undefined && { content: Buffer.from(content) }) };
        return [{ id, stage: stage as Stage, reply, by: answered_by ?? '' }];
      }),
    /** Those of daemons that run no more have ended, for their calls have: ours of an earlier life, too. */
    async interrupt(): Promise<AskRow[]> {
      const daemons = store.all<{ daemon: string }>('askDaemons').map((row) => row.daemon);
      const gone = daemons.filter((each) => each === daemon || !isAlive(each));
      const left = gone.flatMap((each) => store.all<AskRow>('liveAsks', [each]));
      await Promise.all(gone.map((each) => store.commit('interruptAsks', [Date.now(), each]))).catch(onTrouble);
      return left;
    },
  };
}
