// What somebody waits for at a prompt: a daemon until its tools can be seen, a command until it is done; and what a daemon holds
// that nobody asks anything.

import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import { figure, round } from './figures.mjs';
import { openSocket, requestBytes } from './http-socket.mjs';
import { freePort } from './peers.mjs';
import { anonymousOf } from './proc.mjs';
import { MAIN, stage, startBare, startTroupe } from './processes.mjs';
import { isQuick, median } from './windows.mjs';

const MB = 1e6;
const LOOK_MS = 5;
const LISTED_WITHIN_MS = 60_000;
const HEADERS = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };

export const starts = { start, idle, shim, cli };

/** From `up` until every tool is listed, beside the children alone and the best peer as it was measured. */
async function start() {
  const wanted = { 1: 500, 10: 750, 50: 1_700 };
  const peer = { 1: 550, 10: 720, 50: 1_700 };
  const rows = [];
  const figures = [];
  for (const servers of [1, 10, 50]) {
    const [bare, ours] = [[], []];
    for (let turn = 0; turn < (isQuick ? 1 : 3); turn += 1) {
      bare.push(await startBare(servers));
      ours.push(await untilListed(servers));
    }
    const [alone, took] = [median(bare), median(ours)];
    rows.push([servers, round(alone), round(took), round(took / alone, 2), peer[servers]]);
    figures.push(figure(`${servers} servers, from up to all tools listed`, took, '≤', wanted[servers], 'ms'));
  }
  return {
    title: 'Start: from `up` until `tools/list` at the daemon has the tools of every server',
    head: ['servers', 'children alone ms', 'troupe ms', 'ratio', 'best peer ms'],
    rows,
    note:
      'The median of three starts in the foreground, each with a state directory of its own. Who asks does so over HTTP, every ' +
      `${LOOK_MS} ms. The peer is mcp-hub, as it was measured on a quiet machine of this kind.`,
    figures,
  };
}

async function untilListed(servers) {
  const { options, end } = stage({ servers });
  const port = await freePort();
  const from = performance.now();
  const daemon = spawn(process.execPath, [MAIN, 'up', '--http', `127.0.0.1:${port}`], { ...options, stdio: 'ignore' });
  const gone = once(daemon, 'exit');
  await allListed(new URL(`http://127.0.0.1:${port}/mcp`), servers, gone);
  const took = performance.now() - from;
  await end();
  await gone;
  return took;
}

async function allListed(url, servers, gone) {
  const died = gone.then(() => Promise.reject(new Error('troupe ended before its tools were listed')));
  died.catch(() => {}); // of interest only until they are
  const deadline = performance.now() + LISTED_WITHIN_MS;
  let host;
  for (;;) {
    host ??= await openHost(url);
    const listed = new Set((await host?.tools())?.map((name) => name.split('__')[0]));
    if (listed.size === servers) break;
    if (performance.now() > deadline) throw new Error(`${listed.size} of ${servers} servers have listed their tools`);
    await Promise.race([wait(LOOK_MS), died]);
  }
  host.close();
}

/** A session at the door, or nothing while there is no door yet. */
async function openHost(url) {
  const socket = openSocket(url);
  const ask = async (method, params, session) => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
    const headers = session ? { ...HEADERS, 'mcp-session-id': session } : HEADERS;
    const answer = await new Promise((resolve) => socket.request(requestBytes(url, { headers, body }), resolve));
    return { session: answer?.session, result: answer?.status === 200 && JSON.parse(answer.messages.at(-1)).result };
  };
  const clientInfo = { name: 'bench', version: '1' };
  const { session } = await ask('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo });
  if (!session) return void socket.close();
  const tools = async () => {
    const names = [];
    let cursor;
    do {
      const { result } = await ask('tools/list', cursor ? { cursor } : {}, session);
      names.push(...(result?.tools ?? []).map(({ name }) => name));
      cursor = result?.nextCursor;
    } while (cursor);
    return names;
  };
  return { tools, close: socket.close };
}

async function idle() {
  const troupe = await startTroupe({ servers: 10 });
  const { daemon } = await troupe.untilReady();
  const megabytes = [];
  for (const pause of [5_000, 15_000]) {
    await wait(pause);
    megabytes.push(anonymousOf(daemon.pid) / MB);
  }
  await troupe.end();
  return {
    title: 'Idle: anonymous memory of the daemon with 10 servers',
    head: ['5 s after the start, MB', '20 s after it'],
    rows: [megabytes.map((each) => round(each, 1))],
    note: 'V8 gives back what the start needed about eight seconds after it.',
    figures: ['', ', 20 s after the start'].map((when, index) =>
      figure(`idle memory with 10 servers${when}`, megabytes[index], '≤', 40, 'MB'),
    ),
  };
}

/** The stdio shim is started for every host. */
async function shim() {
  const { alone, ours } = besideNode([MAIN, 'connect', '--help'], {});
  return {
    title: 'The stdio shim: from start to its first line',
    head: ['', 'ms'],
    rows: [
      ['node -e 0', round(alone)],
      ['troupe connect --help', round(ours)],
    ],
    figures: [figure('start of troupe connect, of bare Node', ours / alone, '≤', 2)],
  };
}

/** A call from the command line, to a daemon that runs: the result is printed when it ends. */
async function cli() {
  const troupe = await startTroupe({ servers: 1 });
  await troupe.untilReady();
  const { alone, ours } = besideNode([MAIN, 'call', 's0', 'echo', '--args', '{"message":"hi"}'], troupe.options);
  await troupe.end();
  return {
    title: 'The command line: `troupe call` to a running daemon, from start to end',
    head: ['', 'ms'],
    rows: [
      ['node -e 0', round(alone)],
      ['troupe call s0 echo', round(ours)],
    ],
    figures: [figure('troupe call to a running daemon, of bare Node', ours / alone, '≤', 1.6)],
  };
}

/** The fastest of several starts in turns with bare Node, for what else runs only ever adds. */
function besideNode(words, options) {
  const timed = (given, { env, cwd } = {}) => {
    const from = performance.now();
    execFileSync(process.execPath, given, { env, cwd, stdio: 'ignore' });
    return performance.now() - from;
  };
  const [bare, ours] = [[], []];
  for (let turn = 0; turn < (isQuick ? 5 : 30); turn += 1) {
    bare.push(timed(['-e', '0']));
    ours.push(timed(words, options));
  }
  return { alone: Math.min(...bare), ours: Math.min(...ours) };
}
