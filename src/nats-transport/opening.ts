// Messages that are sent while there is no session yet. Each is settled by the answer, so that a server that is not there
// is an error of the very message that asked for it, and not a silence.

type Waiting = { readonly resolve: () => void; readonly reject: (error: Error) => void };

export function createOpenings() {
  const waiting = new Set<Waiting>();

  return {
    ask: (publish: () => void): Promise<void> =>
      new Promise((resolve, reject) => {
        waiting.add({ resolve, reject });
        publish();
      }),
    answered(): void {
      for (const { resolve } of waiting) resolve();
      waiting.clear();
    },
    refused(why: string): void {
      for (const { reject } of waiting) reject(new Error(why));
      waiting.clear();
    },
  };
}
