// Preloaded (`node --import`), it measures how late the event loop of a process is, and keeps that in a file of the directory
// that TROUPE_TEST_LAG names: milliseconds beyond the rhythm of the measurement itself.

import { existsSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { isMainThread } from 'node:worker_threads';

const folder = process.env.TROUPE_TEST_LAG;
const RHYTHM_MS = 5;

if (folder && isMainThread) {
  const lag = monitorEventLoopDelay({ resolution: RHYTHM_MS });
  let isOn = false;
  const lateMs = (nanoseconds) => Math.max(0, Math.round(nanoseconds / 1e6 - RHYTHM_MS));
  const keep = () => {
    // A daemon is busy when it starts; what counts is how it is at work, which is from when that file is there.
    if (!isOn && existsSync(join(folder, 'go'))) isOn = lag.enable();
    const found = { p50: lateMs(lag.percentile(50)), p99: lateMs(lag.percentile(99)), max: lateMs(lag.max) };
    if (!isOn) return;
    const file = join(folder, `${process.pid}.json`);
    writeFileSync(`${file}.new`, JSON.stringify(found));
    renameSync(`${file}.new`, file); // whoever reads it sees all of it
  };
  setInterval(keep, 250).unref();
}
