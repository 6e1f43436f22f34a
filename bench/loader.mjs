// The load, in a process of its own: a closed loop of c calls outstanding over a raw NATS socket.
// Takes one job at a time from its parent: `window`, `burst`, `watch` or `paced`; answers with what it saw.

import { measured, now } from './measured.mjs';
import { connectSocket } from './nats-socket.mjs';

const RING = 1 << 16;
const BREATH_MS = 2; // before a failed call is tried again

let onReply = () => {};
const socket = await connectSocket(process.env.NATS_URL, (sequence, reply) => onReply(sequence, reply));
const since = new Float64Array(RING); // when a call was sent; 0: nobody waits under this number
let lastSequence = 0;

const jobs = { window, burst, watch, paced };
process.on('message', async ({ job, ...given }) => process.send(await jobs[job](given)));
process.on('disconnect', () => process.exit(0));
process.send({ ready: true });

/** c calls outstanding for warmMs + ms, on one subject or spread over several; counts those that end in the last ms. */
function window({ subject, body, c, warmMs, ms, pids }) {
  return measured({ warmMs, ms, pids }, ({ mayGoOn, took }) =>
    drive({ subjects: [subject].flat(), body, c, mayGoOn, onSuccess: took }),
  );
}

/** All calls at once, spread over several subjects; says when the last answer came. */
async function burst({ subjects, body, count }) {
  const from = now();
  let answered = 0;
  const onSuccess = () => {
    answered += 1;
  };
  const seen = await drive({ subjects, body, c: count, mayGoOn: () => false, onSuccess });
  return { ...seen, answered, ms: now() - from };
}

/** Calls without pause; tells the longest time without a success. */
async function watch({ subject, body, c, ms }) {
  const end = now() + ms;
  let last = now();
  let gap = { from: last, to: last };
  const onSuccess = () => {
    if (now() - last > gap.to - gap.from) gap = { from: last, to: now() };
    last = now();
  };
  const seen = await drive({ subjects: [subject], body, c, mayGoOn: () => now() < end, onSuccess });
  return { ...seen, gap };
}

/**
 * c callers, each of which calls again `paceMs` after its answer. Every call is told, with when it was sent and answered, and
 * what it said if it failed; each has a mark of its own in its arguments, so that runs can be counted.
 */
function paced({ subject, takesMs, paceMs, c, ms }) {
  const until = now() + ms;
  const calls = new Map();
  const seen = { calls: [], strays: 0 };
  const call = () => {
    const sequence = ++lastSequence;
    calls.set(sequence, now());
    socket.publish(subject, sequence, `{"key":"k${sequence}","ms":${takesMs}}`);
    socket.flush();
  };
  return new Promise((resolve) => {
    let open = c;
    onReply = (sequence, { isError, body }) => {
      const from = calls.get(sequence);
      calls.delete(sequence);
      if (from === undefined)
        seen.strays += 1; // answered twice
      else seen.calls.push({ from, to: now(), failure: isError ? `${body}` : undefined });
      if (from === undefined) return;
      if (now() + paceMs < until) setTimeout(call, paceMs);
      else if (--open === 0) resolve(seen);
    };
    for (let number = 0; number < c; number += 1) setTimeout(call, (number * paceMs) / c);
  });
}

/** Keeps c calls outstanding while it may go on; ends when every call has its answer. */
function drive({ subjects, body, c, mayGoOn, onSuccess }) {
  const seen = { errors: 0, strays: 0, failure: undefined };
  let open = c;
  const send = () => {
    const sequence = ++lastSequence;
    since[sequence % RING] = now();
    socket.publish(subjects[sequence % subjects.length], sequence, body);
  };
  const sendLater = () => {
    send();
    socket.flush();
  };
  return new Promise((resolve) => {
    onReply = (sequence, { isError, body: answer }) => {
      const started = since[sequence % RING];
      since[sequence % RING] = 0;
      if (started === 0) {
        seen.strays += 1; // answered twice
        return;
      }
      if (isError) {
        seen.errors += 1;
        seen.failure = answer?.toString();
      } else onSuccess(now() - started);
      if (mayGoOn()) isError ? setTimeout(sendLater, BREATH_MS) : send();
      else if (--open === 0) resolve(seen);
    };
    for (let count = 0; count < c; count += 1) send();
    socket.flush();
  });
}
