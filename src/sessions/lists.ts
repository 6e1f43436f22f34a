// A host's lists, page by page, and which of them have changed since it last looked or was last told.

import type { Kind } from '../catalog/kinds.ts';
import { member, stringOf } from '../protocol/json.ts';
import { isMany, type Viewer } from './scopes.ts';
import type { World } from './world.ts';

type Announced = 'tools' | 'prompts' | 'resources';

const PAGE_BYTES = 1024 * 1024;

export function createLists({ scopes, fleet, catalog, firstList }: World, viewer: Viewer) {
  const view = () => scopes.viewFor(viewer);
  const hashOf = (kind: Announced) =>
    kind === 'resources' ? `${view().hash('resources')} ${view().hash('templates')}` : view().hash(kind);
  const known: Record<Announced, string> = {
    tools: hashOf('tools'),
    prompts: hashOf('prompts'),
    resources: hashOf('resources'),
  };

  return {
    async page(kind: Kind, params: Buffer): Promise<Buffer> {
      const value = member(params, 'cursor');
      const process = isMany(viewer.scope) ? undefined : fleet.knownFor(viewer.scope, viewer.principal, viewer.session);
      if (process) await firstList(process, kind);
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
