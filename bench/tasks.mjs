// Calls whose outcome is kept, over NATS: made and fetched as fast as so many callers can, beside the bare limit of one insert
// each into the same store on the same disk; and what a long table costs those who look into it.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cells, figure, round } from './figures.mjs';
import { ending, startInserts, startTaskLoader, startTroupe } from './processes.mjs';
import { fill } from './tasks-rows.mjs';
import { compare, isQuick, median } from './windows.mjs';

const BODY = JSON.stringify({ message: 'x'.repeat(300 - '{"message":""}'.length) }); // 300 bytes
const SUBJECT = 'troupe.call.s0.echo';
const PAGE = 100;
const FINISHED = isQuick ? [PAGE, 2_000] : [PAGE, 100_000, 1_000_000];
const ROUNDS = isQuick ? 3 : 9;
const HEAD = ['a second', 'p50 ms', 'p99 ms', 'daemon µs', 'child µs', 'nats µs', 'loader µs', 'foreign'];

export const tasks = { tasks: made, finished };

async function made() {
  const troupe = await startTroupe({ servers: 1 });
  const pids = pidsOf(await troupe.untilReady());
  const directory = mkdtempSync(join(tmpdir(), 'troupe-bench-'));
  const remove = ending(() => rmSync(directory, { recursive: true, force: true }));
  const inserts = await startInserts(directory);
  const loader = await startTaskLoader(await troupe.url());
  const variants = [
    { name: 'inserts', loader: inserts, subject: '', pids: {} },
    { name: 'tasks', loader, subject: SUBJECT, pids },
  ];
  const rows = [];
  const figures = [];
  // The largest first: one caller alone would take minutes to make the daemon's code warm.
  for (const c of [256, 16, 1]) {
    const { inserts: bare, tasks: whole, ratio } = await compare(variants, { c, body: BODY, count: 11, keep: 7 });
    const alone = cells({ ...bare, cpu: { daemon: bare.cpu.loader } }, ['daemon']);
    rows.unshift([c, 'tasks', ...cells(whole, ['daemon', 'child', 'nats', 'loader']), round(ratio, 2)]);
    rows.unshift([c, 'bare inserts', ...alone.slice(0, 4), '', '', '', alone[4], '']);
    figures.unshift(figure(`tasks/s at c=${c}, of bare inserts`, ratio, '≥', 0.5));
    if (c > 1) figures.push(figure(`daemon CPU a task at c=${c}`, whole.cpu.daemon, '≤', 180, 'µs'));
  }
  for (const end of [loader.end, inserts.end, remove, troupe.end]) await end();
  return {
    title: 'Tasks: made, run and fetched; echo, 300 bytes, synchronous=FULL',
    head: ['c', 'variant', ...HEAD, 'ratio'],
    rows,
    note: 'A task is two commits, one after the other. The latency is that of its creation, or of the insert.',
    figures,
  };
}

/** The same questions about one page of finished tasks, and about ever more of them. */
async function finished() {
  const variants = [];
  for (const count of FINISHED) {
    const troupe = await startTroupe({ servers: 1 });
    const pids = pidsOf(await troupe.untilReady());
    const { ids, middle } = fill(troupe.state, count);
    const loader = await startTaskLoader(await troupe.url());
    variants.push({
      name: `n${count}`,
      troupe,
      loader,
      subject: SUBJECT,
      pids,
      questions: questionsOf(ids, middle),
      took: {},
    });
  }
  for (let turn = 0; turn < ROUNDS; turn += 1)
    for (const variant of variants) for (const name of Object.keys(variant.questions)) await askAll(variant, name);
  const busy = await compare(variants, { c: 16, body: BODY });
  const alone = await compare(variants, { c: 1, body: BODY });
  for (const { loader, troupe } of variants) {
    await loader.end();
    await troupe.end();
  }
  const tables = variants.map(({ name, took }) => ({
    asked: [
      ...Object.entries(took).map(([question, each]) => [question, median(each.slice(1))]),
      ['create', alone[name].p50],
    ],
    busy: busy[name],
  }));
  const [few, most] = [tables[0], tables.at(-1)];
  const of = (what) => tables.map((table, index) => [FINISHED[index], what(table)]);
  const counts = FINISHED.map((count) => count.toLocaleString('en'));
  const between = `with ${counts.at(-1)} finished tasks, of that with ${counts[0]}`;
  const requests = few.asked.map(([name], index) => ({ name, points: of(({ asked }) => asked[index][1]) }));
  const run = [
    ['tasks/s at c=16', ({ rate }) => rate, 1],
    ['daemon CPU a task at c=16, µs', ({ cpu }) => cpu.daemon, 1],
    ['p99 of creation at c=16, ms', ({ p99 }) => p99, 2],
  ].map(([name, what, digits]) => ({ name, digits, points: of((table) => what(table.busy)) }));
  return {
    title: 'Growth: finished tasks in the table',
    head: ['', ...counts.map((count) => `with ${count}`), 'ratio'],
    rows: [
      ...requests.map(({ name, points }) => lineOf(`${name}, p50 of one caller, ms`, points, 2)),
      ...run.map(({ name, points, digits }) => lineOf(name, points, digits)),
    ],
    chart: {
      name: 'tasks',
      label: 'finished tasks',
      panels: [
        { label: 'p50 of one caller, ms', series: requests },
        ...run.map(({ name, points }) => ({ label: name, series: [{ name: 'run', points }] })),
      ],
    },
    figures: [
      ...few.asked.map(([name, before], index) =>
        figure(`${name} ${between}`, most.asked[index][1] / before, '≤', 1.5),
      ),
      figure(`CPU a task ${between}`, most.busy.cpu.daemon / few.busy.cpu.daemon, '≤', 1.5),
    ],
  };
}

const lineOf = (name, points, digits) => {
  const values = points.map(([, value]) => value);
  return [name, ...values.map((value) => round(value, digits)), round(values.at(-1) / values[0], 2)];
};

function questionsOf(ids, middle) {
  const some = Array.from({ length: PAGE }, (_, number) => ids[Math.floor((number * ids.length) / PAGE)]);
  return {
    get: some.map((id) => [`troupe.task.get.${id}`, '']),
    'list, first page': Array.from({ length: 10 }, () => ['troupe.task.list', '']),
    'list, in the middle': Array.from({ length: 10 }, () => ['troupe.task.list', JSON.stringify({ cursor: middle })]),
  };
}

async function askAll({ loader, questions, took }, name) {
  const { took: each, failure } = await loader.ask({ job: 'ask', requests: questions[name] });
  if (failure) throw new Error(`${name}: ${failure}`);
  took[name] = [...(took[name] ?? []), median(each)];
}

const pidsOf = ({ daemon, bus, servers }) => ({ daemon: daemon.pid, child: servers[0].pid, nats: bus.pid });
