// Which servers ask questions that cannot be told apart by the stream they come on. One that was seen to is remembered, also
// by the next daemon, for as long as its definition stays the same.

import { createHash } from 'node:crypto';
import type { ServerConfig } from '../config/schema.ts';
import type { Store } from '../store/store.ts';

export type Interactive = ReturnType<typeof createInteractive>;

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
    /** What the configuration says, or else what was seen. */
    is(config: ServerConfig): boolean {
      const { interactive } = config.settings;
      return interactive === 'auto' ? canBe(config) && isKnown(config) : interactive;
    },
    /** It asked, and not on the stream of a call. True when it is taken for interactive from now on, and was not before. */
    saw(config: ServerConfig): boolean {
      if (config.settings.interactive !== 'auto' || !canBe(config) || isKnown(config)) return false;
      const fingerprint = fingerprintOf(config);
      seen.set(config.name, fingerprint);
      store.commit('setInteractive', [config.name, fingerprint, Date.now()]).catch(onTrouble);
      return true;
    },
  };
}

/** Over HTTP each question has the stream of its call; what comes on none is by the protocol about none. */
const canBe = ({ transport }: ServerConfig): boolean => transport !== 'http';

/** A hash, because a definition may hold secrets. */
function fingerprintOf({ settings, ...definition }: ServerConfig): string {
  return createHash('sha256').update(JSON.stringify(definition)).digest('base64url');
}
