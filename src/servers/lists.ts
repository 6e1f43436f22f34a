// Keeps the catalog in step with the servers: all lists are read when a session opens, and a list again when it changed. One that
// could not be read is read again after a while, and as soon as somebody wants it.

import { setTimeout as wait } from 'node:timers/promises';
import { outcomes } from '../calls/outcomes.ts';
import type { Catalog, Listing } from '../catalog/catalog.ts';
import { offers } from '../catalog/facts.ts';
import { type Ask, fetchList } from '../catalog/fetch.ts';
import { ALL_KINDS, KINDS, type Kind } from '../catalog/kinds.ts';
import { failing, failureOf, sentence, TroupeError } from '../protocol/failures.ts';
import { rowOf } from '../protocol/methods.ts';
import type { Member } from './member.ts';
import { isAllowed } from './policy.ts';
import { offerable } from './remote/mirrored.ts';
import { gate } from './states.ts';

/** A server that adds its tools one by one announces each; the list is read once. */
const DEBOUNCE_MS = 50;
/** The pauses before a list that could not be read is read again unasked. */
const PAUSES_MS = [1_000, 5_000, 30_000, 120_000, 600_000];

export type ListsOptions = {
  readonly catalog: Catalog;
  readonly onChange: (member: Member, kind: Kind) => void;
  /** A list could not be read, for another reason than before. */
  readonly onTrouble: (member: Member, kind: Kind, why: string) => void;
};
export type Lists = ReturnType<typeof createLists>;

type Reading = { isStale: boolean; done: Promise<void> };

export function createLists({ catalog, onChange, onTrouble }: ListsOptions) {
  const asks = new WeakMap<Member, Ask>();
  const readings = new Map<string, Reading>();
  /** How often in a row each list could not be read. */
  const failures = new Map<string, number>();

  /** One reading of a list at a time: a list that changes meanwhile is read once more afterwards. */
  function refresh(member: Member, kind: Kind, delayMs = 0): Promise<void> {
    const key = keyOf(member, kind);
    const known = readings.get(key);
    if (known) {
      known.isStale = true;
      return known.done;
    }
    const reading: Reading = { isStale: false, done: Promise.resolve() };
    readings.set(key, reading);
    reading.done = readAll(reading, member, kind, delayMs).finally(() => readings.delete(key));
    return reading.done;
  }

  async function readAll(reading: Reading, member: Member, kind: Kind, delayMs: number): Promise<void> {
    if (delayMs > 0) await wait(delayMs, undefined, { ref: false });
    do {
      if (reading.isStale) await wait(DEBOUNCE_MS, undefined, { ref: false });
      reading.isStale = false;
      await read(member, kind);
    } while (reading.isStale);
  }

  async function read(member: Member, kind: Kind): Promise<void> {
    const ask = asks.get(member);
    if (!ask || !member.facts) return;
    if (!offers(member.facts, KINDS[kind].method)) return void catalog.set(member.name, kind, []);
    try {
      const { entries, others, complaint } = await fetchList(ask, kind);
      if (complaint) member.logger.warn(`the list of ${kind} is cut short: ${complaint}`);
      const shown =
        kind === 'tools' ? offerable(member, entries).filter(({ name }) => isAllowed(member, name)) : entries;
      failures.delete(keyOf(member, kind));
      if (catalog.set(member.name, kind, shown, others)) onChange(member, kind);
    } catch (error) {
      const isOver = asks.get(member) !== ask || member.state !== 'ready';
      if (!isOver) failed(member, kind, error);
    }
  }

  function failed(member: Member, kind: Kind, error: unknown): void {
    const key = keyOf(member, kind);
    const why = `the list of ${kind} could not be read: ${sentence(error)}`;
    const isNews = catalog.get(member.name, kind).trouble?.why !== why;
    const times = failures.get(key) ?? 0;
    failures.set(key, times + 1);
    catalog.fail(member.name, kind, { why, failure: failureOf(error, () => {}, 'failed') });
    if (isNews) member.logger.warn(why);
    if (isNews) onTrouble(member, kind, why);
    const pauseMs = PAUSES_MS[Math.min(times, PAUSES_MS.length - 1)];
    setTimeout(() => void again(member, kind), pauseMs).unref();
  }

  /** Resolves when a list that could not be read has been read once more, well or not. */
  async function again(member: Member, kind: Kind): Promise<void> {
    if (member.state !== 'ready' || !catalog.get(member.name, kind).trouble) return;
    await (readings.get(keyOf(member, kind))?.done ?? refresh(member, kind));
  }

  return {
    async opened(member: Member, ask: Ask): Promise<void> {
      asks.set(member, ask);
      member.relist = (kind) => again(member, kind);
      for (const kind of ALL_KINDS) failures.delete(keyOf(member, kind));
      await Promise.all(ALL_KINDS.map((kind) => refresh(member, kind)));
    },
    changed(member: Member, capability: string): void {
      for (const kind of listedUnder(capability)) void refresh(member, kind, DEBOUNCE_MS);
    },
  };
}

/** Whether there is a list to show: that of the process, or else the one that the owner's has given. */
export const isListed = (catalog: Pick<Catalog, 'get'>, { name, server }: Member, kind: Kind): boolean =>
  catalog.get(name, kind).hash !== '' || catalog.get(server, kind).hash !== '';

/** What whoever asks for a list hears that was never read: the server's own error, or what keeps it. An empty list would be a lie. */
export function unlisted(
  { server, state, why }: Member,
  kind: Kind,
  { trouble }: Pick<Listing, 'trouble'>,
): TroupeError {
  if (trouble) return failing(trouble.failure);
  const said = outcomes(server).refusal(gate(state, why));
  if (state !== 'ready' && !said.ok) return failing(said.failure);
  return new TroupeError('unavailable', `server ${server} has not said which ${kind} it has; try again`);
}

const keyOf = ({ name }: Member, kind: Kind): string => `${name} ${kind}`;

/** A server announces changes by capability: those of its resources may be changes of their templates. */
const listedUnder = (capability: string): Kind[] =>
  ALL_KINDS.filter((kind) => rowOf(KINDS[kind].method)?.needs?.[0] === capability);
