// The hosts of the chaos of tasks: four processes that are given orders without a pause, and report to the books. Which
// orders they are given depends on the seed alone.

import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect } from 'vitest';
import { ROOT } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { type Random, random } from './random.ts';
import type { Order, Report, TasksLedger } from './tasks-ledger.ts';

export type HostsOptions = {
  readonly ledger: TasksLedger;
  readonly seed: number;
  readonly servers: readonly string[];
  /** How to come in: the door and its address, for each host. */
  readonly hosts: readonly { readonly kind: 'nats' | 'http'; readonly options: object }[];
};

/** Orders that a host works on at the same time. */
const AT_ONCE = 6;
const PLANS: Order['plan'][number]['step'][][] = [
  [],
  ['result'],
  ['get', 'get', 'result'],
  ['cancel', 'get'],
  ['get', 'cancel', 'cancel', 'result'],
  ['get', 'result', 'get', 'cancel', 'get'],
];

export async function startHosts({ ledger, seed, servers, hosts }: HostsOptions) {
  let isOver = false;
  const open = new Set<string>();
  const children = await Promise.all(hosts.map(({ kind, options }, index) => startHost(kind, options, index)));

  async function startHost(kind: string, options: object, index: number): Promise<ChildProcess> {
    const dice = random(seed + index);
    const child = fork(join(ROOT, 'test/chaos/tasks-host.mjs'), [kind, JSON.stringify(options)]);
    let sequence = 0;
    const giveOrder = () => {
      const order = orderOf(`host${index}-${++sequence}`, dice, servers);
      open.add(order.id);
      ledger.ordered(order);
      child.send(order);
    };
    child.on('message', (report: Report) => {
      if ((report.what as string) === 'ready') return;
      ledger.reported(report);
      if (report.what !== 'done' && report.what !== 'broke') return;
      open.delete(report.id);
      if (!isOver) giveOrder();
    });
    child.once('exit', (code, signal) => {
      const why = `host ${index} ended: ${signal ?? code}`;
      for (const id of [...open].filter((each) => each.startsWith(`host${index}-`)))
        if (open.delete(id)) ledger.reported({ id, what: 'broke', why });
    });
    await once(child, 'message');
    for (let each = 0; each < AT_ONCE; each++) giveOrder();
    return child;
  }

  return {
    /** Nothing new is ordered; resolves when everything that was ordered is done with. */
    async finish(): Promise<void> {
      isOver = true;
      await eventually(
        () => expect([...open].map(ledger.storyOf), 'orders that are not done with').toEqual([]),
        180_000,
      );
    },
    async [Symbol.asyncDispose]() {
      isOver = true;
      await Promise.all(
        children.map(async (child) => {
          if (child.exitCode !== null || child.signalCode !== null) return;
          child.kill('SIGKILL');
          await once(child, 'exit');
        }),
      );
    },
  };
}

function orderOf(id: string, dice: Random, servers: readonly string[]): Order {
  const steps = dice.oneOf(PLANS);
  return {
    ...{ id, server: dice.oneOf(servers), ms: dice.between(0, 400) },
    ...(dice.between(0, 2) === 0 && { key: `key of ${id}` }),
    plan: steps.map((step) => ({ step, afterMs: dice.between(0, 150) })),
  };
}
