// The paths of the HTTP door and what may be done at each. Everything else is not here.

import type { Scope } from '../../sessions/host.ts';

export type Place = 'mcp' | 'sse' | 'messages' | 'ws';
export type Route = { readonly place: Place; readonly scope: Scope };

export const ALLOWED = {
  mcp: 'GET, POST, DELETE, OPTIONS',
  sse: 'GET, OPTIONS',
  messages: 'POST, OPTIONS',
  ws: 'GET, OPTIONS',
} as const satisfies Record<Place, string>;

const SCOPED: Record<string, Place | undefined> = { mcp: 'mcp', sse: 'sse', ws: 'ws' };
const LONGEST_PATH = 256;

const MAX_KNOWN = 256;
const known = new Map<string, Route>();

/** The same few come again and again. */
export function routeOf(url: string): Route | undefined {
  const end = url.indexOf('?');
  const path = end < 0 ? url : url.slice(0, end);
  const found = known.get(path) ?? read(path);
  if (found && known.size < MAX_KNOWN) known.set(path, found);
  return found;
}

function read(path: string): Route | undefined {
  if (path.length > LONGEST_PATH) return undefined;
  const [, first = '', second = ''] = /^\/([a-z]+)(?:\/([^/]*))?\/?$/.exec(path) ?? [];
  if (first === 'messages' && second === '') return { place: 'messages', scope: '' };
  const place = Object.hasOwn(SCOPED, first) ? SCOPED[first] : undefined;
  const scope = decoded(second);
  return place && scope !== undefined ? { place, scope } : undefined;
}

/** `@` may come as %40. */
function decoded(part: string): string | undefined {
  if (!part.includes('%')) return part;
  try {
    return decodeURIComponent(part);
  } catch {
    return undefined; // no text in any encoding that we know
  }
}
