// `npm run bench` measures everything and writes bench/README.md with its charts, and a column of bench/HISTORY.md;
// `npm run bench -- calls idle` only shows those and writes nothing, `doors` stands for all that has to do with hosts, and
// `growth` for all curves.
// Linux only: CPU and memory are read from /proc. A timing is never a test: nothing here fails for being slow.

import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus, release } from 'node:os';
import { toolPath } from '../test/support/tools.mjs';
import { chart } from './charts.mjs';
import { doors } from './doors.mjs';
import { growth } from './growth.mjs';
import { addRun } from './history.mjs';
import { endAll } from './processes.mjs';
import * as core from './scenarios.mjs';
import { starts } from './starts.mjs';
import { tasks } from './tasks.mjs';
import { isQuick, median, seenForeign } from './windows.mjs';

const scenarios = { ...core.scenarios, ...starts, ...tasks, ...doors, ...growth };
const groups = { doors, growth };
const wanted = process.argv.slice(2).flatMap((name) => (name in groups ? Object.keys(groups[name]) : name));
const unknown = wanted.filter((name) => !(name in scenarios));
if (unknown.length > 0) {
  console.error(`no scenario ${unknown.join(', ')}; there are ${Object.keys(scenarios).join(', ')}`);
  process.exit(2);
}

process.on('SIGINT', () => void endAll().then(() => process.exit(130)));

const results = [];
for (const name of wanted.length > 0 ? wanted : Object.keys(scenarios)) results.push(await measure(name));

const report = [...results.map(section), '## Figures\n', figures(results)].join('\n');
console.log(`\n${report}`);
if (wanted.length === 0 && !isQuick) await write();

async function write() {
  mkdirSync(new URL('charts', import.meta.url), { recursive: true });
  for (const { title, chart: drawing } of results)
    if (drawing) writeFileSync(new URL(chartOf(drawing), import.meta.url), chart({ title, ...drawing }));
  writeFileSync(new URL('README.md', import.meta.url), `${await preamble()}\n${figuresFirst(results)}`);
  addRun({
    version: JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')).version,
    date: today(),
    commit: commit(),
    machine: `${machine()}, Node ${process.version}`,
    foreign: foreign(),
    figures: Object.fromEntries(
      results.flatMap(({ figures: all }) => all.map(({ name, measured }) => [name, measured])),
    ),
  });
}

async function measure(name) {
  const from = performance.now();
  process.stderr.write(`${name} … `);
  try {
    return await scenarios[name]();
  } catch (error) {
    return { title: name, rows: [], figures: [], note: `It could not be measured: ${error.message}` };
  } finally {
    await endAll();
    process.stderr.write(`${((performance.now() - from) / 1000).toFixed(1)} s\n`);
  }
}

function figuresFirst(all) {
  return ['## Figures\n', figures(all), '', ...all.map(section)].join('\n');
}

function figures(all) {
  const rows = all.flatMap((each) => each.figures);
  const cells = rows.map(({ name, measured, wanted: limit, isMet }) => [
    name,
    limit,
    measured,
    isMet ? 'yes' : '**no**',
  ]);
  return table(['figure', 'wanted', 'measured', 'met'], cells);
}

function section({ title, head, rows, note, chart: drawing }) {
  const parts = [`## ${title}\n`];
  if (drawing) parts.push(`![${title}](${chartOf(drawing)})\n`);
  if (rows.length > 0) parts.push(table(head, rows), '');
  if (note) parts.push(note, '');
  return parts.join('\n');
}

function chartOf({ name }) {
  return `charts/${name}.svg`;
}

function table(head, rows) {
  const lines = [head, head.map(() => '---'), ...rows];
  return lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

async function preamble() {
  const versionOf = (name) =>
    JSON.parse(readFileSync(new URL(`../node_modules/${name}/package.json`, import.meta.url), 'utf8')).version;
  const packages = ['nats', 'xstate', 'better-sqlite3', 'execa', 'pino'].map((name) => `${name} ${versionOf(name)}`);
  return `# Measurements

Written by \`npm run bench\` on ${today()}: Node ${process.version}, ${packages.join(', ')},
${machine()}, Linux ${release()}, commit ${commit()}. All is of one run, in which
everything else on the machine took ${foreign()}. Earlier runs stand beside it in
[HISTORY.md](HISTORY.md), what was found on the way in [FINDINGS.md](FINDINGS.md).

The ratios compare troupe with a bare bridge of the same path (\`bridge.mjs\`: NATS subscription, id, a child's stdin,
reply; no machines, no store, no log) in one run, on one bus, with the same child (\`child.mjs\`). The load comes from a
raw-socket NATS client in a process of its own (\`loader.mjs\`), c calls outstanding. Windows of 500 ms take turns between
the variants in rounds; the quietest 5 rounds of 7 count (3 of 4 where costs grow): medians for rates, latencies and the
rounds' own ratios, sums for CPU per call (user and system time of the process, all its threads, from \`/proc\`).
\`foreign\` is what everything else on the machine took, of one core: above 30 % the rates and ratios say little. All
processes share the machine's cores, so a rate at c ≥ 64 is the whole machine's; CPU per call is the steadier number.
Differences below 20 % are noise.

The doors are measured in the same way, before the same child, beside a bare proxy (\`http-bridge.mjs\`: node:http, id, a
child's stdin, answer) and beside ${await peer('supergateway')} and ${await peer('mcp-proxy')}, with their logs off. Their load comes from
raw sockets that are kept open (\`door-loader.mjs\`): over HTTP one for each call outstanding, over WebSocket one for each
session.

Charts have logarithmic axes: what grows with its work is a straight line, and what does not grow is level.

Tasks are made with \`Troupe-Task: 1\` and fetched with \`troupe.task.result\` (\`tasks-loader.mjs\`); one counts when its result
is there. The bare limit is the same store in a process of its own with as many callers, each of which inserts a row like
a task's and waits for the disk (\`tasks-inserts.mjs\`): no bus, no call, and one commit where a task has two.
`;
}

/** The name and version of a peer, as it is installed. */
async function peer(name) {
  const path = await toolPath(name).catch(() => '');
  return `${name} ${/-(\d[\w.-]*)\/node_modules/.exec(path)?.[1] ?? '(not installed)'}`;
}

function today() {
  return new Date().toISOString().slice(0, 10);
}

function machine() {
  return `${cpus().length} × ${cpus()[0].model.trim()}`;
}

/** What was seen in the windows that count: a short window's ticks of 10 ms may add up to less than nothing. */
function foreign() {
  const percent = (share) => `${Math.max(0, Math.round(share * 100))} %`;
  return seenForeign.length > 0
    ? `${percent(median(seenForeign))} of a core in the middle, ${percent(Math.max(...seenForeign))} at most`
    : 'nobody knows how much';
}

function commit() {
  const { stdout, status } = spawnSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' });
  return status === 0 ? stdout.trim() : 'unknown';
}
