import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { chmod, cp, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { fetchNatsServer, findNatsServer } from '../../src/bus/acquire.ts';
import { natsBinary } from '../support/nats.ts';

const linux = process.platform === 'linux';
const architecture = process.arch === 'x64' ? 'amd64' : process.arch;
let directory: string;
let cacheDir: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'troupe-acquire-'));
  cacheDir = join(directory, 'cache');
});
afterEach(() => rm(directory, { recursive: true, force: true }));

test('finds the server that the environment names, before any other', async () => {
  const { path, version } = await natsBinary();
  await cp(path, join(directory, 'mine'));
  const env = { TROUPE_NATS_SERVER: join(directory, 'mine'), PATH: process.env.PATH };
  expect(await findNatsServer({ env, cacheDir })).toEqual({ path: join(directory, 'mine'), version });
});

test('complains about a named server that does not run, instead of taking another', async () => {
  const env = { TROUPE_NATS_SERVER: join(directory, 'missing'), PATH: process.env.PATH };
  await expect(findNatsServer({ env, cacheDir })).rejects.toThrow(/TROUPE_NATS_SERVER.*correct or unset it/);
});

test('passes over an impostor on the PATH and finds the next one', async () => {
  const { path, version } = await natsBinary();
  for (const folder of ['first', 'second']) await mkdir(join(directory, folder));
  await writeFile(join(directory, 'first/nats-server'), '#!/bin/sh\necho hello\n');
  await chmod(join(directory, 'first/nats-server'), 0o755);
  await cp(path, join(directory, 'second/nats-server'));
  const env = { PATH: `${join(directory, 'first')}:${join(directory, 'second')}` };
  expect(await findNatsServer({ env, cacheDir })).toEqual({ path: join(directory, 'second/nats-server'), version });
});

test.runIf(linux)('installs the pinned release, also when two processes do so at once', async () => {
  await using mirror = await mirrorOf('9.9.9');
  const options = { cacheDir, env: { ...process.env, TROUPE_NATS_MIRROR: mirror.url }, release: mirror.release };
  const installed = await Promise.all([fetchNatsServer(options), fetchNatsServer(options)]);
  const expected = { path: join(cacheDir, 'bin/nats-server'), version: '9.9.9' };
  expect(installed).toEqual([expected, expected]);
  expect((await stat(expected.path)).mode & 0o777).toBe(0o755);
  expect(await readdir(cacheDir)).toEqual(['bin']);
  expect(await readdir(join(cacheDir, 'bin'))).toEqual(['nats-server']);
});

test.runIf(linux)('finds what it put into the cache', async () => {
  const { path, version } = await natsBinary();
  await mkdir(join(cacheDir, 'bin'), { recursive: true });
  await cp(path, join(cacheDir, 'bin/nats-server'));
  const found = await findNatsServer({ env: { PATH: '' }, cacheDir });
  expect(found?.version).toBe(version); // one in /usr/sbin or /usr/local/bin would rightly come first
});

test.runIf(linux)('refuses a release whose checksum is wrong, and says what to do instead', async () => {
  await using mirror = await mirrorOf('9.9.9');
  const release = { version: '9.9.9', sha256: { [architecture]: '0'.repeat(64) } };
  const env = { PATH: directory, TROUPE_NATS_MIRROR: mirror.url }; // no apt-get on this PATH
  await expect(fetchNatsServer({ cacheDir, env, release })).rejects.toThrow(
    /checksum of nats-server .* is wrong.*brew install nats-server.*TROUPE_NATS_SERVER.*NATS_URL/,
  );
  expect(await readdir(join(cacheDir, 'bin'))).toEqual([]);
});

test('a mirror that does not answer is no reason to hang', async () => {
  const env = { PATH: directory, TROUPE_NATS_MIRROR: 'http://127.0.0.1:1' };
  await expect(fetchNatsServer({ cacheDir, env })).rejects.toThrow(/No nats-server could be fetched/);
});

/** A web server that has one release: a tarball laid out like the real ones, with a small binary. */
async function mirrorOf(version: string) {
  const name = `nats-server-v${version}-linux-${architecture}`;
  await mkdir(join(directory, name));
  await writeFile(join(directory, name, 'nats-server'), `#!/bin/sh\necho nats-server: v${version}\n`);
  await execa('tar', ['-czf', 'release.tar.gz', name], { cwd: directory });
  const archive = await readFile(join(directory, 'release.tar.gz'));
  const server = createServer((request, response) => {
    const isThere = request.url === `/v${version}/${name}.tar.gz`;
    response.writeHead(isThere ? 200 : 404).end(isThere ? archive : undefined);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  return {
    url: `http://127.0.0.1:${port}`,
    release: { version, sha256: { [architecture]: createHash('sha256').update(archive).digest('hex') } },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
