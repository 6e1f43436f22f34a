// What a host sees behind the endpoint it came to: all servers, one of them, or a configured profile. Hosts of one
// principal at one endpoint share a view, unless some server there gives each session a process of its own.

import type { Catalog } from '../catalog/catalog.ts';
import { runsTasks } from '../catalog/facts.ts';
import { supportIn } from '../catalog/task-support.ts';
import { createView, type Source, type View } from '../catalog/view.ts';
import type { Config } from '../config/schema.ts';
import type { Fleet } from '../servers/fleet.ts';
import type { Member } from '../servers/member.ts';
import { meaningOf } from '../servers/states.ts';
import type { Scope } from './host.ts';

export type ScopesOptions = { readonly config: () => Config; readonly fleet: Fleet; readonly catalog: Catalog };
/** For whom a view is made: a principal, or one session where processes are not shared. */
export type Viewer = {
  readonly scope: Scope;
  readonly principal: string;
  readonly session: string;
  /** The version spoken with the host has tasks. */
  readonly knowsTasks?: boolean;
};
export type Scopes = ReturnType<typeof createScopes>;

/** A caller that may name any principal must not fill the memory with views; they are quickly made again. */
const MAX_VIEWS = 256;

export function createScopes({ config, fleet, catalog }: ScopesOptions) {
  const views = new Map<string, View>();
  let states = 0;
  let epoch = 0;

  const serversOf = (scope: Scope): string[] | undefined => serversIn(config(), scope);

  function sources({ scope, principal, session, knowsTasks }: Viewer): Source[] {
    return (serversOf(scope) ?? []).flatMap((server) => {
      const member = fleet.knownFor(server, principal, session);
      if (!member || (isMany(scope) && meaningOf(member.state).isDown)) return [];
      // Until the lists of a principal's own process are read, it is expected to offer what the owner's does.
      const key = catalog.get(member.name, 'tools').hash ? member.name : server;
      return [{ server, key, ...(knowsTasks && { tasks: isTaskServer(member) ? 'its own' : 'ours' }) }];
    });
  }

  const isTaskServer = ({ facts, server }: Member): boolean => runsTasks(facts ?? fleet.member(server)?.facts);

  /** Asked for with every call, so made anew only when a server or a list has changed. */
  function cached(viewer: Viewer): () => Source[] {
    let made: { states: number; lists: number; sources: Source[] } | undefined;
    return () => {
      const lists = catalog.version;
      if (made?.states !== states || made.lists !== lists) made = { states, lists, sources: sources(viewer) };
      return made.sources;
    };
  }

  const isOwn = (scope: Scope): boolean =>
    config().servers.some(({ name, settings }) => settings.share === 'session' && serversOf(scope)?.includes(name));

  return {
    serversOf,
    sources,
    /** What a server says of calling that tool as a task; undefined where troupe runs its tasks, or nothing is known. */
    taskSupport({ principal, session }: Pick<Viewer, 'principal' | 'session'>, server: string, tool: string) {
      const member = fleet.knownFor(server, principal, session);
      if (!member || !isTaskServer(member)) return undefined;
      const own = catalog.get(member.name, 'tools');
      return supportIn((own.hash ? own : catalog.get(server, 'tools')).entries).get(tool);
    },
    /** Asked with every request. */
    has: (scope: Scope): boolean =>
      scope === '' || profileIn(config(), scope) !== undefined || config().servers.some(({ name }) => name === scope),
    viewFor(viewer: Viewer): View {
      const { scope, principal, session, knowsTasks } = viewer;
      if (views.size >= MAX_VIEWS) views.clear();
      const key = `${knowsTasks === true} ${scope} ${principal}${isOwn(scope) ? ` ${session}` : ''}`;
      const tools = profileIn(config(), scope)?.tools;
      const view =
        views.get(key) ?? createView(catalog, cached(viewer), { isSingle: !isMany(scope), ...(tools && { tools }) });
      views.set(key, view);
      return view;
    },
    /** A server has another state. */
    changed(): void {
      states++;
    },
    /** The configuration has changed: profiles, servers, who shares what. */
    forget(): void {
      states++;
      epoch++;
      views.clear();
    },
    /** Another number when views that were made before are out of date. */
    get epoch() {
      return epoch;
    },
    forgetSession(session: string): void {
      for (const key of views.keys()) if (key.endsWith(` ${session}`)) views.delete(key);
    },
    /** The processes that the viewer's calls go to, as far as they exist. */
    members: ({ scope, principal, session }: Viewer): Member[] =>
      (serversOf(scope) ?? []).flatMap((server) => fleet.knownFor(server, principal, session) ?? []),
  };
}

export const isMany = (scope: Scope): boolean => scope === '' || scope.startsWith('@');

/** Names in the order of the configuration; undefined for a scope that does not exist. */
function serversIn(config: Config, scope: Scope): string[] | undefined {
  const all = config.servers.filter(({ settings }) => settings.enabled).map(({ name }) => name);
  if (scope === '') return all;
  if (!scope.startsWith('@')) return config.servers.some(({ name }) => name === scope) ? [scope] : undefined;
  const profile = profileIn(config, scope);
  return profile && all.filter((name) => profile.servers.includes(name));
}

function profileIn({ profiles }: Config, scope: Scope) {
  const name = scope.slice(1);
  return scope.startsWith('@') && Object.hasOwn(profiles, name) ? profiles[name] : undefined;
}
