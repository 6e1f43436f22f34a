// The suite's server scenarios through troupe: the fixture stands behind it once over stdio and once over Streamable
// HTTP, the suite in front of it, at the endpoint of one server.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { runSuite } from './suite.mjs';
import { startTroupe } from './troupe.mjs';

const file = (name) => fileURLToPath(new URL(`server/${name}`, import.meta.url));

/**
 * How many scenarios there are and how many checks the suite's own server passes. Some checks are only made of streams or
 * only of plain answers, and which of them a request gets is a matter of time: none may fail, and no fewer may be made.
 */
const SUITES = [
  { tool: 'conformance', words: ['--suite', 'all'], scenarios: 32, checks: 44 },
  { tool: 'conformance-next', words: ['--requirements', '2025-11-25'], scenarios: 33, checks: 80 },
];
const SERVERS = { conf: 'stdio', confhttp: 'Streamable HTTP' };

export const serverRuns = Object.entries(SERVERS).flatMap(([server, transport]) =>
  SUITES.map((suite) => ({
    ...suite,
    ...{ server, transport },
    title: `${suite.tool} ${suite.words.join(' ')}, fixture over ${transport}`,
  })),
);

/** The fixture twice behind one daemon. */
export async function startStage() {
  const fixture = await startFixture();
  try {
    const troupe = await startTroupe({
      conf: { command: process.execPath, args: [file('main-stdio.mjs')] },
      confhttp: { type: 'http', url: fixture.url },
    });
    const close = async () => {
      await troupe.close();
      await fixture.close();
    };
    const stage = { urlOf: (server) => `${troupe.http}/mcp/${server}`, close };
    await Promise.all(Object.keys(SERVERS).map((name) => troupe.until(name, ['ready']))).catch(async (error) => {
      await close();
      throw error;
    });
    return stage;
  } catch (error) {
    await fixture.close();
    throw error;
  }
}

export async function runServer(stage, { tool, words, server, scenarios, checks }) {
  const result = await runSuite(tool, ['server', '--url', stage.urlOf(server), ...words]);
  const { exitCode, passed, failed, warned } = result;
  const isWhole = result.scenarios === scenarios && passed >= checks;
  return { ...result, isGood: exitCode === 0 && isWhole && failed === 0 && warned === 0 };
}

async function startFixture() {
  const child = spawn(process.execPath, [file('main-http.mjs')], { stdio: ['ignore', 'pipe', 'inherit'] });
  const exit = once(child, 'exit');
  const [url] = await once(createInterface({ input: child.stdout }), 'line');
  return {
    url,
    async close() {
      child.kill('SIGKILL');
      await exit;
    },
  };
}
