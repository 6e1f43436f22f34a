// What the CLI may ask of the daemon over the control socket, beside calls.

import { setTimeout as wait } from 'node:timers/promises';
import type { Catalog } from '../catalog/catalog.ts';
import { ALL_KINDS, isKind } from '../catalog/kinds.ts';
import type { Difference } from '../config/difference.ts';
import { TroupeError } from '../protocol/failures.ts';
import type { Fleet } from '../servers/fleet.ts';
import type { Member } from '../servers/member.ts';
import type { OAuth } from '../servers/oauth/oauth.ts';
import type { ServerState } from '../servers/states.ts';
import { loginMethods } from './logins.ts';
import type { Handlers } from './operation.ts';
import { serverStatus } from './status.ts';

export type MethodsWorld = {
  readonly fleet: Fleet;
  /** Throws while there is no remote server. */
  readonly oauth: () => OAuth;
  readonly catalog: Catalog;
  readonly status: () => object;
  readonly environment: () => object;
  readonly reload: () => Promise<Difference>;
  readonly stop: () => void;
  /** Further methods, of asks and roots. */
  readonly more: Handlers;
};

const SETTLED: Record<'start' | 'stop' | 'restart', readonly ServerState[]> = {
  start: ['ready', 'failed', 'needs login'],
  stop: ['stopped'],
  restart: ['ready', 'failed', 'needs login'],
};

export function controlMethods({
  fleet,
  oauth,
  catalog,
  status,
  environment,
  reload,
  stop,
  more,
}: MethodsWorld): Handlers {
  function known(name: unknown): Member {
    const member = fleet.member(String(name));
    if (!member) throw new TroupeError('unknownServer', `there is no server ${String(name)}; troupe ps lists them`);
    return member;
  }

  const command =
    (type: 'start' | 'stop' | 'restart') =>
    async ({ server }: Record<string, unknown>) => {
      const member = known(server);
      const before = member.since;
      fleet.tell(member.name, { type });
      // A server that was already where it is told to go does not change its state; all others do at once.
      const isThere = () => SETTLED[type].includes(member.state) && (member.since !== before || type !== 'restart');
      const { openMs, drainMs, stdinMs, termMs } = member.config.settings;
      const deadline = performance.now() + openMs + drainMs + stdinMs + termMs + 2_000;
      while (!isThere() && performance.now() < deadline) await wait(20);
      return serverStatus(member, catalog);
    };

  return {
    ...more,
    status,
    env: environment,
    list: ({ kind, server }) => {
      if (!isKind(String(kind))) throw new TroupeError('invalid', `kind must be one of ${ALL_KINDS.join(', ')}`);
      return listOf(server === undefined ? fleet.members() : [known(server)], String(kind) as 'tools', catalog);
    },
    ...loginMethods({
      oauth,
      member: (name) => fleet.member(name),
      restart: (name) => fleet.tell(name, { type: 'restart' }),
    }),
    start: command('start'),
    stop: command('stop'),
    restart: command('restart'),
    reload: async () => {
      const { added, removed, relaunched, retuned } = await reload();
      const names = (configs: Difference['added']) => configs.map(({ name }) => name);
      return { added: names(added), removed, relaunched: names(relaunched), retuned: names(retuned) };
    },
    down: () => {
      setImmediate(stop); // the answer goes out first
      return {};
    },
  };
}

/** The definitions as their servers wrote them, and which servers have not been heard of yet. */
function listOf(members: readonly Member[], kind: 'tools', catalog: Catalog): Buffer {
  const own = members.filter(({ name, server }) => name === server);
  const items = own.flatMap(({ server }) =>
    catalog
      .get(server, kind)
      .entries.map(({ bytes }) => `{"server":${JSON.stringify(server)},"item":${bytes.toString()}}`),
  );
  const missing = own
    .filter(({ server }) => catalog.get(server, kind).hash === '')
    .map(({ server, state, why }) => ({ server, state, why }));
  return Buffer.from(`{"items":[${items.join(',')}],"missing":${JSON.stringify(missing)}}`);
}
