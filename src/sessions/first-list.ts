// The endpoint of one server waits for what that server will offer; an endpoint of many waits for nobody. All who ask for
// the same list wait together.

import { setTimeout as wait } from 'node:timers/promises';
import type { Catalog } from '../catalog/catalog.ts';
import type { Kind } from '../catalog/kinds.ts';
import type { Fleet } from '../servers/fleet.ts';
import type { Member } from '../servers/member.ts';

const PATIENCE_MS = 15_000;
const LOOK_MS = 20;
const COMING = new Set(['opening', 'waiting', 'asleep', 'ready']);

export function createFirstList(fleet: Fleet, catalog: Catalog) {
  const waiting = new Map<string, Promise<void>>();
  const isKnown = ({ name, server }: Member, kind: Kind): boolean =>
    catalog.get(name, kind).hash !== '' || catalog.get(server, kind).hash !== '';

  async function untilKnown(process: Member, kind: Kind): Promise<void> {
    const deadline = performance.now() + PATIENCE_MS;
    while (!isKnown(process, kind) && COMING.has(process.state) && performance.now() < deadline) {
      if (process.state === 'asleep') fleet.tell(process.name, { type: 'wanted' });
      await wait(LOOK_MS);
    }
  }

  return (process: Member, kind: Kind): Promise<void> | undefined => {
    if (isKnown(process, kind)) return undefined;
    const key = `${process.name} ${kind}`;
    const known = waiting.get(key) ?? untilKnown(process, kind).finally(() => waiting.delete(key));
    waiting.set(key, known);
    return known;
  };
}
