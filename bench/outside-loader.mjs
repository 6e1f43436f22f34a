// The load on the HTTP door as a client of Node has it: undici with connections that are kept, one request at a time on each.
// It costs more than the gateways that it asks, so it tells what callers see, and not what a call costs.

import { Agent } from 'undici';
import { measured, now } from './measured.mjs';

const VERSION = '2025-11-25';
const SESSIONS = 8;

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
  const args = JSON.parse(body);
  const seen = { errors: 0, failure: undefined, strays: 0 };
  const found = await measured({ warmMs, ms, pids }, async ({ mayGoOn, took }) => {
    const caller = async (headers) => {
      while (mayGoOn()) {
        lastId += 1;
        const from = now();
        const { text } = await post(headers, { id: lastId, method: 'tools/call', params: { name, arguments: args } });
        if (JSON.parse(text).result !== undefined) took(now() - from);
        else {
          seen.errors += 1;
          seen.failure = text;
        }
      }
    };
    await Promise.all(Array.from({ length: c }, (_, number) => caller(sessions[number % SESSIONS])));
  });
  return { ...found, ...seen };
}
