// Rounds of kill -9 under load: of a server, of nats-server, of the daemon, at moments that the seed chooses. What is
// checked afterwards are the promises: one answer, one execution, nothing left behind, a sound database.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { NatsConnection } from 'nats';
import { expect } from 'vitest';
import { type Daemon, daemon, fixture, isAlive } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { createLedger, type Ledger } from './ledger.ts';
import { startLoad } from './load.ts';
import { inAnyOrder, type Random, random } from './random.ts';
import { checkRemains } from './remains.ts';

export type ChaosOptions = { readonly seed: number; readonly rounds: number };
type Stage = { d: Daemon; nc: NatsConnection; ledger: Ledger; random: Random; killed: number[] };

const SERVERS = ['alpha', 'beta', 'gamma'];
const VICTIMS = ['server', 'server', 'server', 'server', 'nats', 'daemon', 'daemon and nats'] as const;
const PATIENT = { timeoutMs: '5s', restart: { intensity: 1_000_000, backoffMs: [10, 100] } };

export async function chaos({ seed, rounds }: ChaosOptions): Promise<Record<string, number>> {
  console.log(`chaos: seed ${seed}; TROUPE_CHAOS_SEED=${seed} makes the same choices again`);
  const [ledger, dice] = [createLedger(), random(seed)];
  const d = await daemon();
  try {
    const tallies = join(d.dir, 'tallies');
    await settle(d, tallies);
    const stage: Stage = { d, nc: await d.nats(), ledger, random: dice, killed: [] };
    const socket = join(d.state, 'control.sock');
    const load = startLoad({ nc: stage.nc, socket, servers: SERVERS, ledger, random: random(seed + 1) });
    const first = inAnyOrder([...new Set(VICTIMS)], dice);
    const kills: Record<string, number> = {};
    let done = 0;
    for (; done < rounds; done++) {
      const victim = first.shift() ?? dice.oneOf(VICTIMS);
      kills[victim] = (kills[victim] ?? 0) + 1;
      await somethingSent(ledger, dice.between(1, 150));
      await KILL[victim](stage);
    }
    await somethingSent(ledger, 100);
    await load.stop();
    await eventually(() => expect(ledger.waiting()).toEqual([]), 30_000);
    await checkHealth(stage);
    await checkGoodbye(stage);
    const executed = (await readFile(tallies, 'utf8')).split('\n').filter((id) => id.startsWith('call-'));
    const summary = { seed, rounds: done, ...kills, ...ledger.balance(executed) };
    console.log(`chaos: ${JSON.stringify(summary)}`);
    return summary;
  } finally {
    await d[Symbol.asyncDispose]();
  }
}

/** The path of the file stands on each server's command line: by it we find those that were left behind. */
async function settle(d: Daemon, tallies: string): Promise<void> {
  const server = fixture('tallies', PATIENT);
  server.args.push(tallies);
  await d.write(Object.fromEntries(SERVERS.map((name) => [name, server])));
  for (const name of SERVERS) await d.until(name, 'ready');
}

/** A moment is a number of calls, not of milliseconds. */
async function somethingSent(ledger: Ledger, count: number): Promise<void> {
  const goal = ledger.sent + count;
  await eventually(() => ledger.sent >= goal, 30_000);
}

// ── Killing ──────────────────────────────────────────────────────────────────

const KILL: Record<(typeof VICTIMS)[number], (stage: Stage) => Promise<void>> = {
  async server({ d, random: dice, killed }) {
    const busy = (await d.status()).servers.filter(({ pid, inFlight }) => pid !== null && inFlight > 0);
    if (busy.length > 0) kill(dice.oneOf(busy).pid as number, killed);
  },
  async nats(stage) {
    stage.ledger.cut('nats');
    kill((await stage.d.status()).bus.pid as number, stage.killed);
    await mended(stage);
  },
  async daemon(stage) {
    stage.ledger.cut('nats');
    await stage.d.kill();
    await stage.d.start();
    await mended(stage);
  },
  async 'daemon and nats'(stage) {
    const { pid } = (await stage.d.status()).bus;
    stage.ledger.cut('nats');
    await stage.d.kill();
    kill(pid as number, stage.killed);
    await stage.d.start();
    await mended(stage);
  },
};

function kill(pid: number, killed: number[]): void {
  killed.push(pid);
  try {
    process.kill(pid, 'SIGKILL');
  } catch {} // it died by itself, or by us, a moment ago
}

/** From now on there is no excuse: the daemon is on the bus and so are we. */
async function mended({ d, nc, ledger, killed }: Stage): Promise<void> {
  await eventually(async () => {
    const { bus } = await d.status();
    return bus.state === 'online' && !killed.includes(bus.pid as number);
  }, 40_000);
  await eventually(() => nc.flush(), 20_000);
  ledger.mended('nats');
}

// ── Checking ─────────────────────────────────────────────────────────────────

async function checkHealth({ d, killed }: Stage): Promise<void> {
  for (const name of SERVERS) {
    await d.until(name, 'ready');
    expect((await d.request(`troupe.call.${name}.tally`, { id: `afterwards ${name}` })).code).toBeUndefined();
  }
  const { daemon: self, bus, store } = await d.status();
  expect([self.state, bus.state, store.state]).toEqual(['running', 'online', 'ready']);
  for (const pid of killed) expect(await isAlive(pid)).toBe(false);
}

async function checkGoodbye({ d, nc }: Stage): Promise<void> {
  await nc.close();
  expect(await d.down()).toBe(0);
  await checkRemains(d);
}
