// The roots of servers: those of the configuration, those that the owner has added, and those of the hosts on whose behalf a
// server works. A server hears of places that exist, by their real paths; never of a host's that lie outside what is allowed,
// and never of another principal's.

import { isAbsolute, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Logger } from 'pino';
import type { Config } from '../config/schema.ts';
import { sentence, TroupeError } from '../protocol/failures.ts';
import { sessionHolder } from '../servers/instances.ts';
import type { Member } from '../servers/member.ts';
import type { Store } from '../store/store.ts';
import { createJudge } from './judge.ts';
import { fitName, MAX_BYTES, MAX_ROOTS, type Offers } from './offers.ts';
import { type Problem, pathOf, realName, realPlace } from './places.ts';
import type { Audience, Root, RootSource, RootView } from './root.ts';
import { createRows, type SessionRoots } from './rows.ts';
import { createTelling, type Notify } from './telling.ts';

export type RootsOptions = { readonly config: () => Config; readonly store: Store; readonly logger: Logger };
export type Roots = ReturnType<typeof createRoots>;

type Candidate = readonly [from: RootSource, root: Root];

/** What one server is told of, or one person is shown. */
const MAX_LISTED = 1_000;
const SOON_MS = 20;
/** Another daemon's sessions come and go without a word to us, and so do directories. */
const LOOK_MS = 5_000;

export function createRoots({ config, store, logger }: RootsOptions) {
  const onTrouble = (error: unknown): void => logger.warn(`the roots could not be looked at: ${sentence(error)}`);
  const rows = createRows(store, onTrouble);
  const judge = createJudge({ allowed: () => config().roots.allow, logger });
  const telling = createTelling((member) => listFor(member));
  let soon: NodeJS.Timeout | undefined;
  const timer = setInterval(look, LOOK_MS).unref();

  function look(): void {
    soon = undefined;
    try {
      telling.look();
    } catch (error) {
      onTrouble(error);
    }
  }

  function refresh(): void {
    rows.forget();
    soon ??= setTimeout(look, SOON_MS).unref();
  }

  function candidates(isMeant: (session: SessionRoots) => boolean): Candidate[] {
    const { owner, sessions } = rows.get();
    const configured = config().roots.list.map((path) => ({ uri: pathToFileURL(path).href }));
    const offered = sessions.filter(isMeant).flatMap(({ roots }) => roots);
    return [...as('config', configured), ...as('owner', owner), ...as('host', offered)].slice(0, MAX_LISTED);
  }

  function listFor(audience: Audience): Root[] {
    const found = new Map<string, Root>();
    for (const [from, root] of candidates((session) => isSeenBy(session, audience, config()))) {
      const { problem, from: _, ...judged } = judge(from, root);
      if (problem === undefined && !found.has(judged.uri)) found.set(judged.uri, judged);
    }
    return [...found.values()];
  }

  /** Where `troupe roots` is told to go, which may be spelled as a path or as a URI. */
  function pathFrom(written: string): string {
    const found = /^file:/i.test(written) ? pathOf(written) : absolute(written);
    if ('problem' in found) throw new TroupeError('invalid', `${written.slice(0, 200)} ${found.problem}`);
    return resolve(found.path);
  }

  return {
    /** What that process is told of, in the order of who says so. */
    for: listFor,
    /** The same for a server that asks: from now on it knows. */
    answer(member: Member): Root[] {
      const list = listFor(member);
      telling.asked(member, list);
      return list;
    },
    list(): RootView[] {
      const views = candidates(() => true).map(([from, root]) => judge(from, root));
      return [...new Map(views.map((view) => [`${view.from} ${view.uri}`, view])).values()];
    },
    async add(written: string, name?: string): Promise<string> {
      const place = realPlace(pathFrom(written));
      if ('problem' in place) throw new TroupeError('invalid', `${written} ${place.problem}`);
      if (!place.isDirectory) throw new TroupeError('invalid', `${written} is no directory; add the one it lies in`);
      const uri = pathToFileURL(place.path).href;
      rows.forget();
      const known = rows.get().owner.find((each) => each.uri === uri);
      if (known && (name === undefined || known.name === fitName(name)))
        throw new TroupeError('invalid', `${place.path} is a root already; troupe roots lists them`);
      await store.commit('addRoot', [uri, name ? fitName(name) : null, Date.now()]);
      refresh();
      return uri;
    },
    /** By the name it was added with, or has, or had while it was there. */
    async remove(written: string): Promise<{ readonly uri: string; readonly wasThere: boolean }> {
      const path = pathFrom(written);
      const names = [path, realName(path)].map((each) => pathToFileURL(each).href);
      rows.forget();
      const found = rows.get().owner.find(({ uri }) => names.includes(uri));
      const isConfigured = config().roots.list.some((each) => names.includes(pathToFileURL(each).href));
      if (!found && isConfigured)
        throw new TroupeError('invalid', `${path} is in the configuration; take it out of x-troupe.roots.list`);
      if (!found) return { uri: names[1] ?? '', wasThere: false };
      await store.commit('deleteRoot', [found.uri]);
      refresh();
      return { uri: found.uri, wasThere: true };
    },
    /** What a session's host offers from now on; nothing once it has ended. Never rejects. */
    async host(session: string, offers: Offers | undefined): Promise<void> {
      try {
        await store.commit('setSessionRoots', [offers ? JSON.stringify(offers.roots) : null, session]);
        for (const root of offers?.roots ?? []) judge('host', root);
        if (offers?.isCut)
          logger.warn(`a host offers more than ${MAX_ROOTS} roots or ${MAX_BYTES} bytes of them; the rest is left out`);
        refresh();
      } catch (error) {
        logger.warn(`the roots of a session are not kept: ${sentence(error)}`);
      }
    },
    /** A server's session is open, and is told of changes until `moved` finds it closed. */
    opened: (member: Member, notify: Notify): void => telling.opened(member, notify),
    moved: (member: Member): void => telling.moved(member),
    /** Something that the list is made of may be another. */
    refresh,
    close(): void {
      clearInterval(timer);
      clearTimeout(soon);
      telling.close();
    },
  };
}

const as = (from: RootSource, roots: readonly Root[]): Candidate[] => roots.map((root) => [from, root]);

const absolute = (path: string): { path: string } | Problem =>
  isAbsolute(path) && !path.includes('\0') ? { path } : { problem: 'is no absolute path; write it from / on' };

/**
 * A process hears of the sessions of its principal that can call it. One that serves a single session hears of that one only.
 */
function isSeenBy({ id, principal, scope }: SessionRoots, audience: Audience, { profiles }: Config): boolean {
  if (principal !== audience.onBehalfOf) return false;
  const isOfOneSession = audience.principal !== audience.onBehalfOf && audience.principal.startsWith('session-');
  if (isOfOneSession && !audience.principal.startsWith(sessionHolder(id))) return false;
  if (!scope.startsWith('@')) return scope === '' || scope === audience.server;
  const name = scope.slice(1);
  return Object.hasOwn(profiles, name) && profiles[name]?.servers.includes(audience.server) === true;
}

/** The result of a server's roots/list. */
export const answerRoots = (member: Member, roots: Pick<Roots, 'answer'>): Buffer =>
  Buffer.from(JSON.stringify({ roots: roots.answer(member) }));
