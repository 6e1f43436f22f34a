// A host's lists, page by page, and which of them have changed since it last looked or was last told.

import { setTimeout as wait } from 'node:timers/promises';
import { ALL_KINDS, KINDS, type Kind } from '../catalog/kinds.ts';
import { member, stringOf } from '../protocol/json.ts';
import { isMany, type Viewer } from './scopes.ts';
import type { World } from './world.ts';

type Announced = 'tools' | 'prompts' | 'resources';

const PAGE_BYTES = 1024 * 1024;
/** How long the endpoint of one server waits for what that server will offer; an endpoint of many waits for nobody. */
const FIRST_LIST_MS = 15_000;
const LOOK_MS = 20;
const COMING = new Set(['opening', 'waiting', 'asleep']);

export function createLists({ scopes, cast, catalog }: World, viewer: Viewer) {
  const view = () => scopes.viewFor(viewer);
  const hashOf = (kind: Announced) =>
    kind === 'resources' ? `${view().hash('resources')} ${view().hash('templates')}` : view().hash(kind);
  const known: Record<Announced, string> = {
    tools: hashOf('tools'),
    prompts: hashOf('prompts'),
    resources: hashOf('resources'),
  };

  async function firstList(kind: Kind): Promise<void> {
    const deadline = performance.now() + FIRST_LIST_MS;
    for (;;) {
      const process = cast.knownFor(viewer.scope, viewer.principal, viewer.session);
      if (!process || catalog.get(process.name, kind).hash !== '' || catalog.get(process.server, kind).hash !== '')
        return;
      const isComing = COMING.has(process.state) || process.state === 'ready';
      if (!isComing || performance.now() > deadline) return;
      if (process.state === 'asleep') cast.tell(process.name, { type: 'wanted' });
      await wait(LOOK_MS);
    }
  }

  return {
    async page(method: string, params: Buffer): Promise<Buffer> {
      const kind = ALL_KINDS.find((each) => KINDS[each].method === method) as Kind;
      const value = member(params, 'cursor');
      if (!isMany(viewer.scope)) await firstList(kind);
      const page = view().page(kind, value && (stringOf(value) ?? ''), PAGE_BYTES);
      const announced = kind === 'templates' ? 'resources' : kind;
      if (!value) known[announced] = hashOf(announced);
      return page;
    },
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
