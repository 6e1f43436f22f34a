// Where a visit takes place: the packages installed, a directory for each server, those that speak HTTP running, and how each
// is started by hand and by troupe.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { commandOf, packageHome, toolPath } from '../support/tools.mjs';

const INSTALLS_AT_ONCE = 3;
const LISTEN_MS = 30_000;

/** What could not be installed is left out of `places` and told in `missing`, by the server's name. */
export async function openStage(servers) {
  const directory = await mkdtemp(join(await realpath(tmpdir()), 'troupe-field-'));
  const [places, missing, remotes] = [new Map(), new Map(), new Map()];
  const queue = [...servers];
  const work = async () => {
    for (let server = queue.shift(); server; server = queue.shift()) {
      const place = join(directory, server.name);
      await launchOf(server, place)
        .then((launch) => places.set(server.name, { place, launch }))
        .catch((error) => missing.set(server.name, error.message));
    }
  };
  await Promise.all(Array.from({ length: INSTALLS_AT_ONCE }, work));
  const stage = {
    missing,
    launchOf: (server) => places.get(server.name).launch,
    filled: (server, value) => filled(value, places.get(server.name).place),
    /** The directories as they are before anything was called. */
    async refill() {
      for (const server of servers.filter(({ name }) => places.has(name))) await fill(server, places.get(server.name));
    },
    urlOf: (server) => remotes.get(server.name)?.url,
    /** Starts a server that speaks HTTP, or starts it again at the same address. */
    async serve(server) {
      const { launch } = places.get(server.name);
      const before = remotes.get(server.name);
      await before?.end();
      const port = before?.port ?? (await freePort());
      remotes.set(server.name, { port, ...(await listening(launch, port, server.path)) });
    },
    async close() {
      for (const { end } of remotes.values()) await end();
      await rm(directory, { recursive: true, force: true, maxRetries: 3 });
    },
  };
  return stage;
}

/** How the server is started. Troupe hands little of its environment on, so neither do we. */
async function launchOf({ package: id, version, args = [], env = {}, isNewer }, place) {
  const script = await commandOf(await packageHome(id, version));
  return {
    command: isNewer ? await toolPath('node') : process.execPath,
    args: [script, ...filled(args, place)],
    env: { PATH: process.env.PATH, HOME: place, ...filled(env, place) },
    cwd: place,
  };
}

async function fill({ files = {} }, { place }) {
  await rm(place, { recursive: true, force: true, maxRetries: 3 });
  await mkdir(place, { recursive: true });
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(place, path)), { recursive: true });
    await writeFile(join(place, path), text);
  }
}

const filled = (value, place) => JSON.parse(JSON.stringify(value).replaceAll('{place}', place));

export async function listening({ command, args, env, cwd }, port, path) {
  const url = `http://127.0.0.1:${port}${path}`;
  const words = args.map((word) => word.replace('{port}', port));
  const child = spawn(command, words, { cwd, env: { ...env, PORT: `${port}` }, stdio: 'ignore', detached: true });
  const gone = once(child, 'exit');
  const end = async () => {
    if (child.exitCode === null && child.signalCode === null) process.kill(-child.pid, 'SIGKILL');
    await gone;
  };
  for (const deadline = performance.now() + LISTEN_MS; ; await sleep(50)) {
    if (await fetch(url, { method: 'OPTIONS' }).catch(() => undefined)) return { url, end };
    if (child.exitCode === null && performance.now() < deadline) continue;
    await end();
    throw new Error(`it does not listen on ${url}`);
  }
}

export async function freePort() {
  const listener = createServer().listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const { port } = listener.address();
  listener.close();
  await once(listener, 'close');
  return port;
}
