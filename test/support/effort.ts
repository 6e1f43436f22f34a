// How much work something is: CPU time, which does not grow because others use the machine too.

/** Milliseconds of CPU that the synchronous work took, garbage collection included. */
export function cpuMs(work: () => unknown): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}
