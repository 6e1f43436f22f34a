// Moments at which a crash would hurt most, by name, so that tests can let this process die at exactly one of them. Nothing
// but the environment the process was started with arms one: no configuration, no request, no plugin can.

const FAILPOINTS = [
  'task.created', // its row is on the disk, and the caller is not yet answered
  'task.acknowledged', // the caller has been answered
  'task.reserved', // `dispatching` is on the disk, and no byte has been written
  'task.sent',
  'task.answered', // the result is in memory only
  'task.committed', // the result is on the disk, and not yet told
  'task.cancelled',
  'task.adopted',
] as const;
export type Failpoint = (typeof FAILPOINTS)[number];

/** Kills the process when it is passed for the n-th time and TROUPE_FAILPOINT is `name:n`, or `name` for the first time. */
export const failpoint: (name: Failpoint) => void = armed(process.env.TROUPE_FAILPOINT);

function armed(setting: string | undefined): (name: Failpoint) => void {
  const [, name, times = '1'] = /^([a-z.]+)(?::([1-9]\d*))?$/.exec(setting ?? '') ?? [];
  if (!FAILPOINTS.some((known) => known === name)) return () => {};
  let left = Number(times);
  return (passed) => {
    if (passed === name && --left === 0) die();
  };
}

/** As kill -9 would: nothing is flushed, closed or said. */
function die(): void {
  process.kill(process.pid, 'SIGKILL');
  for (;;); // until the signal has arrived
}
