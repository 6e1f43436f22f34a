// Runs a tool as a task and fetches its result, whatever dies meanwhile:  node examples/task.mjs [subject] [arguments] [key]
// NATS_URL comes from `troupe env`. The key makes it safe to run this again: it is the same task, and its result.

import { connect, headers } from 'nats';

const [subject = 'troupe.call.everything.echo', body = '{"message":"hi"}', key] = process.argv.slice(2);
const { host, username: token } = new URL(process.env.NATS_URL ?? '');
const nats = await connect({ servers: host, token, maxReconnectAttempts: -1 });

const asked = headers();
asked.set('Troupe-Task', '1');
asked.set('Troupe-Ttl', '1h');
if (key) asked.set('Troupe-Idempotency-Key', key);
const made = await nats.request(subject, body, { headers: asked, timeout: 30_000 });
if (made.headers?.get('Nats-Service-Error')) throw new Error(made.headers.get('Nats-Service-Error'));
const { taskId } = made.json();
console.log(`task ${taskId}`);

// A daemon that is killed says nothing, one that stops says 503, one that is asked for too long 408: the task goes on, and so
// do we. Whoever does not want to ask again and again listens to `troupe.ev.task.<id>.*`.
const patience = headers();
patience.set('Troupe-Timeout', '5s');
const fetched = () =>
  nats.request(`troupe.task.result.${taskId}`, '', { headers: patience, timeout: 6_000 }).catch(() => undefined);
const hasFailed = (reply) => reply.headers?.has('Nats-Service-Error') ?? false;
const isLater = (reply) => !reply || (hasFailed(reply) && reply.json().data?.troupe?.state === 'working');
let reply = await fetched();
for (; isLater(reply); reply = await fetched()) await new Promise((resolve) => setTimeout(resolve, 500));
if (hasFailed(reply)) throw new Error(reply.headers.get('Nats-Service-Error'));
console.log(reply.json().content[0].text);
await nats.close();
