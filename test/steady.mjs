// `npm run steady`: the whole suite ten times in a row, three of them beside a load that takes one core, and three on a slow disk
// where there is a C compiler. Prints every test that failed with the seeds that it ran with, and ends with 1 if there was one.
// `npm run steady -- 3 test/contract` makes three rounds of those files; TROUPE_SEED and TROUPE_CHAOS_SEED fix the seeds.

import { spawn, spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const VITEST = join(ROOT, 'node_modules/vitest/vitest.mjs');
/** A round that takes longer has failed, and so has whatever it was waiting for. */
const ROUND_MS = 45 * 60_000;
/** One of three rounds has a neighbour, and one a slow disk. */
const KINDS = 3;
const SLOW_DISK = 2;
const LOADED = 0;

const [first = '10', ...rest] = process.argv.slice(2);
const isNumber = /^\d+$/.test(first);
const rounds = isNumber ? Number(first) : 10;
const filters = isNumber ? rest : [first, ...rest];

const hasCompiler = process.platform === 'linux' && spawnSync('cc', ['--version']).status === 0;
const failures = [];
for (let round = 1; round <= rounds; round++) failures.push(...(await runRound(round)));
say(failures.length === 0 ? `${rounds} rounds, no failure` : `${failures.length} failures in ${rounds} rounds:`);
for (const failure of failures) say(failure);
process.exitCode = failures.length === 0 ? 0 : 1;

async function runRound(round) {
  const isLoaded = round % KINDS === LOADED;
  const isSlow = round % KINDS === SLOW_DISK && hasCompiler;
  const seeds = {
    TROUPE_SEED: process.env.TROUPE_SEED ?? String(randomInt(2 ** 31)),
    TROUPE_CHAOS_SEED: process.env.TROUPE_CHAOS_SEED ?? String(randomInt(2 ** 31)),
  };
  const words = `${Object.entries(seeds)
    .map((pair) => pair.join('='))
    .join(' ')}${isLoaded ? ', beside a load' : ''}${isSlow ? ', on a slow disk' : ''}`;
  say(`round ${round} of ${rounds}: ${words}`);
  const since = performance.now();
  const directory = await mkdtemp(join(tmpdir(), 'ts-'));
  const load = isLoaded ? startLoad() : undefined;
  try {
    const report = join(directory, 'report.json');
    const code = await runSuite(report, isSlow ? { ...seeds, TROUPE_SLOW_DISK: slowDisk(directory) } : seeds);
    const failed = failedIn(await readFile(report, 'utf8').catch(() => undefined));
    if (failed.length === 0 && code !== 0) failed.push(`vitest ended with ${code}: see its output above`);
    say(`round ${round}: ${failed.length} failed, ${Math.round((performance.now() - since) / 1_000)} s`);
    return failed.map((each) => `  round ${round} (${words}): ${each}`);
  } finally {
    load?.kill('SIGKILL');
    await rm(directory, { recursive: true, force: true });
  }
}

async function runSuite(report, environment) {
  const reporters = ['--reporter=dot', '--reporter=json', `--outputFile.json=${report}`];
  const child = spawn(process.execPath, [VITEST, 'run', ...reporters, ...filters], {
    cwd: ROOT,
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const tooLate = setTimeout(() => child.kill('SIGKILL'), ROUND_MS);
  const [code, signal] = await once(child, 'exit');
  clearTimeout(tooLate);
  return code ?? signal;
}

/** The library that daemons are started with. */
function slowDisk(directory) {
  const path = join(directory, 'slow-disk.so');
  const source = join(ROOT, 'test/support/slow-disk.c');
  const { status, stderr } = spawnSync('cc', ['-shared', '-fPIC', '-o', path, source, '-ldl'], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${source} does not compile: ${stderr}`);
  return path;
}

/** Takes one core until it is killed, until this process is gone, or until the round should have ended. */
function startLoad() {
  const program =
    'const end = Date.now() + Number(process.argv[1]); const parent = process.ppid; while (process.ppid === parent && Date.now() < end);';
  return spawn(process.execPath, ['-e', program, String(ROUND_MS)], { stdio: 'ignore' });
}

function failedIn(text) {
  if (!text) return [];
  return JSON.parse(text).testResults.flatMap(({ name, status, message, assertionResults }) => {
    const file = relative(ROOT, name);
    const failed = assertionResults.filter((test) => test.status === 'failed');
    if (status === 'failed' && failed.length === 0) return [`${file}: ${firstLine(message)}`];
    return failed.map((test) => `${file} > ${test.fullName}: ${firstLine(test.failureMessages[0])}`);
  });
}

function firstLine(text = '') {
  return text.split('\n')[0];
}

function say(line) {
  process.stdout.write(`steady: ${line}\n`);
}
