// The doors for hosts, beside a bare proxy and the gateways people use, in the same run and before the same child.
// Eight sessions with eight calls each is a busy machine of one person; one call alone is what somebody waits for.

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { cells, figure, round } from './figures.mjs';
import { heldBy } from './heap.mjs';
import * as peers from './peers.mjs';
import { descriptorsOf } from './proc.mjs';
import { startDoorLoader } from './processes.mjs';
import { compare, isQuick } from './windows.mjs';

const BODY = JSON.stringify({ message: 'x'.repeat(300 - '{"message":""}'.length) }); // 300 bytes
const [SESSIONS, CALLS] = [8, 8];
const HEAD = ['calls/s', 'p50 ms', 'p99 ms', 'gateway µs', 'children µs', 'loader µs', 'foreign'];
const row = (figures) => cells(figures, ['daemon', 'child', 'loader']);

export const doors = { http, outside, websocket, kill, churn };

async function http() {
  const troupe = await peers.startTroupeDoor('/mcp/s0');
  const everything = { ...troupe, name: 'troupe, all servers', url: `${troupe.base}/mcp`, tool: 's0__echo' };
  const variants = [
    await variantOf(await peers.startHttpBridge()),
    await variantOf(await peers.startSupergateway()),
    await variantOf(await peers.startMcpProxy()),
    await variantOf(everything),
    await variantOf(troupe),
  ];
  const [alone, busy] = [await compare(variants, { c: 1, body: BODY }), await compare(variants, load())];
  const rows = variants.flatMap(({ name, children }) => [
    [name, 1, ...row(alone[name]), '', ''],
    [name, SESSIONS * CALLS, ...row(busy[name]), round(1 / busy.against(name), 2), children().length],
  ]);
  const children = variants.at(-1).children().length;
  await endOf(variants);
  return {
    title: 'Streamable HTTP: echo, 300 bytes; alone, and 8 sessions with 8 calls each',
    head: ['variant', 'c', ...HEAD, 'calls/s of troupe’s', 'child processes'],
    rows: rows.toSorted((a, b) => a[1] - b[1]),
    figures: [
      figure('HTTP calls/s at 8 × 8, of the bare proxy', busy.against('bare proxy'), '≥', 0.75),
      figure('HTTP added p50 alone', (alone.troupe.p50 - alone['bare proxy'].p50) * 1000, '≤', 80, 'µs'),
      ...['supergateway', 'mcp-proxy'].flatMap((peer) => [
        figure(`HTTP calls/s at 8 × 8, of ${peer}`, busy.against(peer), '≥', 3),
        figure(`HTTP CPU a call at 8 × 8, of ${peer}`, busy.troupe.cpu.daemon / busy[peer].cpu.daemon, '≤', 0.25),
        figure(
          `HTTP p99 at 8 × 8, of ${peer}`,
          busy.against(peer, (each) => each.p99),
          '≤',
          0.33,
        ),
      ]),
      figure('child processes with 8 sessions', children, '≤', 1),
    ],
  };
}

/** The same with a client that is not ours, and costs what clients cost. */
async function outside() {
  const variants = [
    await variantOf(await peers.startHttpBridge(), 'undici'),
    await variantOf(await peers.startTroupeDoor('/mcp/s0'), 'undici'),
  ];
  const busy = await compare(variants, load());
  await endOf(variants);
  return {
    title: 'Streamable HTTP by an outside loader (undici): 8 sessions with 8 calls each',
    head: ['variant', ...HEAD],
    rows: variants.map(({ name }) => [name, ...row(busy[name])]),
    figures: [figure('HTTP calls/s at 8 × 8 by an outside loader, of the bare proxy', busy.ratio, '≥', 0.95)],
  };
}

async function websocket() {
  const variants = [
    await variantOf(await peers.startSupergatewayWs()),
    await variantOf(await peers.startTroupeDoor('/ws/s0')),
  ];
  const [alone, busy] = [await compare(variants, { c: 1, body: BODY }), await compare(variants, load())];
  await endOf(variants);
  const rows = variants.flatMap(({ name }) => [
    [name, 1, ...row(alone[name])],
    [name, SESSIONS * CALLS, ...row(busy[name])],
  ]);
  return {
    title: 'WebSocket: echo, 300 bytes; alone, and 8 sessions with 8 calls each',
    head: ['variant', 'c', ...HEAD],
    rows: rows.toSorted((a, b) => a[1] - b[1]),
    figures: [
      figure('WebSocket calls/s at 8 × 8, of supergateway', busy.against('supergateway'), '≥', 1),
      figure('WebSocket CPU a call at 8 × 8', busy.troupe.cpu.daemon, '≤', 36, 'µs'),
    ],
  };
}

/** The child is killed under load. A mark on the disk for each run tells what ran twice. */
async function kill() {
  const starts = {
    'troupe, HTTP': (env) => peers.startTroupeDoor('/mcp/s0', { env }),
    'troupe, WebSocket': (env) => peers.startTroupeDoor('/ws/s0', { env }),
    'supergateway, HTTP': peers.startSupergateway,
    'supergateway, WebSocket': peers.startSupergatewayWs,
    'mcp-proxy, HTTP': peers.startMcpProxy,
  };
  const rows = [];
  const figures = [];
  for (const [name, start] of Object.entries(starts)) {
    const seen = await killUnder(start);
    const { sent, ok, failed, lost, unanswered, strays, again, sessions } = seen;
    rows.push([name, `${sessions} of ${SESSIONS}`, sent, ok, failed, lost, unanswered, strays, again]);
    if (!name.startsWith('troupe')) continue;
    figures.push(
      figure(`sessions that go on after kill -9 of the child, ${name}`, sessions, '≥', SESSIONS),
      figure(`calls without their one answer, ${name}`, lost + unanswered + strays, '≤', 0),
      figure(`calls that ran twice, ${name}`, again, '≤', 0),
    );
  }
  return {
    title: 'kill -9 of the child under load: 8 sessions with 8 calls each',
    head: [
      ...['gateway', 'sessions that go on', 'calls', 'results', 'errors', 'answered for by nobody', 'never answered'],
      ...['second answers', 'ran twice'],
    ],
    rows,
    figures,
  };
}

async function killUnder(start) {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-bench-'));
  const marks = join(folder, 'marks');
  const gateway = await start({ MARKS: marks });
  const loader = await startDoorLoader(gateway.url);
  const [ms, killedAfterMs] = isQuick ? [2_000, 500] : [4_000, 1_000];
  const watching = loader.ask({ job: 'watch', c: SESSIONS * CALLS, ms });
  await wait(killedAfterMs);
  for (const pid of gateway.children()) peers.kill(pid);
  const killedAt = Number(process.hrtime.bigint()) / 1e6; // the loader's clock
  const { lastSuccesses, ...seen } = await watching;
  await loader.end();
  await gateway.end();
  const keys = readFileSync(marks, 'utf8').trim().split('\n');
  rmSync(folder, { recursive: true, force: true });
  const sessions = lastSuccesses.filter((at) => at > killedAt).length;
  return { ...seen, sessions, again: keys.length - new Set(keys).size };
}

/** Sessions that come and go, half of them without a word; the first thousand only warms it up. */
async function churn() {
  const rows = [];
  const figures = [];
  const [count, settleMs] = isQuick ? [100, 4_000] : [1_000, 10_000];
  for (const path of ['/mcp/s0', '/ws/s0']) {
    const port = await peers.freePort();
    const http = { sessionIdleMs: '2s', maxSessions: 10_000 };
    const troupe = await peers.startTroupeDoor(path, { http, node: `--inspect-port=${port}` });
    const loader = await startDoorLoader(troupe.url);
    const turn = async () => {
      const { errors, failure } = await loader.ask({ job: 'churn', count, subject: 'echo', body: BODY });
      if (errors) throw new Error(`${path}: ${errors} calls failed: ${failure}`);
      await wait(settleMs); // abandoned sessions expire
      const descriptors = descriptorsOf(troupe.pid); // before its inspector is asked, whose connections go when they like
      const { held, resident } = await heldBy(troupe.pid, port);
      return { held, resident, descriptors, processes: troupe.children().length };
    };
    await turn();
    const [before, after] = [await turn(), await turn()];
    await loader.end();
    await troupe.end();
    const kept = (what) => after[what] - before[what];
    for (const [when, each] of Object.entries({ before, after }))
      rows.push([path, when, round(each.held, 1), round(each.resident, 1), each.descriptors, each.processes]);
    figures.push(
      figure(`memory kept after 1,000 sessions at ${path}`, kept('held'), '≤', 1, 'MB'),
      figure(`descriptors kept after 1,000 sessions at ${path}`, kept('descriptors'), '≤', 0),
      figure(`processes kept after 1,000 sessions at ${path}`, kept('processes'), '≤', 0),
    );
  }
  return {
    title: '1,000 sessions that come and go, after 2,000 others; garbage collected',
    head: ['door', '', 'held MB', 'resident MB', 'descriptors', 'child processes'],
    rows,
    figures,
  };
}

const load = () => ({ c: SESSIONS * CALLS, body: BODY });

async function variantOf({ name, url, tool = 'echo', pid, children, end }, client) {
  const loader = await startDoorLoader(url, { client });
  return { name, loader, subject: tool, pids: { daemon: pid, child: children() }, children, end };
}

async function endOf(variants) {
  for (const { loader, end } of variants) {
    await loader.end();
    await end();
  }
}
