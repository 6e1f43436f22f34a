// Which tenants of which servers have a pool of processes: those of every server that is interactive, from the moment it is
// known to be until it is configured otherwise.

import type { Told } from '../../machines/fleet.ts';
import type { Lane } from '../calls/lane.ts';
import type { createInstances } from './instances.ts';
import type { Interactive } from './interactive.ts';
import type { Member } from './member.ts';
import { Pool } from './pool.ts';

export type PoolsOptions = {
  readonly instances: ReturnType<typeof createInstances>;
  readonly interactive: Interactive;
  readonly remove: (name: string) => void;
  readonly tell: (name: string, command: Told) => void;
};

export function createPools({ instances, interactive, remove, tell }: PoolsOptions) {
  /** A lane like that of the process itself, for calls that wait for any of the pool. */
  const lanes = new WeakMap<Member, () => Lane>();

  function review(member: Member): void {
    const waiting = lanes.get(member);
    if (!waiting) return;
    const { pool } = member;
    const isWanted = interactive.is(member.config);
    if (isWanted && !pool) open(member, waiting());
    else if (isWanted) pool?.retune();
    else if (pool) {
      member.pool = undefined;
      pool.close();
    }
  }

  function open(first: Member, waiting: Lane): void {
    const pool = new Pool({
      first,
      waiting,
      processes: () => instances.processesOf(first),
      further: () => instances.further(first),
      isCrowded: () => instances.isCrowded(first),
      remove: ({ name }) => remove(name),
      tell: ({ name }, command) => tell(name, command),
    });
    first.pool = pool;
    pool.gather();
  }

  return {
    review,
    /** A tenant's first process is there. */
    admit(member: Member, waiting: () => Lane): void {
      lanes.set(member, waiting);
      member.sawAsking = () => {
        if (!interactive.saw(member.config)) return;
        member.logger.info('it asks questions, so its calls are spread over several processes from now on');
        for (const each of instances.of(member.server)) review(each);
      };
      review(member);
    },
  };
}
