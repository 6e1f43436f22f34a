// What every puppet can do: say messages to the daemon as its server would, and know when the daemon has taken them all.

export type Puppet<Input> = AsyncDisposable & {
  /** Resolves when the daemon has taken all of it, or has had enough and hung up. */
  say(inputs: readonly Input[]): Promise<void>;
};

/** The requests of the daemon that have no answer yet, the newest last. */
export class OpenIds {
  readonly #ids: (string | number)[] = [];
  add(id: string | number): void {
    this.#ids.push(id);
    if (this.#ids.length > 64) this.#ids.shift();
  }
  get all(): readonly (string | number)[] {
    return this.#ids;
  }
}

/** The end of a wait for a connection or a fence: whichever of them comes, or the patience is over. */
export function within<Value>(ms: number, promise: Promise<Value>): Promise<Value | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(resolve, ms, undefined);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}
