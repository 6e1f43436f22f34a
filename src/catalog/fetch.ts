// Reads a server's whole list, page after page. A definition stays the bytes that came: only its name is looked at.

import { setImmediate as nextTurn } from 'node:timers/promises';
import { elements, member, members, stringOf } from '../protocol/json.ts';
import { KINDS, type Kind } from './kinds.ts';

/** A request of our own to a server: resolves with the bytes of its result. */
export type Ask = (method: string, params: object, timeoutMs?: number) => Promise<Buffer>;
export type Entry = { readonly name: string; readonly bytes: Buffer };
/** `others` are the members of the first page beside the list, as JSON text that goes on after a member. */
export type Fetched = { readonly entries: Entry[]; readonly others: Buffer; readonly complaint?: string };

const MAX_PAGES = 10_000;
const MAX_BYTES = 64 * 1024 * 1024;
const MAX_OTHER_BYTES = 64 * 1024;
/** A list of a hundred thousand tools must not hold up the calls of other servers while it is read. */
const ENTRIES_PER_TURN = 2_000;

export async function fetchList(ask: Ask, kind: Kind): Promise<Fetched> {
  const { method } = KINDS[kind];
  const entries: Entry[] = [];
  const seen = new Set<string>();
  let cursor: string | undefined;
  let bytes = 0;
  let others: Buffer | undefined;
  for (let page = 0; page < MAX_PAGES; page++) {
    const result = await ask(method, cursor === undefined ? {} : { cursor });
    await readPage(result, kind, entries);
    others ??= othersIn(result, kind);
    bytes += result.length;
    if (bytes > MAX_BYTES) return { entries, others, complaint: `${method} has more than ${MAX_BYTES} bytes` };
    cursor = nextCursor(result);
    if (cursor === undefined) return { entries, others };
    if (seen.has(cursor))
      return { entries, others, complaint: `${method} gives the cursor ${cursor.slice(0, 40)} again` };
    seen.add(cursor);
  }
  return { entries, others: others ?? NOTHING, complaint: `${method} has more than ${MAX_PAGES} pages` };
}

async function readPage(result: Buffer, kind: Kind, entries: Entry[]): Promise<void> {
  const list = member(result, KINDS[kind].member);
  if (!list) return;
  for (const bytes of elements(list)) {
    const entry = entryOf(bytes, kind);
    if (entry) entries.push(entry);
    if (entries.length % ENTRIES_PER_TURN === 0) await nextTurn();
  }
}

/** Kept with the list, so their size is bounded. */
function othersIn(result: Buffer, kind: Kind): Buffer {
  const parts: Buffer[] = [];
  for (const [key, value] of members(result))
    if (key !== KINDS[kind].member && key !== 'nextCursor') parts.push(Buffer.from(`,${JSON.stringify(key)}:`), value);
  const others = Buffer.concat(parts);
  return others.length > MAX_OTHER_BYTES ? NOTHING : others;
}

const NOTHING = Buffer.alloc(0);

/** A definition that has no name cannot be asked for, and is left out. */
export function entryOf(bytes: Buffer, kind: Kind): Entry | undefined {
  const key = member(bytes, KINDS[kind].key);
  const name = key && stringOf(key);
  return name === undefined ? undefined : { name, bytes };
}

function nextCursor(result: Buffer): string | undefined {
  const value = member(result, 'nextCursor');
  return value && stringOf(value);
}
