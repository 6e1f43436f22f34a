// The figures of earlier runs beside those of this one: kept in history.json, from which HISTORY.md is drawn.

import { readFileSync, writeFileSync } from 'node:fs';

const KEPT = new URL('history.json', import.meta.url);
const SHOWN = new URL('HISTORY.md', import.meta.url);

/**
 * `run`: `{ version, date, commit, machine, foreign, figures: { name: measured } }`. A second run of a day for the same version
 * takes the place of the first: it is the same column, measured again.
 */
export function addRun(run) {
  const { runs } = JSON.parse(readFileSync(KEPT, 'utf8'));
  const others = runs.filter(({ version, date }) => version !== run.version || date !== run.date);
  const all = [...others, run];
  writeFileSync(KEPT, `${JSON.stringify({ runs: all }, undefined, 2)}\n`);
  writeFileSync(SHOWN, drawn(all));
}

/** The rows of the newest run first, as it has them; then those that are not measured any more. */
export function drawn(runs) {
  const names = [...new Set(runs.toReversed().flatMap(({ figures }) => Object.keys(figures)))];
  const head = ['figure', ...runs.map(({ version, date }) => `${version}, ${date}`)];
  const about = [
    ['commit', ...runs.map(({ commit }) => commit)],
    ['machine', ...runs.map(({ machine }) => machine)],
    ['what else ran, of one core', ...runs.map(({ foreign }) => foreign)],
  ];
  const rows = names.map((name) => [name, ...runs.map(({ figures }) => figures[name] ?? '')]);
  return `# The way so far

Drawn by \`npm run bench\` from [history.json](history.json): one column is one whole run, as [README.md](README.md) was then. Runs
are of different days, and of machines that may not have been equally fast, so ratios within one run tell more than
microseconds of two. An empty cell was not measured in that run.

${[head, head.map(() => '---'), ...about, ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n')}
`;
}
