// One window of a load, as every loader measures it: what it did after the warm-up, and what the processes and the machine took
// meanwhile.

import { busyMachine, cpuOf } from './proc.mjs';

/** The same clock in every process of the machine. */
export const now = () => Number(process.hrtime.bigint()) / 1e6;

/**
 * `drive` makes the load while `mayGoOn`, gives `took` how long each good call was, and resolves with what else it saw. Counted
 * is what ends in the last `ms`.
 */
export async function measured({ warmMs, ms, pids }, drive) {
  const sample = () => ({ at: now(), busy: busyMachine(), self: cpuOf(process.pid), cpu: pids.map(cpuOf) });
  const latencies = [];
  let [before, after] = [];
  setTimeout(() => {
    before = sample();
  }, warmMs);
  setTimeout(() => {
    after = sample();
  }, warmMs + ms);
  const took = (latency) => {
    if (before && !after) latencies.push(latency);
  };
  const seen = await drive({ mayGoOn: () => !after, took });
  const sorted = Float64Array.from(latencies).sort();
  const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
  const cpu = after.cpu.map((each, index) => each - before.cpu[index]);
  const self = after.self - before.self;
  const wallMs = after.at - before.at;
  const ours = cpu.reduce((sum, each) => sum + each, self);
  const foreign = (after.busy - before.busy - ours) / (wallMs * 1000);
  return { ops: sorted.length, wallMs, p50: at(0.5), p99: at(0.99), cpu, self, foreign, ...seen };
}
