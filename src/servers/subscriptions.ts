// Who listens to which resource of a server. The server sees one subscription however many listen, and the same ones
// again after it was restarted. A listener that does not renew is forgotten: on a bus a listener leaves without a word.

export type Subscriptions = ReturnType<typeof createSubscriptions>;
/** Sends `resources/subscribe` or `resources/unsubscribe`; absent while the server is not connected. */
export type Subscriber = (method: 'resources/subscribe' | 'resources/unsubscribe', uri: string) => Promise<void>;

export const LEASE_MS = 3_600_000;

/** The name by which a host's session listens. */
export const sessionListener = (session: string): string => `session ${session}`;

/** The listeners of a resource, until when, and the server's answer, which all who come before it wait for. */
type Listeners = { readonly until: Map<string, number>; readonly opened: Promise<void> };

export function createSubscriptions() {
  const holders = new Map<string, Listeners>();
  let subscriber: Subscriber | undefined;

  return {
    async add(uri: string, holder: string, leaseMs = LEASE_MS): Promise<void> {
      const known = holders.get(uri);
      const mine: Listeners = known ?? {
        until: new Map(),
        opened: subscriber?.('resources/subscribe', uri) ?? Promise.resolve(),
      };
      holders.set(uri, mine);
      mine.until.set(holder, performance.now() + leaseMs);
      try {
        await mine.opened;
      } catch (error) {
        if (holders.get(uri) === mine) holders.delete(uri);
        throw error;
      }
    },
    /** False when that holder did not listen. */
    async remove(uri: string, holder: string): Promise<boolean> {
      const until = holders.get(uri)?.until;
      if (!until?.delete(holder)) return false;
      if (until.size > 0) return true;
      holders.delete(uri);
      await subscriber?.('resources/unsubscribe', uri);
      return true;
    },
    /** What that holder listens to. */
    heldBy(holder: string): string[] {
      return [...holders].flatMap(([uri, { until }]) => (until.has(holder) ? [uri] : []));
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
      const over = [...holders].flatMap(([uri, { until }]) =>
        [...until].filter(([, end]) => end < now).map(([holder]) => [uri, holder] as const),
      );
      // The lease is over whether or not the server takes note; its further updates have no reader.
      for (const [uri, holder] of over) await this.remove(uri, holder).catch(() => {});
    },
    get isEmpty() {
      return holders.size === 0;
    },
  };
}
