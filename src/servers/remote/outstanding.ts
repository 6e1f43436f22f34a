// The requests that a server has not yet answered, or not yet taken: at most so many, and so many bytes.

const MAX_BYTES = 64 * 1024 * 1024;

export function createOutstanding<T extends { readonly frame: Buffer }>(maxCount: number, onRoom: () => void) {
  const items = new Map<string, T>();
  let bytes = 0;
  return {
    add(id: string, item: T): T {
      items.set(id, item);
      bytes += item.frame.length;
      return item;
    },
    get: (id: string): T | undefined => items.get(id),
    /** A copy: whoever goes through them may end them. */
    entries: (): [string, T][] => [...items],
    remove(id: string): void {
      const known = items.get(id);
      if (!known) return;
      bytes -= known.frame.length;
      items.delete(id);
      onRoom();
    },
    hasRoom: (): boolean => items.size < maxCount && bytes < MAX_BYTES,
  };
}
