// Which process of a tenant a session is at home in. A server keeps for each connection what it was told there: what is
// subscribed to, how much is logged, what a call has begun. So a session that has told a server such things stays with one
// process of its pool; every other call goes wherever there is room.

export class Homes<Process> {
  readonly #byHolder = new Map<string, Process>();
  readonly #byProcess = new Map<Process, Set<string>>();

  of(holder: string | undefined): Process | undefined {
    return holder === undefined ? undefined : this.#byHolder.get(holder);
  }

  /** Also for a holder that had another one. */
  give(holder: string, process: Process): void {
    if (this.#byHolder.get(holder) === process) return;
    this.forget(holder);
    this.#byHolder.set(holder, process);
    const others = this.#byProcess.get(process) ?? new Set();
    this.#byProcess.set(process, others.add(holder));
  }

  forget(holder: string): void {
    const process = this.#byHolder.get(holder);
    if (!process) return;
    this.#byHolder.delete(holder);
    const others = this.#byProcess.get(process);
    others?.delete(holder);
    if (others?.size === 0) this.#byProcess.delete(process);
  }

  countAt(process: Process): number {
    return this.#byProcess.get(process)?.size ?? 0;
  }

  /** Each process that is a home, and whose. A copy: they may move while they are looked at. */
  all(): [Process, string[]][] {
    return [...this.#byProcess].map(([process, holders]) => [process, [...holders]]);
  }

  get isEmpty(): boolean {
    return this.#byHolder.size === 0;
  }
}
