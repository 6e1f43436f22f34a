// The ceiling: NATS subscription → id → one child's stdin → reply. No machines, no store, no log, no checks.
// Run by fork() with NATS_URL; tells its parent the child's pid when it is ready, and ends when that hangs up.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { connect } from 'nats';
import { addressOf } from './nats-socket.mjs';
import { splitter, writer } from './pipe.mjs';

const HEAD = '{"jsonrpc":"2.0","id":';
const RESULT = Buffer.from('"result":');

const child = spawn(process.execPath, [fileURLToPath(new URL('child.mjs', import.meta.url))], {
  stdio: ['pipe', 'pipe', 'inherit'],
});
const { host, port, ...credentials } = addressOf(process.env.NATS_URL);
const nats = await connect({ servers: `${host}:${port}`, ...credentials, noAsyncTraces: true });
const waiting = new Map();
let lastId = 0;
const write = writer(child.stdin);

child.stdout.on('data', splitter(reply));
await handshake();
nats.subscribe('bridge.call.*', { callback: (_error, message) => forward(message) });
await nats.flush();
process.on('disconnect', () => process.exit(0));
process.send({ childPid: child.pid });

function forward(message) {
  const id = ++lastId;
  waiting.set(id, message);
  const tool = message.subject.slice('bridge.call.'.length);
  write(`${HEAD}${id},"method":"tools/call","params":{"name":"${tool}","arguments":`, message.data, '}}\n');
}

function reply(line) {
  const id = Number.parseInt(line.latin1Slice(HEAD.length, HEAD.length + 16), 10);
  const message = waiting.get(id);
  waiting.delete(id);
  message?.respond(line.subarray(line.indexOf(RESULT, HEAD.length) + RESULT.length, line.length - 1));
}

async function handshake() {
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'bridge', version: '1' } };
  const answered = once(child.stdout, 'data');
  write(`${JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize', params })}\n`);
  await answered;
  write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
}
