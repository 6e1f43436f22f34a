// Callers of tasks over a raw NATS socket, in a process of its own: each makes a task, asks for its result, and makes the next.
// Jobs: `window`, whose latency is that of the creation, and `ask`, for one request after the other.

import { connectSocket } from './nats-socket.mjs';
import { now, window } from './tasks-window.mjs';

const CREATE = 'NATS/1.0\r\nTroupe-Task: 1\r\n\r\n';
const ID = /Troupe-Task-Id: (\S+)/;
const waiting = new Map();
let lastSequence = 0;

const socket = await connectSocket(process.env.NATS_URL, (sequence, reply) => {
  const settle = waiting.get(sequence);
  waiting.delete(sequence);
  settle?.(reply);
});
const jobs = { window: ({ subject, body, ...given }) => window(taskOf(subject, body), given), ask };
process.on('message', async ({ job, ...given }) => process.send(await jobs[job](given)));
process.on('disconnect', () => process.exit(0));
process.send({ ready: true });

/** From its creation until its result is here. */
const taskOf = (subject, body) => async (note) => {
  const from = now();
  const { head } = await answered((sequence) => socket.publishWith(CREATE, subject, sequence, body));
  note(now() - from);
  const [, id] = ID.exec(head) ?? [];
  await answered((sequence) => socket.publish(`troupe.task.result.${id}`, sequence, ''));
};

/** What each of these requests took, one after the other; `[subject, body]` each. */
async function ask({ requests }) {
  const took = [];
  try {
    for (const [subject, body] of requests) {
      const from = now();
      await answered((sequence) => socket.publish(subject, sequence, body));
      took.push(now() - from);
    }
    return { took };
  } catch (error) {
    return { took, failure: error.message };
  }
}

function answered(publish) {
  return new Promise((resolve, reject) => {
    const sequence = ++lastSequence;
    waiting.set(sequence, (reply) => {
      if (reply.isError) reject(new Error(reply.body?.toString() ?? reply.head));
      else resolve(reply);
    });
    publish(sequence);
    // What one turn publishes goes out in one write.
    if (waiting.size === 1) socket.flush();
    else setImmediate(socket.flush);
  });
}
