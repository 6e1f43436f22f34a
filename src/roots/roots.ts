// The roots of servers: those of the configuration, those that the owner has added, and those of the hosts on whose behalf a
// server works. A server hears of directories that exist, by their real paths; never of a host's root that lies outside what is
// allowed, and never of another principal's.

import { isAbsolute, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Logger } from 'pino';
import type { Config } from '../config/schema.ts';
import { sentence, TroupeError } from '../protocol/failures.ts';
import { sessionHolder } from '../servers/instances.ts';
import type { Member } from '../servers/member.ts';
import type { Store } from '../store/store.ts';
import { realWorld, type World } from '../world/world.ts';
import { complaintOf, createJudge, onDisk, type Problem, pathOf, realName } from './judge.ts';
import { fitName, MAX_BYTES, MAX_ROOTS, type Offers, readRoots } from './offers.ts';
import type { Audience, Root, RootSource, RootView } from './root.ts';
import { createTelling, type Notify, type Ping } from './telling.ts';

export type RootsOptions = {
  readonly config: () => Config;
  readonly store: Pick<Store, 'all' | 'commit'>;
  readonly logger: Logger;
  readonly world?: World;
};
export type Roots = ReturnType<typeof createRoots>;

type Candidate = readonly [from: RootSource, root: Root];

/** How many roots one server is told of, or one person is shown. */
const MAX_LISTED = 1_000;
const SOON_MS = 20;
const CUT = `a host offers more than ${MAX_ROOTS} roots or ${MAX_BYTES} bytes of them; the rest is left out`;
/** The sessions of other daemons, and directories, come and go without a word to us. */
const LOOK_MS = 5_000;

export function createRoots(options: RootsOptions) {
  const { config, store, logger, world = realWorld } = options;
  const onTrouble = (error: unknown): void => logger.warn(`the roots could not be looked at: ${sentence(error)}`);
  const rows = createRootRows(store, world, onTrouble);
  const judge = createJudge({ allowed: () => config().roots.allow, logger, world });
  const telling = createTelling((member) => listFor(member), world);
  const looking = createLooking(telling.look, world, onTrouble);

  function refresh(): void {
    rows.forget();
    looking.soon();
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

  /** What the host should hear of its roots. Never rejects. */
  async function offer(session: string, offers: Offers | undefined): Promise<string[]> {
    try {
      await store.commit('setSessionRoots', [offers ? JSON.stringify(offers.roots) : null, session]);
      const views = (offers?.roots ?? []).map((root) => judge('host', root));
      refresh();
      if (offers?.isCut) logger.warn(CUT);
      return [
        ...views.flatMap(({ uri, problem }) => (problem ? complaintOf(uri, problem) : [])),
        ...(offers?.isCut ? [CUT] : []),
      ];
    } catch (error) {
      logger.warn(`the roots of a session are not kept: ${sentence(error)}`);
      return [];
    }
  }

  return {
    ...createOwnerRoots({ config, store, rows, world, refresh }),
    /** The roots that a process is told of: those of the configuration first, then the owner's, then the hosts'. */
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
    /** What a session's host offers from now on; nothing once it has ended. */
    host: offer,
    /** A server's session is open, and is told of changes until `moved` finds it closed. */
    opened: (member: Member, notify: Notify, ping: Ping): void => telling.opened(member, notify, ping),
    /** Resolves when the server of this process knows the present list, as far as it asks for it; undefined if it does. */
    told: (member: Member): Promise<void> | undefined => telling.settled(member),
    moved: (member: Member): void => telling.moved(member),
    /** Something that the list is made of may have changed. */
    refresh,
    close(): void {
      looking.close();
      telling.close();
    },
  };
}

/** Looks now and then, and a moment after each change that we know of. */
function createLooking(look: () => void, world: World, onTrouble: (error: unknown) => void) {
  let stopSoon: (() => void) | undefined;
  const stop = world.every(LOOK_MS, tryToLook);

  function tryToLook(): void {
    stopSoon = undefined;
    try {
      look();
    } catch (error) {
      onTrouble(error);
    }
  }

  return {
    soon(): void {
      stopSoon ??= world.after(SOON_MS, tryToLook);
    },
    close(): void {
      stop();
      stopSoon?.();
    },
  };
}

type OwnerOptions = Pick<RootsOptions, 'config' | 'store'> & {
  readonly rows: RootRows;
  readonly world: World;
  readonly refresh: () => void;
};

/** The roots that the owner of this machine adds and removes with `troupe roots`. */
function createOwnerRoots({ config, store, rows, world, refresh }: OwnerOptions) {
  return {
    async add(written: string, name?: string): Promise<string> {
      const found = onDisk(pathFrom(written));
      if ('problem' in found) throw new TroupeError('invalid', `${written} ${found.problem}`);
      if (!found.isDirectory) throw new TroupeError('invalid', `${written} is no directory; add the one it lies in`);
      const uri = pathToFileURL(found.path).href;
      rows.forget();
      const known = rows.get().owner.find((each) => each.uri === uri);
      if (known && (name === undefined || known.name === fitName(name)))
        throw new TroupeError('invalid', `${found.path} is a root already; troupe roots lists them`);
      await store.commit('addRoot', [uri, name ? fitName(name) : null, world.date()]);
      refresh();
      return uri;
    },
    /** By the path under which it was added, or the real path that it has, or had while it existed. */
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
  };
}

/** What `troupe roots` is given may be spelled as a path or as a URI. */
function pathFrom(written: string): string {
  const found = /^file:/i.test(written) ? pathOf(written) : absolute(written);
  if ('problem' in found) throw new TroupeError('invalid', `${written.slice(0, 200)} ${found.problem}`);
  return resolve(found.path);
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

// ── Roots on the disk: the owner's, and those of every session in use, whichever daemon serves it ──

type SessionRoots = {
  readonly id: string;
  readonly principal: string;
  /** The endpoint it came to. */
  readonly scope: string;
  readonly roots: readonly Root[];
};
type RootRows = ReturnType<typeof createRootRows>;
/** All roots in the database. */
type Recorded = { readonly owner: readonly Root[]; readonly sessions: readonly SessionRoots[] };

const FRESH_MS = 1_000;
/** A session in use is touched every minute. One that is not is kept for a day, but its host counts as gone. */
const PRESENT_MS = 5 * 60_000;
const NONE: Recorded = { owner: [], sessions: [] };

export function createRootRows(
  store: Pick<Store, 'all'>,
  world: Pick<World, 'date' | 'now'>,
  onTrouble: (error: unknown) => void,
) {
  let rows = NONE;
  let readAt = Number.NEGATIVE_INFINITY;

  function read(): Recorded {
    const owner = store.all<{ uri: string; name: string | null }>('roots');
    const sessions = store.all<Omit<SessionRoots, 'roots'> & { roots: string }>('sessionRoots', [
      world.date() - PRESENT_MS,
    ]);
    return {
      owner: owner.map(({ uri, name }) => ({ uri, ...(name && { name }) })),
      sessions: sessions.map((row) => ({ ...row, roots: readRoots(Buffer.from(row.roots))?.roots ?? [] })),
    };
  }

  return {
    /** Not older than a second, unless the database cannot be read. */
    get(): Recorded {
      if (world.now() - readAt <= FRESH_MS) return rows;
      readAt = world.now();
      try {
        rows = read();
      } catch (error) {
        onTrouble(error);
      }
      return rows;
    },
    /** The next `get` looks again. */
    forget(): void {
      readAt = Number.NEGATIVE_INFINITY;
    },
  };
}
