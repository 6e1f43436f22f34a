// What a host sees of several servers: their lists as one, under names that tell them apart, and for each such name the
// server that has it. To find a name is a look into a map, which is made again only when a list or the servers change.

import type { Catalog } from './catalog.ts';
import { KINDS, type Kind } from './kinds.ts';
import {
  claimants,
  contentHash,
  mergedLists,
  type Part,
  type Shown,
  type Source,
  type Target,
  withoutDoubles,
} from './merge.ts';
import { exposedName, isQualified, originOf, originOfUri, prefixed, qualifierOf, renamed } from './naming.ts';
import { pageFrom } from './pages.ts';
import { permission } from './patterns.ts';
import { offeredAsTask } from './task-support.ts';
import { serverByTemplate } from './templates.ts';
import { serverByTool, urisNamedIn, withShownUri } from './tool-uris.ts';

export type { Source, Target } from './merge.ts';
export type View = {
  /** The MCP result of one page; throws TroupeError('invalid') for a cursor that is not of this list. */
  page(kind: Kind, cursor: string | undefined, maxBytes: number): Buffer;
  find(kind: 'tools' | 'prompts', name: string): Target | undefined;
  /** Takes the text of a template as well, by which a completion names it. */
  findUri(uri: string): Target | undefined;
  /** The URI by which the host knows a server's resource; `findUri` of it gives the server's own. */
  uriOf(server: string, uri: string): string;
  /** Changes exactly when what `page(kind)` shows changes. */
  hash(kind: Kind): string;
};
export type Naming = {
  /** The endpoint of one server: its names, its URIs and all its bytes are left alone. */
  readonly isSingle: boolean;
  readonly tools?: { readonly allow?: string[]; readonly deny?: string[] };
};

/** `sources` are the servers of the scope in the order of the configuration; the same array while they are the same. */
export function createView(catalog: Catalog, sources: () => readonly Source[], naming: Naming): View {
  const { isSingle, tools: rules } = naming;
  const isPermitted = permission(rules ?? {});
  const current = mergedLists(catalog, sources, select);

  function select(kind: Kind, { source: { server }, listing }: Part) {
    const entries = isSingle || KINDS[kind].key !== 'name' ? listing.entries : withoutDoubles(listing);
    if (kind !== 'tools' || !rules) return entries;
    return entries.filter(({ name }) => isPermitted(isSingle ? name : exposedName(server, name)));
  }

  function definitionOf(kind: Kind, { source: { server, tasks }, entry }: Shown): Buffer | undefined {
    const { name } = entry;
    const bytes = kind === 'tools' && tasks === 'ours' ? offeredAsTask(entry.bytes) : entry.bytes;
    if (isSingle) return bytes;
    const { key } = KINDS[kind];
    if (kind === 'tools')
      return renamed(
        withShownUri(bytes, (uri) => uriOf(server, uri)),
        key,
        exposedName(server, name),
      );
    if (key === 'name') return renamed(bytes, key, exposedName(server, name));
    const isPlain = !isQualified(name) && claimants(current(kind).parts, name).length === 1;
    return prefixed(bytes, key, isPlain ? '' : qualifierOf(server));
  }

  function find(kind: 'tools' | 'prompts', name: string): Target | undefined {
    const { parts, byServer, digested } = current(kind);
    if (kind === 'tools' && !isPermitted(name)) return undefined;
    if (isSingle) return parts[0] && { server: parts[0].source.server, name };
    const origin = originOf(name);
    if (!origin) return digested().get(name);
    const listing = byServer.get(origin.server)?.listing;
    // A call may come before the list has been read: then the server itself says whether it has the name.
    return listing && (listing.hash === '' || listing.names.has(origin.name)) ? origin : undefined;
  }

  function findUri(uri: string): Target | undefined {
    const { parts, byServer } = current('resources');
    const qualified = isSingle ? undefined : originOfUri(uri);
    if (qualified) return byServer.has(qualified.server) ? qualified : undefined;
    const server = parts.length > 1 ? serverOf(parts, uri) : parts[0]?.source.server;
    return server === undefined ? undefined : { server, name: uri };
  }

  function serverOf(resources: readonly Part[], uri: string): string | undefined {
    const { parts: templates } = current('templates');
    for (const parts of [resources, templates]) {
      const [owner, another] = claimants(parts, uri);
      if (owner) return another ? undefined : owner.source.server;
    }
    return serverByTemplate(templates, uri) ?? serverByTool(current('tools').parts, uri);
  }

  function uriOf(server: string, uri: string): string {
    if (isSingle) return uri;
    const target = findUri(uri);
    return target?.server === server && target.name === uri ? uri : qualifierOf(server) + uri;
  }

  /** How tools name resources depends on what others list. */
  function hashOf(kind: Kind): string {
    const { parts, hash } = current(kind);
    const named = isSingle || kind !== 'tools' ? [] : parts.flatMap(shownUris);
    return named.length === 0 ? hash() : contentHash(`${hash()}\n${named.join('\n')}`);
  }

  const shownUris = ({ source: { server }, listing }: Part): string[] =>
    [...urisNamedIn(listing.entries)].map((uri) => uriOf(server, uri));

  return {
    page(kind, cursor, maxBytes) {
      const merged = current(kind);
      const at = (index: number) => {
        const shown = merged.at(index);
        return shown && definitionOf(kind, shown);
      };
      const others = isSingle ? merged.parts[0]?.listing.others : undefined;
      return pageFrom({ length: merged.length(), hash: hashOf(kind), at, others }, kind, cursor, maxBytes);
    },
    find,
    findUri,
    uriOf,
    hash: hashOf,
  };
}
