// The load on the HTTP door as a client of Node has it: undici with connections that are kept, one request at a time on each.
// It costs more than the gateways that it asks, so it tells what callers see, and not what a call costs.

import { Agent } from 'undici';
import { busyMachine, cpuOf } from './proc.mjs';

const VERSION = '2025-11-25';
const SESSIONS = 8;
const now = () => Number(process.hrtime.bigint()) / 1e6;

const { origin, pathname } = new URL(process.env.DOOR_URL);
const client = new Agent({ connections: 64, pipelining: 1 });
let sessions = [];
let lastId = 0;

const jobs = { open, window };
process.on('message', async ({ job, ...given }) => process.send(await jobs[job](given).catch(said)));
process.on('disconnect', () => process.exit(0));
process.send({ ready: true });

const said = (error) => ({ failure: error.message, errors: 1 });

async function open() {
  sessions = await Promise.all(Array.from({ length: SESSIONS }, openSession));
  return {};
}

async function openSession() {
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': VERSION,
  };
  const clientInfo = { name: 'outside', version: '1' };
  const opened = await post(headers, { id: 0, method: 'initialize', params: params({ clientInfo, capabilities: {} }) });
  if (opened.session) headers['mcp-session-id'] = opened.session;
  await post(headers, { method: 'notifications/initialized' });
  return headers;
}

const params = (more) => ({ protocolVersion: VERSION, ...more });

async function post(headers, message) {
  const body = JSON.stringify({ jsonrpc: '2.0', ...message });
  const answer = await client.request({ origin, path: pathname, method: 'POST', headers, body });
  const text = await answer.body.text();
  return { text, session: answer.headers['mcp-session-id'] };
}

/** c calls outstanding for warmMs + ms; counts those that end in the last ms. */
async function window({ subject: name, body, c, warmMs, ms, pids }) {
  const sample = () => ({ at: now(), busy: busyMachine(), self: cpuOf(process.pid), cpu: pids.map(cpuOf) });
  const args = JSON.parse(body);
  const latencies = [];
  const seen = { errors: 0, failure: undefined, strays: 0 };
  let [before, after] = [];
  const caller = async (headers) => {
    while (!after) {
      lastId += 1;
      const from = now();
      const { text } = await post(headers, { id: lastId, method: 'tools/call', params: { name, arguments: args } });
      if (JSON.parse(text).result === undefined) {
        seen.errors += 1;
        seen.failure = text;
      } else if (before && !after) latencies.push(now() - from);
    }
  };
  setTimeout(() => {
    before = sample();
  }, warmMs);
  setTimeout(() => {
    after = sample();
  }, warmMs + ms);
  await Promise.all(Array.from({ length: c }, (_, number) => caller(sessions[number % SESSIONS])));
  const sorted = Float64Array.from(latencies).sort();
  const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
  const cpu = after.cpu.map((each, index) => each - before.cpu[index]);
  const self = after.self - before.self;
  const wallMs = after.at - before.at;
  const foreign = (after.busy - before.busy - cpu.reduce((sum, each) => sum + each, self)) / (wallMs * 1000);
  return { ops: sorted.length, wallMs, p50: at(0.5), p99: at(0.99), cpu, self, foreign, ...seen };
}
