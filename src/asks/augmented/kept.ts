// The tasks that servers have made of their questions, each for the process that asked: no other one finds it, whatever id it
// names. They are in memory, so many and so many bytes a server, until their time is over or a newer one needs the room.

import type { Member } from '../../servers/member.ts';
import type { AskedTask } from './task.ts';

export type KeptTask = {
  readonly task: AskedTask;
  /** Ends it, if it has not ended, and lets go of whoever was asked. */
  readonly cancel: (why: string) => void;
};
export type Kept = ReturnType<typeof createKept>;
type Entry = KeptTask & {
  readonly number: number;
  readonly server: string;
  readonly home: Home;
  readonly shelf: Shelf;
  bytes: number;
  timer: NodeJS.Timeout | undefined;
};
/** What one process asked, the oldest first. */
type Home = { readonly entries: Map<string, Entry>; asked: number };
/** What is kept for all processes of one server; `ended` begins with what has ended first. */
type Shelf = { readonly entries: Set<Entry>; readonly ended: Set<Entry>; bytes: number };

const MAX_BYTES = 16 * 2 ** 20;
const PAGE = 100;

export function createKept(maxKept: () => number) {
  /** Weak, because nobody comes for what a process has asked that is gone for good. */
  const homes = new WeakMap<Member, Home>();
  const shelves = new Map<string, Shelf>();

  const homeOf = (member: Member): Home => homes.get(member) ?? { entries: new Map(), asked: 0 };

  function remove(entry: Entry): void {
    const { home, server, shelf, task, timer } = entry;
    if (!shelf.entries.delete(entry)) return;
    clearTimeout(timer);
    home.entries.delete(task.id);
    shelf.ended.delete(entry);
    shelf.bytes -= entry.bytes;
    if (shelf.entries.size === 0) shelves.delete(server);
  }

  function ended(entry: Entry, bytes: number): void {
    const { shelf } = entry;
    if (!shelf.entries.has(entry)) return;
    makeRoom(shelf, () => shelf.bytes > 0 && shelf.bytes + bytes > MAX_BYTES); // one alone may be as large as a frame
    entry.bytes = bytes;
    shelf.bytes += bytes;
    shelf.ended.add(entry);
  }

  /** What has ended first goes first. */
  function makeRoom({ ended: over }: Shelf, isFull: () => boolean): void {
    for (const oldest of over) {
      if (!isFull()) return;
      remove(oldest);
    }
  }

  return {
    /** Keeps it until its time is over; false when there is no room. */
    add(member: Member, kept: KeptTask, ttlMs: number): boolean {
      const { server } = member;
      const home = homeOf(member);
      const shelf = shelves.get(server) ?? { entries: new Set(), ended: new Set(), bytes: 0 };
      makeRoom(shelf, () => shelf.entries.size >= maxKept());
      if (shelf.entries.size >= maxKept()) return false;
      const entry: Entry = { ...kept, number: ++home.asked, server, home, shelf, bytes: 0, timer: undefined };
      homes.set(member, home);
      shelves.set(server, shelf);
      home.entries.set(kept.task.id, entry);
      shelf.entries.add(entry);
      kept.task.whenEnded((answer) => ended(entry, (answer.ok ? answer.result : answer.error).length));
      entry.timer = setTimeout(() => {
        kept.cancel('its time is over');
        remove(entry);
      }, ttlMs);
      entry.timer.unref();
      return true;
    },
    find: (member: Member, id: string): KeptTask | undefined => homes.get(member)?.entries.get(id),
    of: (member: Member): KeptTask[] => [...homeOf(member).entries.values()],
    drop(member: Member, id: string): void {
      const entry = homes.get(member)?.entries.get(id);
      if (entry) remove(entry);
    },
    /** In the order they were asked; nothing for a cursor that is none. */
    page(member: Member, cursor: string | undefined): { tasks: AskedTask[]; next?: string } | undefined {
      const { entries, asked } = homeOf(member);
      const after = cursor === undefined ? 0 : numberOf(cursor);
      if (after === undefined || after > asked) return undefined;
      const left = [...entries.values()].filter(({ number }) => number > after);
      const page = left.slice(0, PAGE);
      const last = page.at(-1);
      const next = last && left.length > PAGE ? { next: cursorOf(last.number) } : {};
      return { tasks: page.map(({ task }) => task), ...next };
    },
  };
}

const cursorOf = (number: number): string => Buffer.from(`after ${number}`).toString('base64url');

function numberOf(cursor: string): number | undefined {
  const [, digits] = /^after (\d{1,15})$/.exec(Buffer.from(cursor, 'base64url').toString()) ?? [];
  const number = Number(digits);
  return digits !== undefined && cursorOf(number) === cursor ? number : undefined;
}
