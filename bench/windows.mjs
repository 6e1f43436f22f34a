// Windows of load in rounds, the variants taking turns, so that what else the machine does meets them alike.
// The quietest rounds are kept, whole: rates and latencies are their medians, CPU per call is their sum.

import { setTimeout as wait } from 'node:timers/promises';
import { busyMachine } from './proc.mjs';

/** BENCH_QUICK=1 only shows that everything works: its figures mean nothing. */
export const isQuick = process.env.BENCH_QUICK === '1';
const MS = isQuick ? { warmMs: 50, ms: 150 } : { warmMs: 150, ms: 500 };
const ROUNDS = isQuick ? { count: 2, keep: 2 } : { count: 7, keep: 5 };
const WARM_MS = isQuick ? 200 : 2_000;
const QUIET = 0.15; // of one core
const QUIET_WITHIN_MS = 1_000;
const LOOK_MS = 100;

/** Of every round that counted: what else the machine did, of one core. */
export const seenForeign = [];

/**
 * Variants are `{ name, loader, subject, pids: { daemon, … } }`; gives the figures of each by name. `ratio` is the last
 * variant's rate over the first's, `against(name, of)` the last one's over the named one's in rate, p50, p99: medians of the
 * rounds' own ratios.
 */
export async function compare(variants, { c, body, count = ROUNDS.count, keep = ROUNDS.keep }) {
  for (const variant of variants) await warm(variant, body);
  const rounds = [];
  for (let round = 0; round < count; round += 1) {
    await quiet();
    const windows = [];
    for (const variant of variants) windows.push(await oneWindow(variant, { c, body }));
    rounds.push({ windows, foreign: Math.max(...windows.map((each) => each.foreign)) });
  }
  const kept = rounds.toSorted((a, b) => a.foreign - b.foreign).slice(0, keep);
  seenForeign.push(...kept.map(({ foreign }) => foreign));
  const entries = variants.map(({ name, pids }, index) => [
    name,
    figures(
      kept.map(({ windows }) => windows[index]),
      Object.keys(pids),
    ),
  ]);
  const against = (name, of = rate) => {
    const other = variants.findIndex((each) => each.name === name);
    return median(kept.map(({ windows }) => of(windows.at(-1)) / of(windows[other])).filter(Number.isFinite));
  };
  return { ...Object.fromEntries(entries), ratio: against(variants[0].name), against };
}

/** Nobody's code is compiled yet when it has just started; at c=1 that would take minutes. */
async function warm(variant, body) {
  if (variant.isWarm) return;
  await oneWindow(variant, { c: 32, body, ms: WARM_MS });
  variant.isWarm = true;
}

async function oneWindow({ name, loader, subject, pids }, { c, body, ms = MS.ms }) {
  const window = await loader.ask({ job: 'window', subject, body, c, ...MS, ms, pids: Object.values(pids) });
  if (window.errors || window.strays)
    throw new Error(`${name}: ${window.errors} errors, ${window.strays} second answers; ${window.failure ?? ''}`);
  return window;
}

/** Waits for a moment when the machine has nothing else to do, but not for ever. */
async function quiet() {
  const deadline = performance.now() + QUIET_WITHIN_MS;
  while (performance.now() < deadline) {
    const [busy, from] = [busyMachine(), performance.now()];
    await wait(LOOK_MS);
    if ((busyMachine() - busy) / 1000 / (performance.now() - from) < QUIET) return;
  }
}

function figures(windows, processes) {
  const ops = sum(windows.map((each) => each.ops));
  const perCall = (of) => sum(windows.map(of)) / ops;
  return {
    rate: median(windows.map(rate)),
    p50: median(windows.map((each) => each.p50).filter(Number.isFinite)), // there is none where nothing was answered
    p99: median(windows.map((each) => each.p99).filter(Number.isFinite)),
    foreign: median(windows.map((each) => each.foreign)),
    cpu: {
      ...Object.fromEntries(processes.map((name, index) => [name, perCall((each) => each.cpu[index])])),
      loader: perCall((each) => each.self),
    },
  };
}

const rate = ({ ops, wallMs }) => (ops * 1000) / wallMs;
const sum = (values) => values.reduce((total, each) => total + each, 0);

export function median(values) {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}
