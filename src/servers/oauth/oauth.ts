// The OAuth 2.1 client of the daemon: an authorizer for each remote server, the logins under way, and a look now and then
// for logins that another daemon on the same state directory has done.

import { randomUUID } from 'node:crypto';
import type { RemoteServer } from '../../config/schema.ts';
import { TroupeError } from '../../protocol/failures.ts';
import { createLeases } from '../../store/lease.ts';
import type { Store } from '../../store/store.ts';
import type { Member } from '../member.ts';
import type { Authorizer } from '../remote/authorizer.ts';
import { authorizerOf } from './authorizer.ts';
import { beginLogin, type Login } from './login.ts';
import { type Account, createVault } from './vault.ts';

type Server = Pick<Member, 'name' | 'config' | 'onBehalfOf' | 'state'>;

export type OAuthOptions = {
  readonly store: Store;
  /** The state directory, which holds the key. */
  readonly directory: string;
  readonly members: () => readonly Server[];
  /** A person has logged in to a server that needs it; called every second until the server has left that state. */
  readonly onLogin: (name: string) => void;
  /** Tokens and the like have come into our hands. */
  readonly onSecrets?: (values: readonly string[]) => void;
  readonly loginMs?: number;
};
export type OAuth = ReturnType<typeof createOAuth>;

const LOGIN_MS = 600_000;
const LOOK_MS = 1_000;
const MAX_LOGINS = 16;
const MAX_REFUSED = 10_000;

type Known = { readonly login: Login; readonly account: string; isOver: boolean };

export function createOAuth({ store, directory, members, onLogin, onSecrets, loginMs = LOGIN_MS }: OAuthOptions) {
  const vault = createVault(store, directory, onSecrets);
  const leases = createLeases(store);
  const logins = new Map<string, Known>();

  /** The login of each account that its server did not take for enough: only another one can be. */
  const refused = new Map<string, number | undefined>();

  function look(): void {
    for (const { name, config, onBehalfOf, state } of members()) {
      if (state !== 'needs login' || config.transport === 'stdio') continue;
      const account = accountOf(config, onBehalfOf);
      const { loggedInAt } = read(account)?.value ?? {};
      if (loggedInAt !== undefined && loggedInAt !== refused.get(JSON.stringify(account))) onLogin(name);
    }
  }
  const read = (account: Account) => {
    try {
      return vault.grant(account);
    } catch {
      return undefined; // the store reports its own trouble, and the next look comes soon
    }
  };
  const timer = setInterval(look, LOOK_MS);
  timer.unref();

  return {
    /** For remote servers only: processes of this machine need no login. */
    authorizerOf({ config, onBehalfOf }: Pick<Member, 'config' | 'onBehalfOf'>): Authorizer {
      if (config.transport === 'stdio') throw new TroupeError('internal', `${config.name} is no remote server`);
      const account = accountOf(config, onBehalfOf);
      const authorizer = authorizerOf({ vault, leases }, config, onBehalfOf);
      return {
        headers: authorizer.headers,
        challenged(response) {
          const [oldest] = refused.keys();
          if (oldest !== undefined && refused.size >= MAX_REFUSED) refused.delete(oldest);
          refused.set(JSON.stringify(account), read(account)?.value.loggedInAt);
          return authorizer.challenged(response);
        },
      };
    },

    /** The URL to open and the login's id, or undefined when the server needs no login. */
    async login(server: RemoteServer, principal: string): Promise<{ id: string; url: string } | undefined> {
      const account = accountOf(server, principal);
      const key = JSON.stringify(account);
      for (const known of logins.values())
        if (known.account === key) known.login.cancel(`another login at ${server.name} was begun`);
      if ([...logins.values()].filter(({ isOver }) => !isOver).length >= MAX_LOGINS)
        throw new TroupeError('busy', `${MAX_LOGINS} logins are under way; finish one of them, or try later`);
      const login = await beginLogin({ server, account, vault, timeoutMs: loginMs });
      if (!login) return undefined;
      const id = randomUUID();
      const known: Known = { login, account: key, isOver: false };
      logins.set(id, known);
      const forget = () => {
        known.isOver = true;
        setTimeout(() => logins.delete(id), 60_000).unref(); // a late question for the outcome is still answered
      };
      void login.done.then(look, () => {}).finally(forget);
      return { id, url: login.url };
    },

    /** Settles when the login ends; undefined when there is no such login. */
    outcome: (id: string): Promise<void> | undefined => logins.get(id)?.login.done,

    logout: (server: RemoteServer, principal: string): Promise<void> => vault.forget(accountOf(server, principal)),
    isLoggedIn: (server: RemoteServer, principal: string): boolean =>
      vault.grant(accountOf(server, principal)) !== undefined,

    close(): void {
      clearInterval(timer);
      for (const { login } of logins.values()) login.cancel('troupe is stopping');
    },
  };
}

const accountOf = ({ name, url }: RemoteServer, principal: string): Account => ({
  server: name,
  resource: url,
  principal,
});
