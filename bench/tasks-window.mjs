// A window of load as the parts of a measurement tell it: c callers in a loop, of which the last `ms` count.

import { setTimeout as wait } from 'node:timers/promises';
import { busyMachine, cpuOf } from './proc.mjs';

export const now = () => Number(process.hrtime.bigint()) / 1e6; // the same clock in every process of the machine

/**
 * `one(note)` is one turn of one caller, and resolves when it is done; `note(ms)` is told of the latency within it that is of
 * interest. What is counted are whole turns.
 */
export async function window(one, { c, warmMs, ms, pids }) {
  const sample = () => ({ at: now(), busy: busyMachine(), self: cpuOf(process.pid), cpu: pids.map(cpuOf) });
  const latencies = [];
  const seen = { errors: 0, strays: 0, failure: undefined };
  let ops = 0;
  let [before, after] = [];
  const measured = wait(warmMs)
    .then(() => {
      before = sample();
      return wait(ms);
    })
    .then(() => {
      after = sample();
    });
  const note = (took) => {
    if (before && !after) latencies.push(took);
  };
  const caller = async () => {
    while (!after) {
      try {
        await one(note);
        if (before && !after) ops += 1;
      } catch (error) {
        seen.errors += 1;
        seen.failure = error.message;
        return;
      }
    }
  };
  await Promise.all([measured, ...Array.from({ length: c }, caller)]);
  const sorted = Float64Array.from(latencies).sort();
  const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
  const cpu = after.cpu.map((each, index) => each - before.cpu[index]);
  const self = after.self - before.self;
  const wallMs = after.at - before.at;
  const ours = cpu.reduce((sum, each) => sum + each, self);
  const foreign = (after.busy - before.busy - ours) / (wallMs * 1000);
  return { ops, wallMs, p50: at(0.5), p99: at(0.99), cpu, self, foreign, ...seen };
}
