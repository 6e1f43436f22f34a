// `login`, `loginWait` and `logout` on the control socket. A login takes as long as a person takes, so its URL is answered
// first, and whoever waits for the outcome asks again and again.

import { TroupeError } from '../protocol/failures.ts';
import type { Member } from '../servers/member.ts';
import type { OAuth } from '../servers/oauth/oauth.ts';

export type LoginWorld = {
  /** Throws while there is no remote server. */
  readonly oauth: () => OAuth;
  readonly member: (name: string) => Member | undefined;
  readonly restart: (name: string) => void;
};

/** `pending`: ask again. Every other end but `done` is an error with its sentence. */
export type LoginOutcome = { readonly server: string; readonly outcome: 'done' | 'pending' };
export type LoginStart =
  | { readonly server: string; readonly outcome: 'not needed'; readonly why: string }
  | { readonly server: string; readonly id: string; readonly url: string };

/** Below the patience of whoever asks. */
const WAIT_MS = 8_000;

export function loginMethods({ oauth, member, restart }: LoginWorld) {
  function known(name: unknown): Member {
    const found = member(String(name));
    if (!found) throw new TroupeError('unknownServer', `there is no server ${String(name)}; troupe ps lists them`);
    return found;
  }

  return {
    async login({ server }: Record<string, unknown>): Promise<LoginStart> {
      const { name, config, onBehalfOf } = known(server);
      const spare = (why: string): LoginStart => ({ server: name, outcome: 'not needed', why });
      if (config.transport === 'stdio') return spare(`server ${name} is a process of this machine and needs no login`);
      if (config.oauth.grant === 'client_credentials')
        return spare(`server ${name} has credentials of its own in the configuration and needs no login`);
      const begun = await oauth().login(config, onBehalfOf);
      return begun ? { server: name, ...begun } : spare(`server ${name} needs no login`);
    },

    async loginWait({ server, id }: Record<string, unknown>): Promise<LoginOutcome> {
      const name = String(server);
      const ended = oauth().outcome(String(id));
      if (!ended) throw new TroupeError('invalid', `there is no such login at ${name}; run troupe login ${name} again`);
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<'pending'>((resolve) => {
        timer = setTimeout(() => resolve('pending'), WAIT_MS);
      });
      const outcome = await Promise.race([ended.then(() => 'done' as const), late]).finally(() => clearTimeout(timer));
      return { server: name, outcome };
    },

    async logout({ server }: Record<string, unknown>): Promise<{ server: string; wasLoggedIn: boolean }> {
      const { name, config, onBehalfOf, state } = known(server);
      if (config.transport === 'stdio') return { server: name, wasLoggedIn: false };
      const wasLoggedIn = oauth().isLoggedIn(config, onBehalfOf);
      await oauth().logout(config, onBehalfOf);
      if (wasLoggedIn && state === 'ready') restart(name); // what it was let in with is no longer to be used
      return { server: name, wasLoggedIn };
    },
  };
}
