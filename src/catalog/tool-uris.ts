// Resources that only a tool names: what a host shows for a tool is a resource of the tool's server, which need not list it.
// The tool says so in `_meta`, and the host reads it by that URI.

import { withTextAt } from '../protocol/edit.ts';
import { textAt } from '../protocol/json.ts';
import type { Entry } from './fetch.ts';
import type { Part } from './merge.ts';

/** As MCP Apps write it, now and in their first drafts. */
const PLACES = [
  ['_meta', 'ui', 'resourceUri'],
  ['_meta', 'ui/resourceUri'],
] as const;
const MARK = Buffer.from('resourceUri');

/** Found once for each list: its entries are the same array until the list changes. */
const known = new WeakMap<readonly Entry[], ReadonlySet<string>>();

export function urisNamedIn(tools: readonly Entry[]): ReadonlySet<string> {
  const found = known.get(tools) ?? new Set(tools.flatMap(({ bytes }) => urisIn(bytes)));
  known.set(tools, found);
  return found;
}

const urisIn = (tool: Buffer): string[] =>
  tool.includes(MARK) ? PLACES.flatMap((place) => textAt(tool, place) ?? []) : [];

/** The server whose tools name this URI, if there is one and no other. */
export function serverByTool(tools: readonly Part[], uri: string): string | undefined {
  const [owner, another] = tools.filter(({ listing }) => urisNamedIn(listing.entries).has(uri));
  return another ? undefined : owner?.source.server;
}

/** The tool with the URI by which the host finds the resource. */
export function withShownUri(tool: Buffer, shownOf: (uri: string) => string): Buffer {
  if (!tool.includes(MARK)) return tool;
  return PLACES.reduce<Buffer>((bytes, place) => {
    const uri = textAt(bytes, place);
    const shown = uri === undefined ? uri : shownOf(uri);
    return shown === undefined || shown === uri ? bytes : (withTextAt(bytes, place, shown) ?? bytes);
  }, tool);
}
