// The OAuth 2.1 client of the daemon: an authorizer for each remote server, the logins under way, and a look now and then
// for logins that another daemon on the same state directory has done.

import { randomUUID } from 'node:crypto';
import type { RemoteServer } from '../../config/schema.ts';
import { TroupeError } from '../../protocol/failures.ts';
import type { Store } from '../../store/store.ts';
import type { Member } from '../member.ts';
import type { Authorizer } from '../remote/authorizer.ts';
import { authorizerOf } from './authorizer.ts';
import { createLeases } from './lease.ts';
import { beginLogin, type Login } from './login.ts';
import { createVault, type Place } from './vault.ts';

type Server = Pick<Member, 'name' | 'config' | 'onBehalfOf' | 'state' | 'since'>;

export type OAuthOptions = {
  readonly store: Store;
  /** The state directory, which holds the key. */
  readonly directory: string;
  readonly members: () => readonly Server[];
  /** There is a grant for a server that needed a login; told until the server has moved on. */
  readonly onLogin: (name: string) => void;
  readonly loginMs?: number;
};
export type OAuth = ReturnType<typeof createOAuth>;

const LOGIN_MS = 600_000;
const LOOK_MS = 1_000;
const MAX_LOGINS = 16;
/** A login may be done in the moment before the server says that it needs one. */
const SLACK_MS = 1_000;

type Known = { readonly login: Login; readonly place: string; isOver: boolean };

export function createOAuth({ store, directory, members, onLogin, loginMs = LOGIN_MS }: OAuthOptions) {
  const vault = createVault(store, directory);
  const leases = createLeases(store);
  const logins = new Map<string, Known>();

  function look(): void {
    for (const { name, config, onBehalfOf, state, since } of members()) {
      if (state !== 'needs login' || config.transport === 'stdio') continue;
      const found = read(placeOf(config, onBehalfOf));
      if (found && found.value.obtainedAt > since - SLACK_MS) onLogin(name);
    }
  }
  const read = (place: Place) => {
    try {
      return vault.grant(place);
    } catch {
      return undefined; // the store says itself what is wrong with it, and the next look comes soon
    }
  };
  const timer = setInterval(look, LOOK_MS);
  timer.unref();

  return {
    /** Who we are to a remote server; of the owner's processes nobody asks. */
    authorizerOf({ config, onBehalfOf }: Pick<Member, 'config' | 'onBehalfOf'>): Authorizer {
      if (config.transport === 'stdio') throw new TroupeError('internal', `${config.name} is no remote server`);
      return authorizerOf({ vault, leases }, config, onBehalfOf);
    },

    /** The URL to open and the login's id, or nothing when the server lets everybody in. */
    async login(server: RemoteServer, principal: string): Promise<{ id: string; url: string } | undefined> {
      const place = placeOf(server, principal);
      const key = JSON.stringify(place);
      for (const known of logins.values())
        if (known.place === key) known.login.cancel(`another login at ${server.name} was begun`);
      if ([...logins.values()].filter(({ isOver }) => !isOver).length >= MAX_LOGINS)
        throw new TroupeError('busy', `${MAX_LOGINS} logins are under way; finish one of them, or try later`);
      const login = await beginLogin({ server, place, vault, timeoutMs: loginMs });
      if (!login) return undefined;
      const id = randomUUID();
      const known: Known = { login, place: key, isOver: false };
      logins.set(id, known);
      const forget = () => {
        known.isOver = true;
        setTimeout(() => logins.delete(id), 60_000).unref(); // who asks late is still told
      };
      void login.done.then(look, () => {}).finally(forget);
      return { id, url: login.url };
    },

    /** The login's end; nothing when there is no such login. */
    outcome: (id: string): Promise<void> | undefined => logins.get(id)?.login.done,

    logout: (server: RemoteServer, principal: string): Promise<void> => vault.forget(placeOf(server, principal)),
    isLoggedIn: (server: RemoteServer, principal: string): boolean =>
      vault.grant(placeOf(server, principal)) !== undefined,

    close(): void {
      clearInterval(timer);
      for (const { login } of logins.values()) login.cancel('troupe is stopping');
    },
  };
}

const placeOf = ({ name, url }: RemoteServer, principal: string): Place => ({
  server: name,
  resource: url,
  principal,
});
