// A host process of the chaos of tasks. It carries out the orders it is sent, one task each: make it, look at it, fetch its
// result, cancel it, as the order says; and reports every answer. It decides nothing, so that a seed decides everything.

import { setTimeout as pause } from 'node:timers/promises';
import { doors } from './tasks-doors.mjs';

const [kind, options] = process.argv.slice(2);
const door = await doors[kind](JSON.parse(options));
/** Longer than a daemon is away, also on a slow machine; who has waited so long says so, and it counts against troupe. */
const PATIENCE_MS = 120_000;
/** Whoever asks faster takes the time of the daemon that is coming back. */
const PAUSE_MS = 250;

process.on('disconnect', () => process.exit(0));
process.on('message', (order) => {
  void run(order, (report) => process.send({ id: order.id, ...report })).catch((error) => {
    process.send({ id: order.id, what: 'broke', why: String(error?.stack ?? error) });
  });
});
process.send({ what: 'ready' });

async function run(order, report) {
  const task = await create(order, report);
  for (const { step, afterMs } of task ? order.plan : []) {
    await pause(afterMs);
    await repeat(step, task, report);
  }
  report({ what: 'done' });
}

/** Without a key it is tried once, because nobody knows what became of it; with one, until there is an answer. */
async function create(order, report) {
  const since = performance.now();
  for (;;) {
    const answer = await door.create(order);
    report({ what: 'created', ...answer });
    if (answer.task) return answer.task;
    if (!order.key || performance.now() - since > PATIENCE_MS) return undefined;
    await pause(PAUSE_MS);
  }
}

/** Until somebody answers: any daemon can, and one of them comes back. */
async function repeat(step, task, report) {
  const since = performance.now();
  for (;;) {
    const answer = await door[step](task);
    if (!answer.isSilent) return report({ what: step, ...answer });
    if (performance.now() - since > PATIENCE_MS) return report({ what: step, isSilent: true });
    await pause(PAUSE_MS);
  }
}
