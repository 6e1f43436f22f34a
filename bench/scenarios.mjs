// The scenarios. Each gives tables for the reader and figures: what was wanted, what was measured.

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { cells, figure, round } from './figures.mjs';
import { anonymousOf } from './proc.mjs';
import { ending, startBare, startBridge, startLoader, startTroupe } from './processes.mjs';
import { compare, isQuick, median } from './windows.mjs';

const MB = 1e6;
const BODY = JSON.stringify({ message: 'x'.repeat(300 - '{"message":""}'.length) }); // 300 bytes
const ECHO = { troupe: 'troupe.call.s0.echo', bridge: 'bridge.call.echo' };
const BIG = { troupe: 'troupe.call.s0.big', bridge: 'bridge.call.big' };
const row = (figures) => cells(figures, ['daemon', 'child', 'nats', 'loader']);
const HEAD = ['calls/s', 'p50 ms', 'p99 ms', 'daemon µs', 'child µs', 'nats µs', 'loader µs', 'foreign'];

export const scenarios = { calls, big, catalog, inflight, restart, paced, instances };

/** The rate, latency and CPU of an echo, beside the bare bridge on the same bus. */
async function calls() {
  const { variants, end } = await pair(ECHO);
  const rows = [];
  const at = {};
  for (const c of [1, 16, 64, 256]) {
    const { bridge, troupe, ratio } = await compare(variants, { c, body: BODY });
    at[c] = { bridge, troupe, ratio };
    rows.push([c, 'bridge', ...row(bridge), ''], [c, 'troupe', ...row(troupe), round(ratio, 2)]);
  }
  await end();
  const added = (at[1].troupe.p50 - at[1].bridge.p50) * 1000;
  const cpu = [64, 256].map((c) => at[c].troupe.cpu.daemon);
  return {
    title: 'Calls: echo, 300 bytes',
    head: ['c', 'variant', ...HEAD, 'ratio'],
    rows,
    figures: [
      figure('throughput at c=64, of the bridge', at[64].ratio, '≥', 0.8),
      figure('throughput at c=256, of the bridge', at[256].ratio, '≥', 0.8),
      figure('added p50 at c=1', added, '≤', 100, 'µs'),
      figure('daemon CPU a call at c=64', cpu[0], '≤', 20, 'µs'),
      figure('daemon CPU a call at c=256', cpu[1], '≤', 20, 'µs'),
    ],
  };
}

async function big() {
  const { variants, end } = await pair(BIG);
  const { bridge, troupe, ratio } = await compare(variants, { c: 4, body: JSON.stringify({ bytes: MB }) });
  await end();
  return {
    title: 'Results of 1 MB, c=4',
    head: ['variant', ...HEAD],
    rows: [
      ['bridge', ...row(bridge)],
      ['troupe', ...row(troupe)],
    ],
    figures: [figure('throughput of 1 MB results, of the bridge', ratio, '≥', 0.85)],
  };
}

/** The same call with 5,000 tools of 100 servers in the catalog, and with one of one. */
async function catalog() {
  const troupes = { small: await startTroupe({ servers: 1 }), large: await startTroupe({ servers: 100, tools: 50 }) };
  const variants = [];
  for (const [name, troupe] of Object.entries(troupes)) {
    const pids = pidsOf(await troupe.untilReady());
    variants.push({ name, loader: await startLoader(await troupe.url()), subject: ECHO.troupe, pids });
  }
  await wait(1_000); // the hundred children settle
  const rows = [];
  const ratios = [];
  for (const c of [1, 16]) {
    const { small, large } = await compare(variants, { c, body: BODY });
    ratios.push(large.p50 / small.p50);
    rows.push([c, '1 × 1', ...row(small), ''], [c, '100 × 50', ...row(large), round(ratios.at(-1), 2)]);
  }
  for (const { loader } of variants) await loader.end();
  for (const troupe of Object.values(troupes)) await troupe.end();
  return {
    title: 'Catalog: 100 servers with 50 tools each, beside one with one',
    head: ['c', 'catalog', ...HEAD, 'p50 ratio'],
    rows,
    figures: [
      figure('p50 with 5,000 tools, of that with one, c=1', ratios[0], '≤', 1.2),
      figure('p50 with 5,000 tools, of that with one, c=16', ratios[1], '≤', 1.2),
    ],
  };
}

async function inflight() {
  const [count, servers, ms] = [10_000, 20, 2_000];
  const troupe = await startTroupe({ servers });
  const { daemon } = await troupe.untilReady();
  const loader = await startLoader(await troupe.url());
  const subjects = Array.from({ length: servers }, (_, number) => `troupe.call.s${number}.sleep`);
  const body = JSON.stringify({ ms, note: 'x'.repeat(270) });
  await loader.ask({ job: 'burst', subjects, body: JSON.stringify({ ms: 1 }), count: 2_000 }); // warm
  await wait(1_500);
  const before = anonymousOf(daemon.pid);
  const answer = loader.ask({ job: 'burst', subjects, body, count });
  let peak = before;
  let most = 0;
  const isOver = answer.then(() => true);
  while (!(await Promise.race([isOver, wait(100, false)]))) {
    peak = Math.max(peak, anonymousOf(daemon.pid));
    const { servers: now } = await troupe.status();
    most = Math.max(
      most,
      now.reduce((sum, each) => sum + each.inFlight, 0),
    );
  }
  const { answered, errors, strays, ms: took, failure } = await answer;
  await loader.end();
  await troupe.end();
  return {
    title: '10,000 calls in flight over 20 servers, each answered after 2 s',
    head: ['answered', 'errors', 'second answers', 'most in flight', 'last answer after s', 'memory a call, KB'],
    rows: [[answered, errors, strays, most, round(took / 1000, 2), round((peak - before) / count / 1000, 1)]],
    note: failure && `An error said: ${failure}`,
    figures: [figure('calls answered of 10,000 in flight', answered, '≥', count)],
  };
}

/** A child killed under load: from the kill until a call is answered again, beside what the child needs to start. */
async function restart() {
  const own = [];
  for (let round = 0; round < 5; round += 1) own.push(await startBare(1));
  const troupe = await startTroupe({ servers: 1 });
  await troupe.untilReady();
  const loader = await startLoader(await troupe.url());
  const rows = [];
  for (let round = 1; round <= 3; round += 1) {
    const watching = loader.ask({ job: 'watch', subject: ECHO.troupe, body: BODY, c: 16, ms: 3_000 });
    await wait(1_000);
    const { servers } = await troupe.status();
    process.kill(servers[0].pid, 'SIGKILL');
    const killedAt = Number(process.hrtime.bigint()) / 1e6;
    const { gap, errors, strays } = await watching;
    rows.push([round, gap.to - killedAt, errors, strays]);
  }
  await loader.end();
  await troupe.end();
  const added = median(rows.map(([, back]) => back)) - median(own);
  return {
    title: `A child killed under load (its own start: ${Math.round(median(own))} ms)`,
    head: ['round', 'answers again after ms', 'calls failed', 'second answers'],
    rows: rows.map(([number, back, ...more]) => [number, round(back), ...more]),
    figures: [figure('answers again, beyond its own start', added, '≤', 200, 'ms')],
  };
}

/**
 * 16 callers that take their time, and a child killed among them: only what was in flight may fail, and nothing runs twice. Each
 * round has a daemon of its own: a server that is killed again and again waits longer for each start.
 */
async function paced() {
  const rows = [];
  for (let round = 1; round <= (isQuick ? 1 : 3); round += 1) {
    const { all, inFlight, strays, again } = await killAmong(PACED);
    const failed = all.filter(({ failure }) => failure !== undefined);
    const refused = failed.filter(({ failure }) => !failure.includes('"delivery":"outcome unknown"'));
    rows.push([round, all.length, inFlight, failed.length, refused.length, strays, again]);
  }
  const most = (column) => Math.max(...rows.map((each) => each[column]));
  const { c, takesMs, paceMs } = PACED;
  return {
    title: `${c} paced callers while a child is killed: calls of ${takesMs} ms, the next ${paceMs} ms after each answer`,
    head: ['round', 'calls', 'in flight at the kill', 'failed', 'of these refused', 'second answers', 'ran twice'],
    rows,
    note: 'Calls that reach the child after the kill, before anybody knows of it, fail as well: their outcome is unknown.',
    figures: [
      figure(`calls of ${c} paced callers that fail when a child is killed`, most(3), '≤', c),
      figure('paced calls refused while a child restarted', most(4), '≤', 0),
      figure('paced calls that ran twice', most(6), '≤', 0),
    ],
  };
}

const PACED = { c: 16, takesMs: 50, paceMs: 20, ms: 3_000 };
const KILLED_AFTER_MS = 1_000;

async function killAmong({ c, ...pace }) {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-bench-'));
  const remove = ending(() => rmSync(folder, { recursive: true, force: true }));
  const marks = join(folder, 'marks');
  const troupe = await startTroupe({ servers: 1, env: { MARKS: marks } });
  await troupe.untilReady();
  const loader = await startLoader(await troupe.url());
  const watching = loader.ask({ job: 'paced', subject: 'troupe.call.s0.mark', c, ...pace });
  await wait(KILLED_AFTER_MS);
  process.kill(await busyChild(troupe, c / 2), 'SIGKILL');
  const killedAt = Number(process.hrtime.bigint()) / 1e6; // the loader's clock
  const { calls: all, strays } = await watching;
  const inFlight = all.filter(({ from, to }) => from <= killedAt && to > killedAt).length;
  const keys = readFileSync(marks, 'utf8').trim().split('\n');
  for (const end of [loader.end, troupe.end, remove]) await end();
  return { all, inFlight, strays, again: keys.length - new Set(keys).size };
}

/** The callers fall into step, since answers come together: the child's pid at a moment when so many wait for it. */
async function busyChild(troupe, least) {
  for (;;) {
    const [server] = (await troupe.status()).servers;
    if (server.inFlight >= least) return server.pid;
    await wait(1);
  }
}

/** Two daemons on one state directory serve the same subjects, each with its own child; beside one. */
async function instances() {
  const variants = [];
  const troupes = [];
  for (const name of ['one', 'two']) {
    const troupe = await startTroupe({ servers: 1 });
    const all = [await troupe.untilReady(), ...(name === 'two' ? [await troupe.second('two')] : [])];
    const pids = {
      daemon: all.map(({ daemon }) => daemon.pid),
      child: all.map(({ servers }) => servers[0].pid),
      nats: all[0].bus.pid,
    };
    variants.push({ name, loader: await startLoader(await troupe.url()), subject: ECHO.troupe, pids });
    troupes.push(troupe);
  }
  const rows = [];
  const figures = [];
  for (const c of [64, 256]) {
    const { one, two, ratio } = await compare(variants, { c, body: BODY });
    rows.push([c, 'one', ...row(one), ''], [c, 'two', ...row(two), round(ratio, 2)]);
    figures.push(figure(`calls/s of two instances at c=${c}, of one`, ratio, '≥', 1));
  }
  for (const { loader } of variants) await loader.end();
  for (const troupe of troupes) await troupe.end();
  return {
    title: 'Two instances on one machine, beside one: echo, 300 bytes',
    head: ['c', 'instances', ...HEAD, 'ratio'],
    rows,
    note:
      `The machine has ${cpus().length} cores, and the loader, nats-server and the children need theirs of them, which one ` +
      'instance leaves to them: this shows what the bus gives where there are no cores to spare. CPU is that of both together.',
    figures,
  };
}

/** The bridge and troupe on one bus, troupe's own, each with one child. */
export async function pair(subjects, given) {
  const troupe = await startTroupe({ servers: 1, ...given });
  const { daemon, child, nats } = pidsOf(await troupe.untilReady());
  const bridge = await startBridge(await troupe.url());
  const loader = await startLoader(await troupe.url());
  const ends = [loader.end, bridge.end, troupe.end];
  return {
    variants: [
      { name: 'bridge', loader, subject: subjects.bridge, pids: { daemon: bridge.pid, child: bridge.childPid, nats } },
      { name: 'troupe', loader, subject: subjects.troupe, pids: { daemon, child, nats } },
    ],
    end: async () => {
      for (const end of ends) await end();
    },
  };
}

export const pidsOf = ({ daemon, bus, servers }) => ({ daemon: daemon.pid, child: servers[0].pid, nats: bus.pid });
