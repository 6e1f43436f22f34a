// `npm run conformance`: the official conformance suite through troupe, as a table; fails unless all that must pass does.
// `npm run conformance -- client` runs only the scenarios in which troupe is the client, `-- server` only the others.

import { clientRuns, runClient } from './client-runs.mjs';
import { startClientStage } from './client-stage.mjs';
import { runServer, serverRuns, startStage } from './server-runs.mjs';

const [wanted] = process.argv.slice(2);
if (wanted && wanted !== 'server' && wanted !== 'client') {
  console.error(`there is no ${wanted}; say server, client, or nothing for both`);
  process.exit(2);
}
const rows = [];

if (wanted !== 'client') await play(await startStage(), serverRuns, runServer);
if (wanted !== 'server') await play(await startClientStage(), clientRuns, runClient);

const width = Math.max(...rows.map(([title]) => title.length));
console.log();
for (const [title, verdict, counts] of rows) console.log(`${title.padEnd(width)}  ${verdict.padEnd(16)}  ${counts}`);
process.exit(rows.every(([, verdict]) => verdict !== 'FAILED') ? 0 : 1);

async function play(stage, runs, run) {
  try {
    for (const each of runs) report(each, await run(stage, each));
  } finally {
    await stage.close();
  }
}

function report({ title, expected }, { isGood, passed, failed, complaints, output }) {
  const verdict = isGood ? 'passed' : expected ? 'expected to fail' : 'FAILED';
  rows.push([title, verdict, `${passed} of ${passed + failed} checks`]);
  process.stderr.write(`${title}: ${verdict}\n`);
  if (verdict !== 'FAILED') return;
  for (const complaint of complaints) process.stderr.write(`    ${complaint}\n`);
  if (complaints.length === 0) process.stderr.write(`${output.slice(-2_000)}\n`);
}
