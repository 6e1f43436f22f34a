// The container files, as far as they can be tried without an engine: their structure, the bus's configuration on a real
// nats-server, and the image's own build, health and start commands in a clean directory.

import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { cp, mkdir, rename, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { connect } from 'nats';
import { describe, expect, test } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { eventually } from '../support/eventually.ts';
import { freePort, natsBinary } from '../support/nats.ts';
import { scratch } from '../support/scratch.ts';

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const read = (file: string) => readFileSync(join(ROOT, file), 'utf8');
const [build = [], runtime = []] = stages(read('Dockerfile'));
const compose = read('docker-compose.yml');

describe('the image', () => {
  test('is built in one stage and run in another, both from the same pinned Node', () => {
    expect(stages(read('Dockerfile'))).toHaveLength(2);
    expect(only(build, 'FROM')).toMatch(/^node:22\.\d+\.\d+-\S+-slim AS build$/);
    expect(only(build, 'FROM')).toBe(`${only(runtime, 'FROM')} AS build`);
  });

  test('runs as a user without rights, under an init that reaps', () => {
    expect(only(runtime, 'USER')).toBe('node');
    expect(JSON.parse(only(runtime, 'ENTRYPOINT'))).toEqual(['/usr/bin/tini', '--']);
    expect(all(runtime, 'RUN').join()).toContain('apt-get install -y --no-install-recommends tini');
  });

  test('keeps its state on a volume that its user owns, and is asked for its health', () => {
    const state = only(runtime, 'VOLUME');
    expect(all(runtime, 'RUN')).toContain(`install -d -o node -g node -m 0700 ${state}`);
    expect(only(runtime, 'ENV').split(' ')).toEqual(
      expect.arrayContaining([`TROUPE_STATE=${state}`, 'TROUPE_CONFIG=/etc/troupe/troupe.json']),
    );
    expect(health()).toEqual(['node', 'dist/bundle/troupe.cjs', 'status', '--json']);
  });

  test('is built from the sources alone', () => {
    const ignored = read('.dockerignore').split('\n');
    expect(ignored).toEqual(expect.arrayContaining(['.git', '.env', 'node_modules', 'dist']));
  });
});

describe('docker-compose.yml', () => {
  test('waits for a healthy bus, restarts what dies, and keeps what both store', () => {
    expect(block('services', 'nats')).toMatch(/image: nats:\d+\.\d+\.\d+-alpine\n/);
    expect(block('services', 'nats', 'healthcheck')).toContain('/healthz');
    expect(block('services', 'troupe', 'depends_on', 'nats')).toContain('condition: service_healthy');
    for (const service of ['nats', 'troupe']) expect(block('services', service)).toContain('restart: unless-stopped\n');
    expect(block('services', 'troupe', 'volumes')).toContain('- troupe-state:/var/lib/troupe\n');
    expect(block('volumes')).toBe('nats-data:\ntroupe-state:\n');
  });

  test('has one init: the one in the image', () => {
    expect(compose).not.toMatch(/^\s+init:/m);
  });

  test('publishes ports on the loopback only', () => {
    const ports = [...compose.matchAll(/^\s+- "(\S*:\d+:\d+)"$/gm)].map(([, port]) => port);
    expect(ports).toEqual(['127.0.0.1:4222:4222']);
  });

  test('holds no secret, and says how to make one', () => {
    expect(block('services', 'nats', 'environment')).toMatch(/^NATS_TOKEN: \$\{NATS_TOKEN:\?set NATS_TOKEN/);
    expect(block('services', 'troupe', 'environment')).toBe(`NATS_URL: nats://\${NATS_TOKEN}@nats:4222\n`);
  });

  test('gives nats-server a configuration that it takes: JetStream, and nobody without the token', async () => {
    await using dir = await scratch();
    const [port, monitor] = [await freePort(), await freePort()];
    const text = block('configs', 'nats', 'content').replaceAll('$$', '$').replace('/data', dir.path);
    const config = text.replace('0.0.0.0:4222', `127.0.0.1:${port}`).replace(':8222', `:${monitor}`);
    await writeFile(join(dir.path, 'nats.conf'), config);
    const env = { NATS_TOKEN: 't0ken' };
    const server = spawn((await natsBinary()).path, ['-c', join(dir.path, 'nats.conf')], { env, stdio: 'ignore' });
    const exited = once(server, 'exit');
    try {
      await eventually(async () => (await fetch(`http://127.0.0.1:${monitor}/healthz`)).ok);
      const servers = `127.0.0.1:${port}`;
      const connection = await connect({ servers, token: env.NATS_TOKEN });
      expect(connection.info).toMatchObject({ jetstream: true, max_payload: 8 * 1024 * 1024 });
      await connection.close();
      await expect(connect({ servers, token: 'wrong', reconnect: false })).rejects.toThrow(/Authorization/i);
    } finally {
      server.kill('SIGKILL');
      await exited;
    }
  });
});

test('the sample configuration is accepted without a warning', () => {
  const loaded = loadConfig(join(ROOT, 'examples/troupe.jsonc'), {});
  expect(loaded).toMatchObject({ ok: true, warnings: [] });
  expect(loaded.ok && loaded.config.servers.map(({ name }) => name)).toEqual(['everything', 'filesystem', 'memory']);
});

test('the build, start and health commands of the image work in a clean directory', { timeout: 180_000 }, async () => {
  await using dir = await scratch();
  const [source, app] = [join(dir.path, 'build'), join(dir.path, 'app')];
  await copyContext(source);
  const npm = all(build, 'RUN').filter((command) => command.startsWith('npm '));
  expect(npm[0]).toMatch(/^npm ci/);
  const { NODE_ENV: _test, ...inherited } = process.env;
  const env = {
    ...inherited,
    npm_config_better_sqlite3_local_prebuilds: await prebuilt(dir.path),
    // What is in npm's cache is used without asking whether it has changed: the lockfile knows what it must be.
    npm_config_prefer_offline: 'true',
    npm_config_audit: 'false',
    npm_config_fund: 'false',
  };
  for (const command of npm) await run('sh', ['-c', command], { cwd: source, env });

  await mkdir(app);
  const kept = all(runtime, 'COPY').flatMap((copy) => /^--from=build \/app\/(\S+) /.exec(copy)?.[1] ?? []);
  for (const name of kept) await rename(join(source, name), join(app, name));
  await expect(run('node', ['-e', 'import("typescript")'], { cwd: app })).rejects.toThrow(/typescript/);

  const config = join(dir.path, 'troupe.json');
  const echo = { command: process.execPath, args: [join(ROOT, 'test/fixtures/echo.mjs')] };
  await writeFile(config, JSON.stringify({ mcpServers: { echo } }));
  await startAndStop(app, { ...env, TROUPE_STATE: join(dir.path, 'state'), TROUPE_CONFIG: config });
});

/** This checkout's own SQLite, as its published binary: compiling it takes minutes where that cannot be fetched. */
async function prebuilt(directory: string): Promise<string> {
  const from = join(ROOT, 'node_modules/better-sqlite3');
  const { version } = JSON.parse(readFileSync(join(from, 'package.json'), 'utf8'));
  const { platform, arch, versions } = process;
  const archive = `better-sqlite3-v${version}-node-v${versions.modules}-${platform}-${arch}.tar.gz`;
  await run('tar', ['-czf', join(directory, archive), '-C', from, 'build/Release/better_sqlite3.node']);
  return directory;
}

/** Starts the image's command, waits until its health check sees the server ready, and stops it as an engine does. */
async function startAndStop(cwd: string, env: NodeJS.ProcessEnv): Promise<void> {
  const [program = '', ...words] = JSON.parse(only(runtime, 'CMD')) as string[];
  const daemon = spawn(program, words, { cwd, env, stdio: 'ignore' });
  const exited = once(daemon, 'exit');
  try {
    const [check = '', ...args] = health();
    await eventually(async () => {
      const { servers } = JSON.parse((await run(check, args, { cwd, env })).stdout);
      expect(servers).toMatchObject([{ name: 'echo', state: 'ready' }]);
    }, 30_000);
    daemon.kill('SIGTERM');
    expect(await exited).toEqual([0, null]);
  } finally {
    if (daemon.exitCode === null) daemon.kill('SIGKILL');
  }
}

/** What `docker build` would be given: the files of the project, but for those that .dockerignore names. */
async function copyContext(target: string): Promise<void> {
  const ignored = read('.dockerignore')
    .split('\n')
    .filter((line) => line && !line.startsWith('#'));
  const isIgnored = (file: string) =>
    ignored.some((name) =>
      name.startsWith('*') ? file.endsWith(name.slice(1)) : file === name || file.startsWith(`${name}/`),
    );
  const listed = await run('git', ['ls-files', '--cached', '--others', '--exclude-standard'], { cwd: ROOT });
  for (const file of new Set(listed.stdout.trim().split('\n'))) {
    if (isIgnored(file)) continue;
    await mkdir(dirname(join(target, file)), { recursive: true });
    await cp(join(ROOT, file), join(target, file));
  }
}

type Instruction = { readonly word: string; readonly rest: string };

function stages(dockerfile: string): Instruction[][] {
  const lines = dockerfile.split('\n').filter((line) => line.trim() && !line.startsWith('#'));
  const instructions = lines.map((line) => ({ word: line.split(' ', 1)[0] ?? '', rest: line.replace(/^\S+ /, '') }));
  const starts = instructions.flatMap(({ word }, index) => (word === 'FROM' ? [index] : []));
  return starts.map((start, index) => instructions.slice(start, starts[index + 1]));
}

function all(stage: Instruction[], word: string): string[] {
  return stage.filter((each) => each.word === word).map((each) => each.rest);
}

function only(stage: Instruction[], word: string): string {
  const [found, ...more] = all(stage, word);
  if (found === undefined || more.length > 0) throw new Error(`${word} must stand once in the stage`);
  return found;
}

const health = (): string[] => JSON.parse(only(runtime, 'HEALTHCHECK').replace(/^.*CMD /, ''));

/** The lines under a path of keys, without their indentation: enough of YAML for a file that we wrote ourselves. */
function block(...keys: string[]): string {
  return keys.reduce((text, key) => {
    const lines = text.split('\n');
    const start = lines.findIndex((line) => line === `${key}:` || line === `${key}: |`);
    if (start === -1) throw new Error(`docker-compose.yml has no ${keys.join('.')}`);
    const length = lines.slice(start + 1).findIndex((line) => /^\S/.test(line));
    const inner = lines.slice(start + 1, length === -1 ? undefined : start + 1 + length);
    return `${inner
      .filter((line) => line.trim())
      .map((line) => line.replace(/^ {2}/, ''))
      .join('\n')}\n`;
  }, compose);
}
