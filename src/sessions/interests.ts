// What a host wants to hear of: updates of the resources it subscribed to, and log lines of a level. Both wishes are in the
// store, so that they hold after a restart, and both are passed on to the servers.

import type { View } from '../catalog/view.ts';
import { withTextAt } from '../protocol/edit.ts';
import { TroupeError } from '../protocol/failures.ts';
import { textAt } from '../protocol/json.ts';
import { LEVELS, type Level, levelOf } from '../protocol/signals.ts';
import { mustOffer } from '../servers/policy.ts';
import { sessionListener } from '../servers/subscriptions.ts';
import type { SessionRow, Store } from '../store/store.ts';
import type { SessionPorts } from './ports.ts';
import { isMany, type Viewer } from './scopes.ts';
import { resource } from './targets.ts';

const EMPTY = Buffer.from('{}');
const MAX_SUBSCRIPTIONS = 1_000;
/** What is listened to is kept, in memory and in the store. */
const MAX_URI = 8_192;
const AGREE_MS = 1_000;

export function createInterests(ports: SessionPorts, viewer: Viewer, first: Level | undefined) {
  const { world, fleet, store, scopes, setLevels } = ports;
  const { principal, session } = viewer;
  const subscriptions = new Map<string, { server: string; uri: string }>();
  const listener = sessionListener(session);
  let level = first;
  let agreedAt = world.now();

  /** A subscription of a session has no lease: it holds for as long as the session is in memory. */
  async function listen(server: string, uri: string): Promise<void> {
    const process = fleet.homeFor(server, principal, session);
    if (!process) throw new TroupeError('unknownServer', `server ${server} was removed`);
    mustOffer(process, 'resources/subscribe');
    fleet.want(process);
    await process.subscriptions.add(uri, listener, Number.POSITIVE_INFINITY);
    subscriptions.set(keyOf(server, uri), { server, uri });
  }

  async function forget(server: string, uri: string): Promise<void> {
    subscriptions.delete(keyOf(server, uri));
    const first = fleet.knownFor(server, principal, session);
    await (first?.homes.of(session) ?? first)?.subscriptions.remove(uri, listener);
  }

  /** The rows decide: another daemon may have been told that the host no longer listens. */
  function agree(): void {
    if (world.now() - agreedAt < AGREE_MS) return;
    agreedAt = world.now();
    const rows = new Set(rowsOf(store, session).map((row) => keyOf(row.server, row.uri)));
    for (const [key, { server, uri }] of subscriptions) {
      if (rows.has(key)) continue;
      void forget(server, uri).catch(() => {}); // the server is gone, and its subscriptions with it
    }
    level = levelOf(store.get<SessionRow>('session', [session])?.level ?? undefined) ?? level;
  }

  return {
    async subscribe(view: View, params: Buffer): Promise<Buffer> {
      const { server, name: uri } = resource(view, params);
      if (subscriptions.size >= MAX_SUBSCRIPTIONS)
        throw new TroupeError('busy', `the session already listens to ${MAX_SUBSCRIPTIONS} resources`);
      if (uri.length > MAX_URI)
        throw new TroupeError('invalid', `a URI to listen to has at most ${MAX_URI} characters`);
      await listen(server, uri);
      await store.commit('addSubscription', [session, server, uri]);
      return EMPTY;
    },
    async unsubscribe(view: View, params: Buffer): Promise<Buffer> {
      const { server, name: uri } = resource(view, params);
      await store.commit('deleteSubscription', [session, server, uri]);
      await forget(server, uri);
      return EMPTY;
    },
    async setLevel(params: Buffer): Promise<Buffer> {
      const wanted = levelIn(params);
      const members = scopes.members(viewer);
      const [only] = members;
      if (!isMany(viewer.scope)) mustOffer(only, 'logging/setLevel');
      await store.commit('setSessionLevel', [wanted, session]);
      level = wanted;
      for (const each of members) setLevels(each);
      return EMPTY;
    },
    /** An update may be of a part of what was subscribed to. */
    hears(server: string, uri: string): boolean {
      if (subscriptions.size === 0) return false;
      agree();
      for (const each of subscriptions.values()) if (each.server === server && isPartOf(uri, each.uri)) return true;
      return false;
    },
    async restore(): Promise<void> {
      const rows = rowsOf(store, session);
      for (const { server, uri } of rows) subscriptions.set(keyOf(server, uri), { server, uri });
      if (level) for (const each of scopes.members(viewer)) setLevels(each);
      await Promise.allSettled(rows.map(({ server, uri }) => listen(server, uri)));
    },
    async dispose(): Promise<void> {
      await Promise.allSettled([...subscriptions.values()].map(({ server, uri }) => forget(server, uri)));
      if (level) for (const each of scopes.members(viewer)) setLevels(each);
    },
    level: (): Level | undefined => level,
    /** How many resources it listens to. */
    count: (): number => subscriptions.size,
    /** Whether a server was told something that holds for one connection of it. */
    isTold: (): boolean => level !== undefined || subscriptions.size > 0,
  };
}

function levelIn(params: Buffer): Level {
  const level = levelOf(textAt(params, ['level']));
  if (!level) throw new TroupeError('invalid', `level must be one of ${LEVELS.join(', ')}`);
  return level;
}

/** The update with the URI that the host knows the resource by. */
export function updateFor(view: View, server: string, uri: string, params: Buffer): Buffer | undefined {
  const shown = view.uriOf(server, uri);
  return shown === uri ? params : withTextAt(params, ['uri'], shown);
}

const isPartOf = (uri: string, whole: string): boolean =>
  uri === whole || uri.startsWith(whole.endsWith('/') ? whole : `${whole}/`);

const rowsOf = (store: Store, session: string) =>
  store.all<{ server: string; uri: string }>('sessionSubscriptions', [session]);

const keyOf = (server: string, uri: string): string => `${server} ${uri}`;
