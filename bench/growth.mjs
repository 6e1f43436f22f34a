// How costs grow: the same work with ever more of something around it. Each scenario gives a chart beside its table, and asks
// that no figure grows faster than its work.

import { join } from 'node:path';
import { cells, figure, round } from './figures.mjs';
import { startHttpBridge, startTroupeDoor } from './peers.mjs';
import { anonymousOf } from './proc.mjs';
import {
  startAuditFiller,
  startDoorLoader,
  startLoader,
  startRemote,
  startRemoteBridge,
  startTroupe,
} from './processes.mjs';
import { pair, pidsOf } from './scenarios.mjs';
import { compare, isQuick } from './windows.mjs';

const MB = 1e6;
const C = 64;
const BODY = JSON.stringify({ message: 'x'.repeat(300 - '{"message":""}'.length) }); // 300 bytes
const HEAD = ['calls/s', 'p50 ms', 'p99 ms', 'daemon µs', 'children µs', 'loader µs', 'foreign'];
const row = (figures) => cells(figures, ['daemon', 'child', 'loader']);
const many = (count) => count.toLocaleString('en');

/** The variants are many, and each curve has several points to tell noise by. */
const FEW = isQuick ? {} : { count: 4, keep: 3 };

export const growth = { sessions, servers, sizes, audit };

/** Sessions that are open, the calls going round them: as many outstanding, whoever makes them. */
async function sessions() {
  const counts = isQuick ? [1, 100] : [1, 10, 100, 1_000];
  const http = { maxSessions: 10_000 };
  const doors = [
    ['HTTP', () => startTroupeDoor('/mcp/s0', { http }), 'bare proxy', startHttpBridge],
    ['WebSocket', () => startTroupeDoor('/ws/s0', { http }), 'bare WebSocket', startBareWebSocket],
  ];
  const rows = [];
  const figures = [];
  const curves = [];
  for (const [door, startOurs, bareName, startBare] of doors) {
    const variants = [];
    for (const [name, start] of [
      [door, startOurs],
      [bareName, startBare],
    ])
      for (const count of counts) {
        const { url, pid, children, end } = await start();
        const loader = await startDoorLoader(url, { sessions: count, isSpread: true });
        variants.push({
          name: `${name} ${count}`,
          loader,
          subject: 'echo',
          pids: { daemon: pid, child: children() },
          end,
        });
      }
    const measured = await compare(variants, { c: C, body: BODY, ...FEW });
    await endOf(variants);
    const [ours, bare] = [door, bareName].map((name) => counts.map((count) => [count, measured[`${name} ${count}`]]));
    for (const [name, points] of [
      [door, ours],
      [bareName, bare],
    ]) {
      rows.push(...points.map(([count, each]) => [name, many(count), ...row(each)]));
      curves.push([name, points]);
    }
    figures.push(...grown(`from 1 session over ${door} to ${many(counts.at(-1))}`, ours, bare));
  }
  return {
    title: `Growth: open sessions, ${C} calls outstanding, going round all of them`,
    head: ['door', 'sessions', ...HEAD],
    rows,
    note:
      'Each session has connections of its own, and what comes together on one connection is read and written at once: with ' +
      'more of them each call takes more of the kernel, of whatever stands behind the door. So growth is compared with that of ' +
      'the bare ones: the proxy of HTTP (`http-bridge.mjs`), and a server on WebSocket with nothing before it (`remote.mjs`).',
    chart: { name: 'sessions', label: 'open sessions', panels: callPanels(curves) },
    figures,
  };
}

async function startBareWebSocket() {
  const { pid, url, end } = await startRemote();
  return { url, pid, children: () => [], end };
}

/** Servers behind an address need no process of their own, so that five hundred fit into one machine. */
async function servers() {
  const counts = isQuick ? [1, 50] : [1, 10, 100, 500];
  const remote = await startRemote();
  const variants = [];
  const memory = [];
  for (const count of counts) {
    const troupe = await startTroupe({ servers: count, url: remote.url });
    const { daemon, bus } = await troupe.untilReady();
    memory.push([count, anonymousOf(daemon.pid) / MB]);
    const url = await troupe.url();
    const bridge = await startRemoteBridge({ NATS_URL: url, REMOTE_URL: remote.url, SERVERS: `${count}` });
    const loader = await startLoader(url);
    for (const [name, root, pid] of [
      ['troupe', 'troupe', daemon.pid],
      ['bare bridge', 'bridge', bridge.pid],
    ]) {
      const subject = Array.from({ length: count }, (_, number) => `${root}.call.s${number}.echo`);
      const end = name === 'troupe' ? troupe.end : bridge.end;
      variants.unshift({
        name: `${name} ${count}`,
        loader,
        subject,
        pids: { daemon: pid, child: remote.pid, nats: bus.pid },
        end,
      });
    }
  }
  const measured = await compare(variants, { c: C, body: BODY, ...FEW });
  await endOf(variants);
  await remote.end();
  const [ours, bare] = ['troupe', 'bare bridge'].map((name) =>
    counts.map((count) => [count, measured[`${name} ${count}`]]),
  );
  const [[few, small], [lots, large]] = [memory[0], memory.at(-1)];
  return {
    title: `Growth: servers, ${C} calls outstanding, going round all of them`,
    head: ['servers', 'variant', ...HEAD, 'memory MB'],
    rows: counts.flatMap((count, index) => [
      [many(count), 'bare bridge', ...row(bare[index][1]), ''],
      [many(count), 'troupe', ...row(ours[index][1]), round(memory[index][1], 1)],
    ]),
    note:
      'The servers are behind WebSocket addresses, all in one process (`remote.mjs`): children of their own would take 40 MB ' +
      'each. What comes together for one server is written at once; with more servers than calls each call is a write of its ' +
      'own, in the bare bridge as well (`remote-bridge.mjs`). Memory is the daemon’s, anonymous, as soon as all are ready.',
    chart: {
      name: 'servers',
      label: 'servers',
      panels: [
        ...callPanels([
          ['troupe', ours],
          ['bare bridge', bare],
        ]),
        { label: 'memory, MB', series: [{ name: 'troupe', points: memory }] },
      ],
    },
    figures: [
      ...grown(`from 1 server to ${many(lots)}`, ours, bare),
      figure('memory for each further server', ((large - small) / (lots - few)) * 1000, '≤', 250, 'KB'),
    ],
  };
}

/** Results of ten bytes to ten megabytes, beside the bare bridge. */
async function sizes() {
  const all = [10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000];
  const { variants, end } = await pair(
    { troupe: 'troupe.call.s0.big', bridge: 'bridge.call.big' },
    { nats: { maxPayloadBytes: '32MB' } },
  );
  const points = { troupe: [], bridge: [] };
  const rows = [];
  for (const bytes of all) {
    const { bridge, troupe, ratio } = await compare(variants, { c: 4, body: JSON.stringify({ bytes }), ...FEW });
    points.bridge.push([bytes, bridge]);
    points.troupe.push([bytes, troupe]);
    rows.push([many(bytes), 'bridge', ...row(bridge), ''], [many(bytes), 'troupe', ...row(troupe), round(ratio, 2)]);
  }
  await end();
  const steps = points.troupe.slice(1).map(([bytes, each], index) => {
    const [before, smaller] = points.troupe[index];
    return each.cpu.daemon / smaller.cpu.daemon / (bytes / before);
  });
  return {
    title: 'Growth: results of 10 bytes to 10 MB, c=4',
    head: ['bytes', 'variant', ...HEAD, 'ratio'],
    rows,
    chart: { name: 'sizes', label: 'bytes of a result', panels: callPanels(Object.entries(points)) },
    figures: [figure('CPU a byte, from one decade of size to the next, at most', Math.max(...steps), '≤', 1.5)],
  };
}

const WARM = 5_000;

/** What is recorded of every call is found again, and costs those who call nothing, however much there is. */
async function audit() {
  const counts = isQuick ? [1e4, 1e5] : [1e5, 1e6, 1e7];
  const troupes = { empty: await startTroupe({ servers: 1 }), full: await startTroupe({ servers: 1 }) };
  const filler = await startAuditFiller(join(troupes.full.state, 'database'));
  await filler.ask({ job: 'fill', count: WARM }); // its code is compiled now
  const looks = [];
  for (const count of counts) {
    const { micros, dropped } = await filler.ask({ job: 'fill', count });
    if (dropped) throw new Error(`${dropped} records were not written`);
    const look = await filler.ask({ job: 'look' });
    if (look.counted !== count) throw new Error(`the audit has ${look.counted} records and should have ${count}`);
    looks.push([count, { micros, ...look }]);
  }
  await filler.end();
  const variants = [];
  for (const [name, troupe] of Object.entries(troupes)) {
    const { daemon, child } = pidsOf(await troupe.untilReady());
    const loader = await startLoader(await troupe.url());
    const pids = { daemon, child };
    variants.push({ name, loader, subject: 'troupe.call.s0.echo', pids, end: troupe.end });
  }
  const measured = await compare(variants, { c: C, body: BODY });
  await endOf(variants);
  const most = counts.at(-1);
  const of = (what) => looks.map(([count, each]) => [count, each[what]]);
  const [, first] = looks[0];
  const [, last] = looks.at(-1);
  return {
    title: 'Growth: records in the audit',
    head: ['records', 'noting one, µs', 'the newest 100, ms', 'counting all, ms', 'file MB', 'bytes a record'],
    rows: looks.map(([count, { micros, recentMs, countMs, bytes }]) => [
      many(count),
      round(micros, 2),
      round(recentMs, 2),
      round(countMs, 2),
      round(bytes / MB, 1),
      round(bytes / count),
    ]),
    note:
      `A call at c=${C} takes ${round(measured.full.cpu.daemon, 1)} µs of the daemon’s CPU with ${many(most)} records and ` +
      `${round(measured.empty.cpu.daemon, 1)} without; p99 is ${round(measured.full.p99, 2)} and ${round(measured.empty.p99, 2)} ms. ` +
      'A daemon keeps the newest million, and deletes older pages where it has nothing else to write.',
    chart: {
      name: 'audit',
      label: 'records',
      panels: [
        { label: 'CPU to note one, µs', series: [{ name: 'audit', points: of('micros') }] },
        { label: 'the newest 100, ms', series: [{ name: 'audit', points: of('recentMs') }] },
        { label: 'counting all, ms', series: [{ name: 'audit', points: of('countMs') }] },
        {
          label: 'file, MB',
          series: [{ name: 'audit', points: of('bytes').map(([count, bytes]) => [count, bytes / MB]) }],
        },
      ],
    },
    figures: [
      figure(
        `CPU a call with ${many(most)} records, of that with none`,
        measured.full.cpu.daemon / measured.empty.cpu.daemon,
        '≤',
        1.5,
      ),
      figure(
        `p99 of a call with ${many(most)} records, of that with none`,
        measured.full.p99 / measured.empty.p99,
        '≤',
        2,
      ),
      figure(
        `the newest 100 of ${many(most)} records, of those of ${many(counts[0])}`,
        last.recentMs / first.recentMs,
        '≤',
        1.5,
      ),
      figure(`counting ${many(most)} records`, last.countMs, '≤', 10, 'ms'),
      figure(
        `noting a record beside ${many(most)}, of that beside ${many(counts[0])}`,
        last.micros / first.micros,
        '≤',
        1.5,
      ),
    ],
  };
}

/** What one call costs the bare one tells how much its work grows. The steepest way from any point to a later one counts. */
function grown(between, ours, bare) {
  const beside = (of) => {
    const [own, its] = [ours, bare].map((points) => points.map(([, each]) => of(each)));
    const ratios = own.map((value, index) => value / its[index]);
    return Math.max(...ratios.flatMap((from, index) => ratios.slice(index + 1).map((to) => to / from)));
  };
  return [
    figure(
      `growth of CPU a call ${between}, of the bare one’s`,
      beside((each) => each.cpu.daemon),
      '≤',
      1.5,
    ),
    figure(
      `growth of p99 ${between}, of the bare one’s`,
      beside((each) => each.p99),
      '≤',
      2,
    ),
  ];
}

/** `curves`: by name, the figures of calls at each count. */
const callPanels = (curves) =>
  [
    ['calls/s', ({ rate }) => rate],
    ['daemon CPU a call, µs', ({ cpu }) => cpu.daemon],
    ['p99, ms', ({ p99 }) => p99],
  ].map(([label, of]) => ({
    label,
    series: curves.map(([name, points]) => ({ name, points: points.map(([count, each]) => [count, of(each)]) })),
  }));

async function endOf(variants) {
  for (const { loader, end } of variants) {
    await loader.end();
    await end();
  }
}
