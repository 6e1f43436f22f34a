// Which tenants have a pool of processes: those of every interactive server, from the moment it is known to ask questions
// until it is configured otherwise.

import { createHash } from 'node:crypto';
import type { Told } from '../../machines/fleet.ts';
import type { Lane } from '../calls/lane.ts';
import type { ServerConfig } from '../config/schema.ts';
import type { Store } from '../store/store.ts';
import type { Instances } from './instances.ts';
import type { Member } from './member.ts';
import { Pool } from './pool.ts';

export type PoolsOptions = {
  readonly instances: Instances;
  readonly interactive: Interactive;
  readonly remove: (name: string) => void;
  readonly tell: (name: string, command: Told) => void;
};

export function createPools({ instances, interactive, remove, tell }: PoolsOptions) {
  /** Makes the lane in which calls wait for any process of a pool, by the pool's first process. */
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

export type Interactive = ReturnType<typeof createInteractive>;

/**
 * Which servers ask questions that cannot be told apart by the stream they come on. A server that was seen to ask so is
 * remembered, also by the next daemon, for as long as its definition stays the same.
 */
export function createInteractive(store: Pick<Store, 'get' | 'commit'>, onTrouble: (error: unknown) => void) {
  const seen = new Map<string, string>();

  const isKnown = (config: ServerConfig): boolean => {
    const fingerprint = fingerprintOf(config);
    return seen.get(config.name) === fingerprint || rememberedOf(config.name) === fingerprint;
  };

  function rememberedOf(server: string): string | undefined {
    try {
      return store.get<{ definition: string }>('interactive', [server])?.definition;
    } catch {
      return undefined; // the store says itself what is wrong with it, and the server will be seen again
    }
  }

  return {
    /** As the configuration says, or else as the server was seen to behave. */
    is(config: ServerConfig): boolean {
      const { interactive } = config.settings;
      return interactive === 'auto' ? canBe(config) && isKnown(config) : interactive;
    },
    /** The server asked, and not on the stream of a call. True when it was not taken for interactive before and now is. */
    saw(config: ServerConfig): boolean {
      if (config.settings.interactive !== 'auto' || !canBe(config) || isKnown(config)) return false;
      const fingerprint = fingerprintOf(config);
      seen.set(config.name, fingerprint);
      store.commit('setInteractive', [config.name, fingerprint, Date.now()]).catch(onTrouble);
      return true;
    },
  };
}

/** Over HTTP a question comes on the stream of its call; by the protocol, one that does not belongs to no call. */
const canBe = ({ transport }: ServerConfig): boolean => transport !== 'http';

/** A hash, because a definition may hold secrets. */
function fingerprintOf({ settings, ...definition }: ServerConfig): string {
  return createHash('sha256').update(JSON.stringify(definition)).digest('base64url');
}
