// Keeps the catalog in step with the servers: reads all lists when a session opens, and one again when it changed.

import type { Catalog } from '../catalog/catalog.ts';
import { fetchList } from '../catalog/fetch.ts';
import { ALL_KINDS, KINDS, type Kind } from '../catalog/kinds.ts';
import { sentence } from '../failures.ts';
import type { Ask } from './ask.ts';
import { mayAsk } from './facts.ts';
import type { Member } from './member.ts';
import { isAllowed } from './policy.ts';

/** A server that adds its tools one by one says so one by one; the list is read once. */
const DEBOUNCE_MS = 50;
const KINDS_OF = { tools: ['tools'], prompts: ['prompts'], resources: ['resources', 'templates'] } as const;

export type Lists = ReturnType<typeof createLists>;

export function createLists(catalog: Catalog, onChange: (member: Member, kind: Kind) => void) {
  const asks = new WeakMap<Member, Ask>();
  const waiting = new Map<string, NodeJS.Timeout>();

  async function read(member: Member, kind: Kind): Promise<void> {
    const ask = asks.get(member);
    if (!ask || !member.facts) return;
    if (!mayAsk(member.facts, KINDS[kind].method)) return void catalog.set(member.name, kind, []);
    try {
      const { entries, complaint } = await fetchList(ask, kind);
      if (complaint) member.logger.warn(`the list of ${kind} is cut short: ${complaint}`);
      const shown = kind === 'tools' ? entries.filter(({ name }) => isAllowed(member, name)) : entries;
      if (catalog.set(member.name, kind, shown)) onChange(member, kind);
    } catch (error) {
      member.logger.warn(`the list of ${kind} could not be read: ${sentence(error)}`);
    }
  }

  return {
    async opened(member: Member, ask: Ask): Promise<void> {
      asks.set(member, ask);
      await Promise.all(ALL_KINDS.map((kind) => read(member, kind)));
    },
    changed(member: Member, kind: keyof typeof KINDS_OF): void {
      const key = `${member.name}.${kind}`;
      if (waiting.has(key)) return;
      const timer = setTimeout(() => {
        waiting.delete(key);
        for (const each of KINDS_OF[kind]) void read(member, each);
      }, DEBOUNCE_MS);
      waiting.set(key, timer);
    },
    close(): void {
      for (const timer of waiting.values()) clearTimeout(timer);
    },
  };
}
