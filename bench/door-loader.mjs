// The load on a door, in a process of its own: so many sessions, a closed loop of c calls spread over them.
// Takes one job at a time from its parent: `open`, `window`, `watch`, `churn`; answers with what it saw.

import { setTimeout as wait } from 'node:timers/promises';
import { openSession } from './door-session.mjs';
import { measured, now } from './measured.mjs';

const COMING = 8; // sessions that come and go at a time
const BREATH_MS = 5; // before a failed call is tried again
const PATIENCE_MS = 5_000; // for answers that are still out when a watch is over

const url = new URL(process.env.DOOR_URL);
let strays = 0;
let lastId = 0;
let sessions = [];
/** The session of the call that follows one at its own. */
let nextSession;
let lastTurn = 0;

const jobs = { open, window, watch, churn };
process.on('message', async ({ job, ...given }) => process.send(await jobs[job](given).catch(said)));
process.on('disconnect', () => process.exit(0));
process.send({ ready: true });

const said = (error) => ({ failure: error.message, errors: 1 });
const onStray = () => {
  strays += 1;
};

/** Calls stay at their session; `isSpread`: each goes to the next one in turn. */
async function open({ count, isSpread }) {
  sessions = [];
  for (let number = 0; number < count; number += 1) sessions.push(await openSession(url, onStray));
  nextSession = isSpread ? () => sessions[lastTurn++ % sessions.length] : (own) => own;
  return {};
}

/** c calls outstanding for warmMs + ms; counts those that end in the last ms. */
async function window({ subject: tool, body, c, warmMs, ms, pids }) {
  const seen = { errors: 0, failure: undefined };
  const straysBefore = strays;
  const found = await measured({ warmMs, ms, pids }, ({ mayGoOn, took }) =>
    loop({
      c,
      mayGoOn,
      send: (session, done) => session.call(++lastId, tool, body, done),
      onEnd({ ok, failure }, latency) {
        if (ok) return took(latency);
        seen.errors += 1;
        seen.failure = failure;
      },
    }),
  );
  return { ...found, ...seen, strays: strays - straysBefore };
}

/**
 * Marked calls without pause, while the child is killed: the mark is in the arguments, so that runs can be counted. Tells
 * when the last good call of each session began.
 */
async function watch({ c, ms }) {
  const until = now() + ms;
  const seen = { sent: 0, ok: 0, failed: 0, lost: 0, unanswered: 0, failure: undefined };
  const lastSuccess = new Map();
  const straysBefore = strays;
  const done = loop({
    c,
    mayGoOn: () => now() < until,
    send(session, then) {
      seen.sent += 1;
      lastId += 1;
      session.call(lastId, 'mark', `{"key":"k${lastId}"}`, then);
    },
    onEnd({ ok, isLost, failure }, _took, session, startedAt) {
      seen[ok ? 'ok' : isLost ? 'lost' : 'failed'] += 1;
      if (ok) lastSuccess.set(session, Math.max(startedAt, lastSuccess.get(session) ?? 0));
      if (!ok) seen.failure = failure;
    },
  });
  await Promise.race([done, wait(ms + PATIENCE_MS)]);
  const unanswered = seen.sent - seen.ok - seen.failed - seen.lost;
  return { ...seen, unanswered, strays: strays - straysBefore, lastSuccesses: [...lastSuccess.values()] };
}

/** Sessions that come, listen, call and go; every other one without a word. */
async function churn({ count, subject: tool, body }) {
  let errors = 0;
  let failure;
  let next = 0;
  const one = async () => {
    while (next < count) {
      const number = next;
      next += 1;
      const session = await openSession(url, onStray);
      session.listen();
      const outcome = await new Promise((resolve) => session.call(++lastId, tool, body, resolve));
      if (!outcome.ok) {
        errors += 1;
        failure = outcome.failure;
      }
      await session.end(number % 2 === 0);
    }
  };
  await Promise.all(Array.from({ length: COMING }, one));
  return { errors, failure };
}

/** Keeps c calls outstanding while it may go on; ends when every call has its answer. */
function loop({ c, mayGoOn, send, onEnd }) {
  let outstanding = c;
  return new Promise((resolve) => {
    const again = (own) => {
      const session = nextSession(own);
      const startedAt = now();
      send(session, (outcome) => {
        onEnd(outcome, now() - startedAt, session, startedAt);
        if (!mayGoOn()) {
          outstanding -= 1;
          if (outstanding === 0) resolve();
        } else if (outcome.ok) again(session);
        else setTimeout(again, BREATH_MS, session);
      });
    };
    for (let number = 0; number < c; number += 1) again(sessions[number % sessions.length]);
  });
}
