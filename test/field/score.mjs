// The official conformance suite's scenarios for servers, as a score.

import { runServer, serverRuns, startStage } from '../conformance/server-runs.mjs';
import { toolVersion } from '../support/tools.mjs';

export async function scoreSuite(tell) {
  const stage = await startStage();
  try {
    const rows = [];
    for (const run of serverRuns) rows.push(await play(stage, run, tell));
    return rows;
  } finally {
    await stage.close();
  }
}

async function play(stage, run, tell) {
  const { isGood, passed, failed, scenarios, complaints, output } = await runServer(stage, run);
  tell(`conformance ${run.title}: ${passed} of ${passed + failed}`);
  const why = complaints.length > 0 ? complaints : [output.slice(-500)];
  return {
    ...{ name: `\`${run.words.join(' ')}\``, version: toolVersion(run.tool), transport: run.transport },
    ...{ passed, failed, scenarios, troubles: isGood ? [] : why },
  };
}
