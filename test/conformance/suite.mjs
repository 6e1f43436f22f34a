// Runs the official conformance suite, on the newer Node that it needs, and reads the checks that it wrote.

import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { execa } from 'execa';
import { toolPath } from '../support/tools.mjs';

/** `tool` is which suite, `words` its command line. Resolves whatever the checks say; an exit code of 0 is a pass. */
export async function runSuite(tool, words, env = {}) {
  const directory = await mkdtemp(join(tmpdir(), 'troupe-checks-'));
  try {
    const [node, script] = await Promise.all([toolPath('node'), toolPath(tool)]);
    const { exitCode, all } = await execa(node, [script, ...words, '-o', directory], {
      ...{ cwd: directory, env, all: true, reject: false, stdin: 'ignore', timeout: 180_000 },
    });
    const scenarios = await scenariosIn(directory);
    const sum = (key) => scenarios.reduce((total, each) => total + each[key], 0);
    return {
      ...{ exitCode, output: all, scenarios: scenarios.length },
      ...{ passed: sum('passed'), failed: sum('failed'), warned: sum('warned') },
      complaints: scenarios.flatMap((each) => each.complaints),
    };
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** A folder is `server-<scenario>-<time>`, and a scenario may have a slash in its name. */
async function scenariosIn(directory) {
  const entries = await readdir(directory, { withFileTypes: true, recursive: true });
  const files = entries.filter(({ name }) => name === 'checks.json').map(({ parentPath }) => parentPath);
  return Promise.all(
    files.map(async (folder) => {
      const scenario = relative(directory, folder).replace(/^server-(?=.)|-\d{4}-\d\d-\d\dT[\dZ-]+$/g, '');
      const checks = JSON.parse(await readFile(join(folder, 'checks.json'), 'utf8'));
      const having = (status) => checks.filter((each) => each.status === status);
      const [failures, warnings] = [having('FAILURE'), having('WARNING')];
      return {
        ...{ passed: having('SUCCESS').length, failed: failures.length, warned: warnings.length },
        complaints: [...failures, ...warnings].map(
          ({ name, errorMessage, description }) => `${scenario}: ${name}: ${errorMessage ?? description}`,
        ),
      };
    }),
  );
}
