// A daemon from dist/ with a state directory of its own, in plain JavaScript: scripts that no test runner loads use it.

import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { fetchNatsServer, findNatsServer } from '../../dist/src/bus/acquire.js';
import { withControl } from '../../dist/src/cli/control.js';
import { pathsOf } from '../../dist/src/config/paths.js';

const MAIN = fileURLToPath(new URL('../../dist/bundle/troupe.cjs', import.meta.url));
const START_MS = 30_000;

/** Resolves when the daemon runs; its servers may still be opening. */
export async function startTroupe(servers, settings = {}) {
  const directory = await mkdtemp(join(await realpath(tmpdir()), 'troupe-conformance-'));
  const env = await environmentIn(directory);
  const { socket, config } = pathsOf(env);
  const http = { address: '127.0.0.1:0' };
  const write = (mcpServers) => writeFile(config, JSON.stringify({ mcpServers, 'x-troupe': { http, ...settings } }));
  await write(servers);
  const options = { env, extendEnv: false, reject: false, all: true, stdin: 'ignore' };
  const daemon = execa(process.execPath, [MAIN, 'up'], options);
  let end;
  void daemon.then(({ all }) => {
    end = all;
  });

  const ask = (method, params) => withControl(socket, (control) => control.ask(method, params));
  const stateOf = async (name) => (await ask('status')).servers.find((each) => each.name === name);
  const close = async () => {
    daemon.kill('SIGTERM');
    await daemon;
    await rm(directory, { recursive: true, force: true, maxRetries: 3 });
  };
  try {
    await eventually(START_MS, async () => {
      if (end !== undefined) throw new Error(`the daemon ended: ${end}`);
      const status = await ask('status').catch(() => undefined); // it does not listen yet
      return status?.daemon.state === 'running';
    });
    const { TROUPE_HTTP } = await ask('env');
    return {
      ...{ http: TROUPE_HTTP, env, close },
      /** One operation of the control socket. */
      ask,
      /** Other servers from now on. */
      async configure(next) {
        await write(next);
        await ask('reload');
      },
      cli: (...words) => execa(process.execPath, [MAIN, ...words], { ...options, all: false, timeout: 60_000 }),
      /** The server's status once it is in one of those states. */
      until: (name, states, timeoutMs = 20_000) =>
        eventually(
          timeoutMs,
          async () => {
            const server = await stateOf(name);
            return states.includes(server?.state) && server;
          },
          async () => `${name} is ${(await stateOf(name))?.state}, not ${states.join(' or ')}`,
        ),
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** The home is the directory, so that nothing of the person's is read; what was fetched is found all the same. */
async function environmentIn(directory) {
  const where = { env: process.env, cacheDir: pathsOf(process.env).cache };
  const { path } = (await findNatsServer(where)) ?? (await fetchNatsServer(where));
  return {
    ...{ PATH: process.env.PATH, HOME: directory, NO_COLOR: '1', TROUPE_NATS_SERVER: path },
    ...{ TROUPE_STATE: join(directory, 'state'), TROUPE_CONFIG: join(directory, 'troupe.json') },
  };
}

/** The first answer that is not nothing. */
async function eventually(timeoutMs, check, complaint = () => 'the daemon does not come up') {
  for (const deadline = performance.now() + timeoutMs; performance.now() < deadline; ) {
    const answer = await check();
    if (answer) return answer;
    await sleep(25);
  }
  throw new Error(await complaint());
}
