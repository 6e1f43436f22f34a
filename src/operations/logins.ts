// Logins to remote servers. A login takes as long as a person takes, so its URL is answered first, and whoever waits for the
// outcome asks again and again.

import { TroupeError } from '../protocol/failures.ts';
import type { Fleet } from '../servers/fleet.ts';
import type { OAuth } from '../servers/oauth/oauth.ts';
import { knownServer } from './servers.ts';

type Logins = {
  readonly fleet: Pick<Fleet, 'member' | 'tell'>;
  /** Throws while there is no remote server. */
  readonly oauth: () => Pick<OAuth, 'login' | 'logout' | 'outcome' | 'isLoggedIn'>;
};

/** `pending`: ask again. Every other end but `done` is an error with its sentence. */
export type LoginOutcome = { readonly server: string; readonly outcome: 'done' | 'pending' };
export type LoginStart =
  | { readonly server: string; readonly outcome: 'not needed'; readonly why: string }
  | { readonly server: string; readonly id: string; readonly url: string };

/** Shorter than the CLI's patience with one request. */
const WAIT_MS = 8_000;

export async function login({ fleet, oauth }: Logins, server: string): Promise<LoginStart> {
  const { name, config, onBehalfOf } = knownServer(fleet, server);
  const notNeeded = (why: string): LoginStart => ({ server: name, outcome: 'not needed', why });
  if (config.transport === 'stdio') return notNeeded(`server ${name} is a process of this machine and needs no login`);
  if (config.oauth.grant === 'client_credentials')
    return notNeeded(`server ${name} has credentials of its own in the configuration and needs no login`);
  const begun = await oauth().login(config, onBehalfOf);
  return begun ? { server: name, ...begun } : notNeeded(`server ${name} needs no login`);
}

export async function loginWait({ oauth }: Pick<Logins, 'oauth'>, server: string, id: string): Promise<LoginOutcome> {
  const ended = oauth().outcome(id);
  if (!ended) throw new TroupeError('invalid', `there is no such login at ${server}; run troupe login ${server} again`);
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<'pending'>((resolve) => {
    timer = setTimeout(() => resolve('pending'), WAIT_MS);
  });
  const outcome = await Promise.race([ended.then(() => 'done' as const), late]).finally(() => clearTimeout(timer));
  return { server, outcome };
}

export async function logout({ fleet, oauth }: Logins, server: string) {
  const { name, config, onBehalfOf, state } = knownServer(fleet, server);
  if (config.transport === 'stdio') return { server: name, wasLoggedIn: false };
  const wasLoggedIn = oauth().isLoggedIn(config, onBehalfOf);
  await oauth().logout(config, onBehalfOf);
  if (wasLoggedIn && state === 'ready') fleet.tell(name, { type: 'restart' }); // its session was opened with the old login
  return { server: name, wasLoggedIn };
}
