// Who listens to which resource of a server. The server sees one subscription however many listen, and the same ones
// again after it was restarted. A listener that does not renew is forgotten: on a bus nobody says that they left.

export type Subscriptions = ReturnType<typeof createSubscriptions>;
/** Sends `resources/subscribe` or `resources/unsubscribe`; absent while the server is not connected. */
export type Subscriber = (method: 'resources/subscribe' | 'resources/unsubscribe', uri: string) => Promise<void>;

export const LEASE_MS = 3_600_000;

export function createSubscriptions() {
  const holders = new Map<string, Map<string, number>>();
  let subscriber: Subscriber | undefined;

  return {
    async add(uri: string, holder: string): Promise<void> {
      const known = holders.get(uri);
      if (!known) await subscriber?.('resources/subscribe', uri);
      const list = holders.get(uri) ?? new Map<string, number>();
      holders.set(uri, list.set(holder, performance.now() + LEASE_MS));
    },
    /** False when that holder did not listen. */
    async remove(uri: string, holder: string): Promise<boolean> {
      const list = holders.get(uri);
      if (!list?.delete(holder)) return false;
      if (list.size > 0) return true;
      holders.delete(uri);
      await subscriber?.('resources/unsubscribe', uri);
      return true;
    },
    /** A new connection knows of no subscription, so it is told of all. */
    async connect(next: Subscriber): Promise<void> {
      subscriber = next;
      await Promise.allSettled([...holders.keys()].map((uri) => next('resources/subscribe', uri)));
    },
    disconnect(): void {
      subscriber = undefined;
    },
    async expire(): Promise<void> {
      const now = performance.now();
      const over = [...holders].flatMap(([uri, list]) =>
        [...list].filter(([, until]) => until < now).map(([holder]) => [uri, holder] as const),
      );
      for (const [uri, holder] of over) await this.remove(uri, holder);
    },
    get uris() {
      return [...holders.keys()];
    },
  };
}
