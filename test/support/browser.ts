// A real Chromium of the machine's, or one unpacked into troupe's cache; and a page in it that tests can drive.
// `await using page = await browserPage()` starts a browser with a profile of its own and ends it with the scope.

import { type ChildProcess, spawn } from 'node:child_process';
import { access, constants, mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { createInterface } from 'node:readline';
import { execa } from 'execa';
import { pathsOf } from '../../src/config/paths.ts';
import { type DevTools, devTools } from './devtools.ts';
import { eventually } from './eventually.ts';
import { scratch } from './scratch.ts';

type Browser = { readonly path: string; readonly libraries: readonly string[] };

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable', 'chrome'];
const USUAL_PLACES = [
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
];

let found: Promise<Browser> | undefined;

/** The browser of this machine, unpacked into the cache when there is none. No root needed. */
export function chromium(): Promise<Browser> {
  found ??= installed().then(async (browser) => browser ?? (await unpacked()) ?? fetched());
  return found;
}

/** For vitest's `globalSetup`. A machine without a browser fails only the tests that want one, with the reason. */
export async function setup(): Promise<void> {
  await chromium().catch(() => undefined);
}

export type Page = DevTools & AsyncDisposable;

/** A page of a fresh browser. `rules` are Chromium's own for names, such as `MAP evil.example 127.0.0.1`. */
export async function browserPage(rules = ''): Promise<Page> {
  const { path, libraries } = await chromium();
  const profile = await scratch();
  const child = spawn(
    path,
    [
      ...['--headless', '--disable-gpu', '--no-first-run', '--no-proxy-server', '--disable-dev-shm-usage'],
      // A container has no user namespaces to sandbox with, and the only pages here are the tests' own.
      ...['--no-sandbox', '--remote-debugging-port=0', `--user-data-dir=${profile.path}`],
      // Newer Chromiums keep pages from the loopback by themselves; other browsers do not, and we must not need it.
      '--disable-features=LocalNetworkAccessChecks,LocalNetworkAccessChecksWebSockets',
      ...(rules ? [`--host-resolver-rules=${rules}`] : []),
    ],
    {
      env: { PATH: process.env.PATH, HOME: profile.path, LD_LIBRARY_PATH: libraries.join(delimiter) },
      stdio: ['ignore', 'ignore', 'pipe'],
      detached: true, // a process group of its own
    },
  );
  const end = async () => {
    await endGroup(child);
    await profile[Symbol.asyncDispose]();
  };
  try {
    const page = await devTools(await addressOf(child));
    return Object.assign(page, {
      async [Symbol.asyncDispose]() {
        page.close();
        await end();
      },
    });
  } catch (error) {
    await end();
    throw error;
  }
}

/** All of its processes: the one that waits for crashes outlives the browser, and would make the profile's directory again. */
async function endGroup({ pid }: ChildProcess): Promise<void> {
  if (pid === undefined) return; // it was never started
  await eventually(async () => {
    const { stdout } = await execa('ps', ['-A', '-o', 'pgid=,stat=']);
    const alive = stdout.split('\n').some((line) => {
      const [group, stat = ''] = line.trim().split(/\s+/);
      return Number(group) === pid && !stat.startsWith('Z');
    });
    if (alive) process.kill(-pid, 'SIGKILL');
    return !alive;
  });
}

/** Chromium says on stderr where its DevTools listen. */
async function addressOf(child: ChildProcess): Promise<string> {
  const said: string[] = [];
  for await (const line of createInterface({ input: child.stderr as NodeJS.ReadableStream })) {
    const [, address] = /DevTools listening on (ws:\S+)/.exec(line) ?? [];
    if (address) {
      child.stderr?.resume();
      return address;
    }
    said.push(line);
  }
  throw new Error(`the browser ended: ${said.slice(-5).join(' / ')}`);
}

async function installed(): Promise<Browser | undefined> {
  const folders = (process.env.PATH ?? '').split(delimiter).filter(Boolean);
  const places = folders.flatMap((folder) => NAMES.map((name) => join(folder, name)));
  for (const path of [...places, ...USUAL_PLACES]) if (await runs(path)) return { path, libraries: [] };
  return undefined;
}

const home = () => join(pathsOf(process.env).cache, 'test-tools', 'chromium');

async function unpacked(root = home()): Promise<Browser | undefined> {
  const path = join(root, 'usr/lib/chromium/chromium');
  const libraries = await librariesIn(join(root, 'usr/lib'));
  return (await runs(path, libraries)) ? { path, libraries } : undefined;
}

/** Debian's packages that this machine lacks, unpacked side by side: apt vouches for them, and nothing is installed. */
async function fetched(): Promise<Browser> {
  await mkdir(join(home(), '..'), { recursive: true });
  const directory = await mkdtemp(join(home(), '../.fetch-'));
  try {
    await mkdir(join(directory, 'root'));
    for (const folder of ['cache/archives', 'state/lists'])
      await mkdir(join(directory, folder, 'partial'), { recursive: true });
    try {
      await download(directory, []);
    } catch {
      // The machine's own package lists are missing or stale, and are not ours to update: get private ones.
      const lists = [`Dir::State=${directory}/state`, `Dir::State::lists=${directory}/state/lists`];
      await apt(directory, lists, ['update']);
      await download(directory, lists);
    }
    for (const file of await readdir(directory))
      if (file.endsWith('.deb')) await execa('dpkg-deb', ['-x', file, 'root'], { cwd: directory });
    if (!(await unpacked(join(directory, 'root')))) throw new Error('the unpacked one does not run');
    const other = await unpacked(); // another run was faster
    if (other) return other;
    await rm(home(), { recursive: true, force: true });
    await rename(join(directory, 'root'), home());
    return (await unpacked()) as Browser;
  } catch (error) {
    const why = (error as { shortMessage?: string }).shortMessage ?? (error as Error).message;
    throw new Error(`there is no browser, and none could be fetched (${why}): put chromium on the PATH`);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

async function download(directory: string, settings: string[]): Promise<void> {
  const { stdout } = await apt(directory, settings, ['--simulate', '--no-install-recommends', 'install', 'chromium']);
  const missing = [...stdout.matchAll(/^Inst (\S+)/gm)].map(([, name]) => name as string);
  await apt(directory, settings, ['download', ...missing]);
}

function apt(directory: string, settings: string[], command: string[]) {
  const all = [`Dir::Cache=${directory}/cache`, 'Dir::State::status=/var/lib/dpkg/status', ...settings];
  // As root, apt drops to a user of its own, who may not enter our private directory.
  if (process.getuid?.() === 0) all.push('APT::Sandbox::User=root');
  const env = { LC_ALL: 'C', DEBIAN_FRONTEND: 'noninteractive' };
  const words = ['-q', ...all.flatMap((setting) => ['-o', setting]), ...command];
  return execa('apt-get', words, { cwd: directory, env, stdin: 'ignore', timeout: 300_000 });
}

/** Every folder with shared objects in it; some packages keep theirs in folders of their own. */
async function librariesIn(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true, recursive: true }).catch(() => []);
  return [...new Set(entries.filter(({ name }) => /\.so(\.|$)/.test(name)).map(({ parentPath }) => parentPath))];
}

async function runs(path: string, libraries: readonly string[] = []): Promise<boolean> {
  try {
    await access(path, constants.X_OK);
    const env = { LD_LIBRARY_PATH: libraries.join(delimiter) };
    const { stdout } = await execa(path, ['--version'], { env, timeout: 20_000, stdin: 'ignore' });
    return /Chrom/.test(stdout);
  } catch {
    return false; // not there, or not a browser
  }
}
