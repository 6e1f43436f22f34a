// Updates of resources at a pace that their readers can take: the first at once, then the newest of each interval. A server
// may tell of one resource ten thousand times a second; whoever reads it again gets the newest anyway.

export type Updates = ReturnType<typeof createUpdates>;

const INTERVAL_MS = 50;
/** Resources that are told of within one interval; what is beyond is dropped. */
const MAX_AT_ONCE = 1_000;

export function createUpdates(tell: (uri: string, params: Buffer) => void) {
  const waiting = new Map<string, Buffer | undefined>();

  function due(uri: string): void {
    const newest = waiting.get(uri);
    waiting.delete(uri);
    if (newest) take(uri, newest);
  }

  function take(uri: string, params: Buffer): void {
    if (waiting.has(uri)) return void waiting.set(uri, params);
    if (waiting.size >= MAX_AT_ONCE) return;
    waiting.set(uri, undefined);
    setTimeout(due, INTERVAL_MS, uri).unref();
    tell(uri, params);
  }

  return { take };
}
