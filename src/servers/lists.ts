// Keeps the catalog in step with the servers: all lists are read when a session opens, and a list again when it changed.

import { setTimeout as wait } from 'node:timers/promises';
import type { Catalog } from '../catalog/catalog.ts';
import { offers } from '../catalog/facts.ts';
import { type Ask, fetchList } from '../catalog/fetch.ts';
import { ALL_KINDS, KINDS, type Kind } from '../catalog/kinds.ts';
import { sentence } from '../protocol/failures.ts';
import { rowOf } from '../protocol/methods.ts';
import type { Member } from './member.ts';
import { isAllowed } from './policy.ts';
import { offerable } from './remote/mirrored.ts';

/** A server that adds its tools one by one announces each; the list is read once. */
const DEBOUNCE_MS = 50;

export type Lists = ReturnType<typeof createLists>;

export function createLists(catalog: Catalog, onChange: (member: Member, kind: Kind) => void) {
  const asks = new WeakMap<Member, Ask>();
  const reading = new Map<string, 'reading' | 'again'>();

  /** One reading of a list at a time: a list that changes meanwhile is read once more afterwards. */
  async function refresh(member: Member, kind: Kind, delayMs = 0): Promise<void> {
    const key = `${member.name} ${kind}`;
    if (reading.has(key)) return void reading.set(key, 'again');
    reading.set(key, 'reading');
    if (delayMs > 0) await wait(delayMs, undefined, { ref: false });
    reading.set(key, 'reading');
    await read(member, kind);
    const isStale = reading.get(key) === 'again';
    reading.delete(key);
    if (isStale) await refresh(member, kind, DEBOUNCE_MS);
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
      if (catalog.set(member.name, kind, shown, others)) onChange(member, kind);
    } catch (error) {
      member.logger.warn(`the list of ${kind} could not be read: ${sentence(error)}`);
    }
  }

  return {
    async opened(member: Member, ask: Ask): Promise<void> {
      asks.set(member, ask);
      await Promise.all(ALL_KINDS.map((kind) => refresh(member, kind)));
    },
    changed(member: Member, capability: string): void {
      for (const kind of listedUnder(capability)) void refresh(member, kind, DEBOUNCE_MS);
    },
  };
}

/** A server announces changes by capability: those of its resources may be changes of their templates. */
const listedUnder = (capability: string): Kind[] =>
  ALL_KINDS.filter((kind) => rowOf(KINDS[kind].method)?.needs?.[0] === capability);
