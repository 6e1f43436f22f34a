// Records in the audit as a daemon notes them, through the same store, in a process of its own; and what it takes to look there.
// Jobs: `fill`, until there are so many, and `look`. The audit must not be pruned here, so more is kept than a daemon keeps.

import { randomBytes } from 'node:crypto';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { openStore } from '../dist/src/store/store.js';
import { cpuOf } from './proc.mjs';

const YEAR_MS = 365 * 86_400_000;
const TOOLS = 10;
const A_BATCH = 20_000; // the store refuses what does not fit into its queue
const NEWEST = 100;
const LOOKS = 11;
const store = await openStore(process.env.STORE, { keepAudit: { rows: 1e9, ageMs: YEAR_MS } });
let filled = 0;

const jobs = { fill, look };
process.on('message', async ({ job, ...given }) => process.send(await jobs[job](given)));
process.on('disconnect', () => process.exit(0));
process.send({ ready: true });

async function fill({ count }) {
  const [from, before] = [filled, cpuOf(process.pid)];
  while (filled < count) {
    for (const until = Math.min(filled + A_BATCH, count); filled < until; filled += 1) store.note(recordOf(filled));
    await store.flush();
  }
  return { micros: (cpuOf(process.pid) - before) / (filled - from), dropped: store.dropped };
}

const LIFE = randomBytes(8).toString('hex');
const recordOf = (number) => ({
  at: Date.now(),
  daemon: 'bench',
  door: 'nats',
  principal: '_',
  requestId: `${LIFE}-${number}`,
  server: 's0',
  method: 'tools/call',
  name: `tool-${number % TOOLS}`,
  outcome: 'ok',
  code: 0,
  error: '',
  micros: 100 + (number % 900),
  bytesIn: 300,
  bytesOut: 340,
});

/** The fastest of several looks, for what else runs only ever adds. */
function look() {
  const timed = (what) => {
    const from = performance.now();
    what();
    return performance.now() - from;
  };
  const fastest = (what) => Math.min(...Array.from({ length: LOOKS }, () => timed(what)));
  const file = join(process.env.STORE, 'troupe.db');
  const bytes = ['', '-wal'].reduce(
    (sum, suffix) => sum + (statSync(`${file}${suffix}`, { throwIfNoEntry: false })?.size ?? 0),
    0,
  );
  return {
    recentMs: fastest(() => store.all('recentAudit', [NEWEST, NEWEST])),
    countMs: fastest(() => store.get('countAudit', [])),
    counted: store.get('countAudit', []).count,
    bytes,
  };
}
