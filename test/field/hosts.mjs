// Every client in front of one daemon with one real server behind it.

import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { startTroupe } from '../conformance/troupe.mjs';
import { commandOf, packageHome, toolPath } from '../support/tools.mjs';
import { MESSAGE } from './clients.mjs';
import { servers } from './servers.mjs';
import { openStage } from './stage.mjs';
import { visit } from './visit.mjs';
import { overPipes } from './wire.mjs';

/** No server of the configuration that is built in: a client that loses its way must not find one. */
const NAME = 'whole';
const RUN_MS = 60_000;
const MAIN = fileURLToPath(new URL('../../dist/bundle/troupe.cjs', import.meta.url));

export async function playClients(clients, tell) {
  if (clients.length === 0) return [];
  const everything = servers.find(({ name }) => name === 'everything');
  const stage = await openStage([everything]);
  try {
    await stage.refill();
    const launch = stage.launchOf(everything);
    const connection = await overPipes(launch);
    const { lists } = await visit(connection, { calls: [] }).finally(connection.close);
    const troupe = await startTroupe({ [NAME]: launch });
    try {
      await troupe.until(NAME, ['ready']);
      const rows = [];
      for (const client of clients) rows.push(await play(client, troupe, lists.tools.items.length, tell));
      return rows;
    } finally {
      await troupe.close();
    }
  } finally {
    await stage.close();
  }
}

async function play(client, troupe, tools, tell) {
  const row = { ...client, version: client.version, worked: [], troubles: [] };
  try {
    const home = await homeOf(client);
    row.version = JSON.parse(await readFile(`${home}/package.json`, 'utf8')).version;
    const at = await whereabouts(client, home, troupe);
    for (const [way, visitTroupe] of Object.entries(client.ways)) {
      const from = performance.now();
      const seen = await within(visitTroupe(at)).catch((error) => ({ why: error.message }));
      if (seen.tools === tools && seen.echoed === `Echo: ${MESSAGE}`) row.worked.push(way);
      else row.troubles.push(`over ${way}: ${seen.why ?? `${seen.tools} tools of ${tools}, ${seen.echoed}`}`);
      tell(`client ${client.name} over ${way}: ${((performance.now() - from) / 1000).toFixed(1)} s`);
    }
  } catch (error) {
    row.troubles.push(error.message);
  }
  return row;
}

/** The SDKs are those that the project is built and tested with. */
const homeOf = ({ package: id, version, isOurs }) =>
  isOurs ? fileURLToPath(new URL(`../../node_modules/${id}`, import.meta.url)) : packageHome(id, version);

async function whereabouts({ isNewer, isOurs }, home, { http, env }) {
  const node = isNewer ? await toolPath('node') : process.execPath;
  const script = isOurs ? undefined : await commandOf(home).catch(() => undefined); // a library has no command
  const launch = (words) => ({ command: node, args: [script, ...words], env, cwd: env.HOME });
  return {
    ...{ home, launch },
    url: `${http}/mcp/${NAME}`,
    sse: `${http}/sse/${NAME}`,
    shim: { command: process.execPath, args: [MAIN, 'connect', NAME], env },
    async run(words) {
      const options = { env, extendEnv: false, cwd: env.HOME, stdin: 'ignore', timeout: RUN_MS };
      return (await execa(node, [script, ...words], options)).stdout;
    },
  };
}

function within(promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not done within ${RUN_MS / 1000} s`)), RUN_MS);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}
