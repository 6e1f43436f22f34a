// What the attacks share. An attack is a row of tries against a daemon, each with what must come of it. That nothing crashed is
// never enough: while an attack goes on, a neighbour works over NATS and over HTTP and must be answered, and afterwards the daemon
// must be the same process, its bus connected all the while, and its log without a fault of its own.
//
// By default a surface starts a daemon of its own. With TROUPE_ATTACK_STATE=<state directory> the attacks that need nothing but
// addresses are made on the daemon that runs there, and the others are left out.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { connect, type NatsConnection } from 'nats';
import { afterAll, beforeAll, describe, it, type TestContext } from 'vitest';
import { troublesIn } from '../fuzz/house.ts';
import { askControl } from '../support/control.ts';
import { type Daemon, type DaemonOptions, daemon, fixture } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { rawHost } from '../support/host.ts';
import type { AttackOf, Surface } from './attacks.ts';
import type { Outcome } from './table.ts';

export const ALICE = 'a-token-of-alice-for-attacks';
export const BOB = 'a-token-of-bob-for-attacks';
export const TOKENS = { alice: ALICE, bob: BOB };

/** A daemon's doors, whoever started it. */
export type Target = {
  readonly state: string;
  readonly control: string;
  /** Such as http://127.0.0.1:7411. */
  readonly http: string;
  readonly port: number;
  /** The owner's token. */
  readonly token: string;
  readonly nats: { readonly port: number; readonly token: string | undefined; readonly connection: NatsConnection };
};

export type Stage = {
  readonly target: Target;
  /** The daemon, for attacks that need one of ours. */
  readonly d: Daemon;
  /** One try: what is done, and what must come of it. A try that falls does not end the attack. */
  attempt(what: string, check: () => unknown): Promise<void>;
  leaveOut(why: string): void;
};

export type Attack = {
  /** `addresses` suffice, or the daemon must be `ours`; `none` starts its own. */
  readonly needs: 'addresses' | 'ours' | 'none';
  readonly seconds?: number;
  run(stage: Stage): Promise<void>;
};

export const anywhere = (run: Attack['run'], seconds = 60): Attack => ({ needs: 'addresses', run, seconds });
export const ours = (run: Attack['run'], seconds = 60): Attack => ({ needs: 'ours', run, seconds });
/** For an attack that the daemon must not survive as it was, or that needs another configuration. */
export const apart = (run: Attack['run'], seconds = 90): Attack => ({ needs: 'none', run, seconds });

const RUNNING = process.env.TROUPE_ATTACK_STATE;

export function surface<S extends Surface>(
  name: S,
  attacks: Record<AttackOf<S>, Attack>,
  options: DaemonOptions | (() => Promise<DaemonOptions>) = {},
): void {
  const entries = Object.entries(attacks) as [string, Attack][];
  const isNeeded = RUNNING === undefined && entries.some(([, { needs }]) => needs !== 'none');
  let d: Daemon | undefined;
  let target: Target | undefined;

  describe(name, () => {
    beforeAll(async () => {
      if (isNeeded) {
        const { servers, troupe, ...rest } = typeof options === 'function' ? await options() : options;
        d = await daemon({
          ...rest,
          servers: { echo: fixture('echo'), ...servers },
          troupe: { http: { tokens: TOKENS }, ...troupe },
        });
      }
      const state = RUNNING ?? d?.state;
      if (state !== undefined) target = await enter(state);
    });
    afterAll(async () => {
      await target?.nats.connection.close();
      await d?.[Symbol.asyncDispose]();
    });

    for (const [attack, { needs, run, seconds = 60 }] of entries)
      it(attack, { timeout: seconds * 1000 }, async ({ task, skip }) => {
        const outcome: Outcome = { surface: name, attack, tries: 0, fell: [] };
        task.meta.outcome = outcome;
        if (RUNNING !== undefined && needs !== 'addresses') {
          outcome.leftOut = 'needs a daemon of its own';
          return skip(outcome.leftOut);
        }
        const stage = stageOf(outcome, { d, target, skip });
        if (needs === 'none' || !target) await run(stage);
        else await whileNeighbourWorks(outcome, target, d, () => run(stage));
        if (outcome.fell.length > 0) throw new Error(`${outcome.fell.length} fell:\n${outcome.fell.join('\n')}`);
      });
  });
}

type Props = { d: Daemon | undefined; target: Target | undefined; skip: TestContext['skip'] };

const stageOf = (outcome: Outcome, { d, target, skip }: Props): Stage => ({
  get target() {
    if (!target) throw new Error('this attack has no daemon');
    return target;
  },
  get d() {
    if (!d) throw new Error('this attack has no daemon of ours');
    return d;
  },
  async attempt(what, check) {
    outcome.tries += 1;
    try {
      await check();
    } catch (error) {
      if (outcome.fell.length < MOST_TOLD) outcome.fell.push(`${what}: ${(error as Error).message ?? error}`);
    }
  },
  leaveOut(why) {
    outcome.leftOut = why;
    skip(why);
  },
});

const MOST_TOLD = 50;

// ── The doors of a daemon ────────────────────────────────────────────────────

type Doors = { NATS_URL: string; TROUPE_HTTP: string; TROUPE_TOKEN: string };

export async function enter(state: string): Promise<Target> {
  const control = join(state, 'control.sock');
  const { NATS_URL, TROUPE_HTTP: http, TROUPE_TOKEN: token } = await askControl<Doors>(control, 'env');
  const url = new URL(NATS_URL);
  const natsToken = url.username || undefined;
  const connection = await connect({
    ...{ servers: url.host, maxReconnectAttempts: -1, reconnectTimeWait: 50 },
    ...(natsToken && { token: natsToken }),
  });
  const nats = { port: Number(url.port), token: natsToken, connection };
  return { state, control, http, port: Number(new URL(http).port), token, nats };
}

// ── What must hold while an attack goes on, and after it ─────────────────────

type Health = { daemon: { pid: number; state: string }; bus: { state: string }; servers: { name: string }[] };

const PACE_MS = 20;
const PATIENCE_MS = 15_000;

export async function whileNeighbourWorks(
  outcome: Pick<Outcome, 'fell'>,
  target: Target,
  d: Daemon | undefined,
  work: () => Promise<void>,
): Promise<void> {
  const before = await askControl<Health>(target.control, 'status');
  if (d) await eventually(() => logOf(d).includes('"bus":"online"')); // the log is a little behind
  const logged = d ? logOf(d).length : 0;
  const over = new AbortController();
  const host = await rawHost(`${target.http}/mcp`, { headers: { authorization: `Bearer ${target.token}` } });
  const neighbours = [
    keepCalling(outcome, over.signal, 'NATS', () => callOverNats(target, d)),
    keepCalling(outcome, over.signal, 'HTTP', () => callOverHttp(host, d)),
  ];
  try {
    await work();
  } finally {
    over.abort();
    await Promise.all(neighbours);
    await (await host.send('DELETE').catch(() => undefined))?.body.dump();
    await host.close();
  }
  await eventually(async () => {
    const { daemon, bus } = await askControl<Health>(target.control, 'status');
    if (daemon.state !== 'running' || bus.state !== 'online')
      throw new Error(`the daemon is ${daemon.state}, its bus ${bus.state}`);
    if (daemon.pid !== before.daemon.pid) throw new Error('the daemon is another process');
  }, 10_000).catch((error) => outcome.fell.push(`afterwards: ${error.message}`));
  if (d) outcome.fell.push(...troublesIn(logOf(d).slice(logged)).map((line) => `the log: ${line}`));
}

const logOf = (d: Daemon): string => readFileSync(join(d.state, 'logs/troupe.log'), 'utf8');

async function keepCalling(
  { fell }: Pick<Outcome, 'fell'>,
  over: AbortSignal,
  door: string,
  call: () => Promise<string | undefined>,
): Promise<void> {
  for (let count = 0; (count === 0 || !over.aborted) && fell.length < MOST_TOLD; count++) {
    try {
      const wrong = await call();
      if (wrong) fell.push(`the neighbour over ${door} was answered ${wrong.slice(0, 200)}`);
    } catch (error) {
      fell.push(`the neighbour over ${door} was not answered: ${error}`);
    }
    await pause(PACE_MS);
  }
}

/** Of a daemon that is not ours no server is known: then it is asked for what every daemon answers. */
async function callOverNats({ nats }: Target, d: Daemon | undefined): Promise<string | undefined> {
  const [subject, body, wanted] = d
    ? ['troupe.call.echo.echo', '{"message":"neighbour"}', '"neighbour"']
    : ['troupe.task.list', '', '['];
  const text = (await nats.connection.request(subject, body, { timeout: PATIENCE_MS })).string();
  return text.includes(wanted) ? undefined : text;
}

async function callOverHttp(host: Awaited<ReturnType<typeof rawHost>>, d: Daemon | undefined) {
  const asked = d
    ? host.ask('tools/call', { name: 'echo__echo', arguments: { message: 'neighbour' } })
    : host.ask('ping');
  const late = pause(PATIENCE_MS, { error: 'it took too long' }, { ref: false });
  const { result, error } = await Promise.race([asked, late]);
  const isRight = d ? result?.content?.[0]?.text === 'neighbour' : result !== undefined;
  return isRight ? undefined : JSON.stringify(error ?? result);
}
