// A nats-server to run: one that is already on this machine, else one fetched into the cache. No root needed.
// No fetched binary is run before it is vouched for: a pinned checksum for the release, apt's signatures for the package.

import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { access, chmod, constants, mkdir, mkdtemp, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { sentence, TroupeError } from '../protocol/failures.ts';
import { outlasting } from '../world/limits.ts';

export type NatsServer = { readonly path: string; readonly version: string };
export type Environment = Readonly<Record<string, string | undefined>>;
export type Release = { readonly version: string; readonly sha256: Readonly<Record<string, string>> };
type Fetching = { cacheDir: string; env: Environment; onProgress?: (step: string) => void; release?: Release };

const PINNED: Release = {
  version: '2.12.15',
  sha256: {
    amd64: '58ab8131f819263897e2fc38e503e1b755b63bcafeecc7d12582487df48ca15e',
    arm64: 'b724db99fefbf8f5c808baa82819ee50350aee9734017e4a478f7e545cef3ab6',
  },
};
const MAX_OUTPUT = 16 * 2 ** 20;
const RELEASES = 'https://github.com/nats-io/nats-server/releases/download';
// Debian installs into /usr/sbin, which is often not on a user's PATH.
const USUAL_PLACES = ['/usr/sbin', '/usr/local/bin', '/opt/homebrew/bin'];

/** Looks for one, and fetches nothing. A server named by TROUPE_NATS_SERVER is used or complained about, never skipped. */
export async function findNatsServer(where: { env: Environment; cacheDir: string }): Promise<NatsServer | undefined> {
  const { env, cacheDir } = where;
  if (env.TROUPE_NATS_SERVER) {
    const version = await versionOf(env.TROUPE_NATS_SERVER);
    if (version) return { path: env.TROUPE_NATS_SERVER, version };
    throw new TroupeError(
      'unavailable',
      `TROUPE_NATS_SERVER names ${env.TROUPE_NATS_SERVER}, which does not run as a nats-server; correct or unset it.`,
    );
  }
  const folders = [...(env.PATH ?? '').split(delimiter).filter(Boolean), ...USUAL_PLACES, join(cacheDir, 'bin')];
  for (const folder of new Set(folders)) {
    const path = join(folder, 'nats-server');
    const version = await versionOf(path);
    if (version) return { path, version };
  }
  return undefined;
}

/** Tries the pinned release, then Debian's package; the binary is put into the cache in one step. */
export async function fetchNatsServer(options: Fetching): Promise<NatsServer> {
  const { cacheDir } = options;
  await mkdir(join(cacheDir, 'bin'), { recursive: true });
  const directory = await mkdtemp(join(cacheDir, '.fetch-'));
  const reasons: string[] = [];
  try {
    for (const fetchFrom of [fromRelease, fromDebian]) {
      try {
        return await install(await fetchFrom(options, directory), cacheDir);
      } catch (error) {
        reasons.push(sentence(error).split('\n', 1)[0] ?? '');
      }
    }
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
  throw new TroupeError(
    'unavailable',
    `No nats-server could be fetched (${reasons.join('; ')}); install one (brew install nats-server, ` +
      'apt install nats-server), name one in TROUPE_NATS_SERVER, or point NATS_URL at a running one.',
  );
}

async function fromRelease({ env, onProgress, release = PINNED }: Fetching, directory: string): Promise<string> {
  const architecture = process.arch === 'x64' ? 'amd64' : process.arch;
  const sha256 = release.sha256[architecture];
  if (process.platform !== 'linux' || !sha256) throw new Error('no release is pinned for this system');
  const name = `nats-server-v${release.version}-linux-${architecture}`;
  onProgress?.(`fetching nats-server ${release.version}`);
  const archive = await download(`${env.TROUPE_NATS_MIRROR || RELEASES}/v${release.version}/${name}.tar.gz`);
  if (createHash('sha256').update(archive).digest('hex') !== sha256)
    throw new Error(`the checksum of nats-server ${release.version} is wrong`);
  await writeFile(join(directory, 'release.tar.gz'), archive);
  await run('tar', ['-xzf', 'release.tar.gz', '--no-same-owner'], { cwd: directory, ...quietly(env) });
  return join(directory, name, 'nats-server');
}

/** A host that does not answer is given up after 5 s, because somebody is waiting and there is another source. */
async function download(url: string): Promise<Buffer> {
  const abort = new AbortController();
  const tooSlow = (ms: number) => setTimeout(() => abort.abort(new Error(`${new URL(url).host} is too slow`)), ms);
  let timer = tooSlow(5_000);
  try {
    const response = await fetch(url, { signal: abort.signal });
    clearTimeout(timer);
    timer = tooSlow(120_000);
    if (!response.ok) throw new Error(`${new URL(url).host} answered ${response.status}`);
    return Buffer.from(await response.arrayBuffer());
  } catch (error) {
    throw error instanceof TypeError ? new Error(`${new URL(url).host} cannot be reached`, { cause: error }) : error;
  } finally {
    clearTimeout(timer);
  }
}

async function fromDebian({ env, onProgress }: Fetching, directory: string): Promise<string> {
  onProgress?.('fetching the nats-server package with apt-get');
  const settings = [`Dir::Cache=${directory}/cache`, 'Dir::State::status=/var/lib/dpkg/status'];
  // As root, apt drops to a user of its own, who may not enter our private directory.
  if (process.getuid?.() === 0) settings.push('APT::Sandbox::User=root');
  await mkdir(join(directory, 'cache/archives/partial'), { recursive: true });
  await mkdir(join(directory, 'state/lists/partial'), { recursive: true });
  const apt = (command: string[], more: string[] = []) => {
    const options = [...settings, ...more].flatMap((setting) => ['-o', setting]);
    return run('apt-get', ['-q', ...options, ...command], { cwd: directory, ...quietly(env) }).catch((cause) => {
      throw new Error(cause.code === 'ENOENT' ? 'there is no apt-get here' : `apt-get ${command[0]} failed`, { cause });
    });
  };
  try {
    await apt(['download', 'nats-server']);
  } catch {
    // The machine's own package lists are missing or stale, and are not ours to update: get private ones.
    const lists = [`Dir::State=${directory}/state`, `Dir::State::lists=${directory}/state/lists`];
    await apt(['update'], lists);
    await apt(['download', 'nats-server'], lists);
  }
  const deb = (await readdir(directory)).find((file) => file.endsWith('.deb'));
  if (!deb) throw new Error('apt-get downloaded no package');
  await run('dpkg-deb', ['-x', deb, 'package'], { cwd: directory, ...quietly(env) });
  return join(directory, 'package/usr/sbin/nats-server');
}

/** One rename: other processes that fetch, or run the old binary, see a whole one at every moment. */
async function install(binary: string, cacheDir: string): Promise<NatsServer> {
  await chmod(binary, 0o755);
  const version = await versionOf(binary);
  if (!version) throw new Error('the fetched nats-server does not run here');
  const path = join(cacheDir, 'bin', 'nats-server');
  await rename(binary, path);
  return { path, version };
}

async function versionOf(path: string): Promise<string | undefined> {
  try {
    await access(path, constants.X_OK);
    const { stdout } = await run(path, ['--version'], { timeout: 5_000 });
    return /nats-server: v(\S+)/.exec(stdout)?.[1];
  } catch {
    return undefined; // not there, or not a nats-server
  }
}

const quietly = (env: Environment) => ({
  env: { ...env, LC_ALL: 'C', DEBIAN_FRONTEND: 'noninteractive' },
  timeout: 120_000,
});

/** A machine that is short of something has no process for it at the moment, which says nothing of the command. */
const run = (command: string, args: readonly string[], options: object) =>
  outlasting(() => {
    const running = promisify(execFile)(command, args, { encoding: 'utf8', maxBuffer: MAX_OUTPUT, ...options });
    running.child.stdin?.end();
    return running;
  });
