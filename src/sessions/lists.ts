// A host's lists, page by page, and which of them have changed since it last looked or was last told.

import type { Catalog } from '../catalog/catalog.ts';
import type { Kind } from '../catalog/kinds.ts';
import { member, stringOf } from '../protocol/json.ts';
import type { Fleet } from '../servers/fleet.ts';
import { isListed, unlisted } from '../servers/lists.ts';
import type { Member } from '../servers/member.ts';
import { meaningOf } from '../servers/states.ts';
import type { World } from '../world/world.ts';
import type { SessionPorts } from './ports.ts';
import { isMany, type Viewer } from './scopes.ts';

type Announced = 'tools' | 'prompts' | 'resources';

const PAGE_BYTES = 1024 * 1024;

export function createLists({ scopes, fleet, catalog, firstList }: SessionPorts, viewer: Viewer) {
  const view = () => scopes.viewFor(viewer);
  const hashOf = (kind: Announced) =>
    kind === 'resources' ? `${view().hash('resources')} ${view().hash('templates')}` : view().hash(kind);
  const known: Record<Announced, string> = {
    tools: hashOf('tools'),
    prompts: hashOf('prompts'),
    resources: hashOf('resources'),
  };

  /** Rejects when each server that is there gives an error in place of its list. */
  async function notOnlyTrouble(processes: readonly Member[], kind: Kind): Promise<void> {
    const again = Promise.all(processes.map((process) => process.relist?.(kind)));
    const there = processes.filter(({ state }) => !meaningOf(state).isDown);
    const isTrouble = (each: Member) => catalog.get(each.name, kind).trouble && !isListed(catalog, each, kind);
    const areAll = () => there.length > 0 && there.every(isTrouble);
    if (areAll()) await again;
    const [first] = there;
    if (first && areAll()) throw unlisted(first, kind, catalog.get(first.name, kind));
  }

  return {
    /**
     * The endpoint of one server waits for the server's first list. An endpoint of many waits for none, and shows what is known;
     * where that is nothing, and nothing will come by itself, its host hears why.
     */
    async page(kind: Kind, params: Buffer): Promise<Buffer> {
      const value = member(params, 'cursor');
      const processes = scopes.members(viewer);
      for (const process of processes) fleet.expect(process);
      if (isMany(viewer.scope)) await notOnlyTrouble(processes, kind);
      else for (const process of processes) await firstList(process, kind);
      const page = view().page(kind, value && (stringOf(value) ?? ''), PAGE_BYTES);
      const announced = kind === 'templates' ? 'resources' : kind;
      if (!value) known[announced] = hashOf(announced);
      return page;
    },
    /** A tool as its server wrote it, by the name that this host has for it. */
    definitionOf(tool: string): Buffer | undefined {
      const target = view().find('tools', tool);
      const source = target && scopes.sources(viewer).find(({ server }) => server === target.server);
      const listing = source && catalog.get(source.key, 'tools');
      return listing?.entries.find(({ name }) => name === target?.name)?.bytes;
    },
    /** Which have changed since the host last read them or was last told. */
    changed(): Announced[] {
      return (Object.keys(known) as Announced[]).filter((kind) => {
        const now = hashOf(kind);
        const isNews = known[kind] !== now;
        known[kind] = now;
        return isNews;
      });
    },
  };
}

// ── The first list of a server ───────────────────────────────────────────────

export type FirstListsOptions = {
  readonly world: World;
  readonly fleet: Pick<Fleet, 'want'>;
  readonly catalog: Pick<Catalog, 'get' | 'watch'>;
};

/** One list that hosts wait for; all of them wait together. */
type Awaited = {
  readonly process: Member;
  readonly kind: Kind;
  readonly known: Promise<void>;
  readonly resolve: () => void;
};

const PATIENCE_MS = 15_000;

/**
 * Waits for the first list of a server: until the catalog has the list, or the server's state says that none is coming. It
 * rejects when there is none then, with the server's own error where it has said one.
 */
export function createFirstLists({ world, fleet, catalog }: FirstListsOptions) {
  const awaited = new Map<string, Awaited>();
  const stopListening = catalog.watch(look);

  const isKnown = (process: Member, kind: Kind): boolean => isListed(catalog, process, kind);
  const troubleOf = ({ name }: Member, kind: Kind) => catalog.get(name, kind).trouble;

  function look(): void {
    for (const { process, kind, resolve } of awaited.values()) {
      const isOver = isKnown(process, kind) || troubleOf(process, kind) || !meaningOf(process.state).isComing;
      if (isOver) resolve();
      else if (process.state === 'asleep') fleet.want(process);
    }
  }

  function begin(key: string, process: Member, kind: Kind): Awaited {
    let done = (): void => {};
    const known = new Promise<void>((resolve) => {
      done = resolve;
    });
    const stopWaiting = world.after(PATIENCE_MS, resolve);
    const waiting: Awaited = { process, kind, known, resolve };
    awaited.set(key, waiting);
    return waiting;

    function resolve(): void {
      awaited.delete(key);
      stopWaiting();
      done();
    }
  }

  function whenRead(process: Member, kind: Kind): Promise<void> {
    const key = `${process.name} ${kind}`;
    const { known } = awaited.get(key) ?? begin(key, process, kind);
    look();
    return known;
  }

  async function read(process: Member, kind: Kind): Promise<void> {
    await (troubleOf(process, kind) ? process.relist?.(kind) : whenRead(process, kind));
    if (!isKnown(process, kind)) throw unlisted(process, kind, catalog.get(process.name, kind));
  }

  return {
    /** Undefined when the list is known already. */
    wait(process: Member, kind: Kind): Promise<void> | undefined {
      if (!isKnown(process, kind)) return read(process, kind);
      if (troubleOf(process, kind)) void process.relist?.(kind);
      return undefined;
    },
    /** A server has another state. */
    changed: look,
    close: stopListening,
  };
}
